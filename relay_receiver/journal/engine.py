"""How the journal's file is opened, and who says BEGIN: we do, never the driver."""

import os
import sqlite3
import stat
import sys
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import StaticPool

from relay_receiver.journal.errors import JournalError

BUSY_SECONDS = 5.0
"""How long a statement waits for another process that holds the file."""
WAL_LIMIT_BYTES = 4 * 1024 * 1024
READ = "BEGIN"
WRITE = "BEGIN IMMEDIATE"
_BEGIN = "journal_begin"


def connect(path: Path, *, busy: float = BUSY_SECONDS) -> Connection:
    """The one connection to a journal, made with its file where there is none.

    Raises:
        JournalError: the path is a link, or somebody else's file.
        sqlite3.Error: SQLite cannot use the file.
    """
    _claim(path)
    engine = create_engine("sqlite://", creator=lambda: _open(path, busy), poolclass=StaticPool)
    event.listen(engine, "begin", _say_begin)
    return engine.connect()


def begin_with(conn: Connection, words: str) -> None:
    """Have the next transaction of `conn` start with `READ` or `WRITE`."""
    conn.info[_BEGIN] = words


def _say_begin(conn: Connection) -> None:
    conn.exec_driver_sql(conn.info.get(_BEGIN, READ))


def dispose(conn: Connection) -> None:
    """Close the connection and its file."""
    engine: Engine = conn.engine
    conn.close()
    engine.dispose()


def _claim(path: Path) -> None:
    """Make the file with mode 0600 before SQLite sees it; its side files take the same mode.

    A file that is there already is looked at and not opened: closing a descriptor of ours would drop the locks that
    another connection of this process holds on it.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        facts = path.lstat()
        if facts.st_uid != os.geteuid() or not stat.S_ISREG(facts.st_mode):
            raise JournalError(
                f"The journal {path} is a link, or not a file of this user.",
                code="journal_unusable",
                hint="Look at its directory: only this user may write there.",
            ) from None
        if stat.S_IMODE(facts.st_mode) & 0o077:
            path.chmod(0o600)
    except OSError as error:
        raise JournalError(
            f"The journal {path} cannot be made: {error.strerror}.",
            code="journal_unusable",
            hint="Look at the permissions of its directory.",
        ) from error


def _open(path: Path, busy: float) -> sqlite3.Connection:
    conn = sqlite3.connect(path, timeout=busy, isolation_level=None, check_same_thread=False, cached_statements=256)
    try:
        conn.execute("PRAGMA foreign_keys = ON")
        if conn.execute("PRAGMA journal_mode").fetchone() != ("wal",):
            conn.execute("PRAGMA auto_vacuum = INCREMENTAL")  # of a new file: later it would take a VACUUM
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
