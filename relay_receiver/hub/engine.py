"""How the hub's database is opened, and who says BEGIN: we do, never the driver."""

import os
import sqlite3
import stat
import sys
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import StaticPool

from relay_receiver.wire.errors import RelayError

BUSY_SECONDS = 5.0
"""How long a statement waits for another process that holds the file."""
WAL_LIMIT_BYTES = 16 * 1024 * 1024
FILE = "hub.sqlite3"


def locate(where: str | Path) -> Path:
    """The database file that `where` names: a `sqlite:///` URL, a file, or a directory that holds it.

    Raises:
        RelayError: it is a database of another kind.
    """
    if isinstance(where, str) and "://" in where:
        kind, _, rest = where.partition(":///")
        if kind != "sqlite" or not rest:
            raise RelayError(
                f"A database of the kind {kind.partition(':')[0]} is not supported yet.",
                code="unsupported_database",
                hint="Leave --database out, or say sqlite:///PATH.",
            )
        return Path(rest)
    path = Path(where)
    return path / FILE if path.is_dir() else path


def connect(path: Path, *, write: bool) -> Connection:
    """A connection of its own, for one thread at a time; the file is made, mode 0600, where there is none.

    Raises:
        RelayError: the path is a link, or somebody else's file.
    """
    _claim(path)
    engine = create_engine("sqlite://", creator=lambda: _open(path), poolclass=StaticPool)
    words = "BEGIN IMMEDIATE" if write else "BEGIN"
    event.listen(engine, "begin", lambda conn: conn.exec_driver_sql(words))
    return engine.connect()


def dispose(conn: Connection) -> None:
    """Close the connection and its file."""
    engine: Engine = conn.engine
    conn.close()
    engine.dispose()


def _claim(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise RelayError(
            f"The hub's database {path} cannot be opened: {error.strerror}.",
            code="database_unusable",
            hint="Look at the permissions of its directory; a link is not followed.",
        ) from error
    try:
        facts = os.fstat(descriptor)
        if facts.st_uid != os.geteuid() or not stat.S_ISREG(facts.st_mode):
            raise RelayError(f"The hub's database {path} is not a file of this user.", code="database_unusable")
        if stat.S_IMODE(facts.st_mode) & 0o077:
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def _open(path: Path) -> sqlite3.Connection:
    conn = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=512
    )
    try:
        conn.execute("PRAGMA foreign_keys = ON")
        if conn.execute("PRAGMA journal_mode").fetchone() != ("wal",):
            conn.execute("PRAGMA journal_mode = WAL")
        conn.execute("PRAGMA synchronous = FULL")
        conn.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT_BYTES}")
        conn.execute("PRAGMA trusted_schema = OFF")
        if sys.platform == "darwin":
            conn.execute("PRAGMA fullfsync = ON")
            conn.execute("PRAGMA checkpoint_fullfsync = ON")
    except BaseException:
        conn.close()
        raise
    return conn
