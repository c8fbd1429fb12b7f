"""Journals at the speed of memory: real SQLite files, never synced, with statements compiled once for all of them."""

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.pool import NullPool

from relay_receiver.journal import engine

SHARED_MEMORY = Path("/dev/shm")
_wanted: list[Path] = []


def _open() -> sqlite3.Connection:
    conn = engine._open(_wanted.pop(), busy=0.0)
    conn.execute("PRAGMA synchronous = OFF")
    return conn


_ENGINE = create_engine("sqlite://", creator=_open, poolclass=NullPool)
event.listen(_ENGINE, "begin", engine._say_begin)


def _connect(path: Path, *, busy: float = 0.0) -> Connection:
    """As `engine.connect`, by one engine for all journals."""
    engine._claim(path)
    _wanted.append(path)
    return _ENGINE.connect()


@contextmanager
def journals() -> Iterator[Path]:
    """Quick journals from now on; a folder for them."""
    below = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
    with (
        tempfile.TemporaryDirectory(prefix="relay-simulation-", dir=below) as folder,
        mock.patch.object(engine, "connect", _connect),
    ):
        yield Path(folder)
