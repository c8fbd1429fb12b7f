"""Power cuts: what a disk may hold of a SQLite database, cut after each commit of its log."""

import contextlib
import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path

HEADER, FRAME = 32, 24
"""Bytes of the header of a WAL, and of each frame's."""


def commits(wal: bytes) -> list[int]:
    """The lengths to which a WAL can be cut so that it ends with a commit; 0 is a WAL that never came to the disk."""
    found = [0]
    if len(wal) < HEADER:
        return found
    page = struct.unpack(">I", wal[8:12])[0]
    salt = wal[16:24]
    for at in range(HEADER, len(wal) - FRAME - page + 1, FRAME + page):
        head = wal[at : at + FRAME]
        if head[8:16] != salt:
            break
        if struct.unpack(">I", head[4:8])[0]:
            found.append(at + FRAME + page)
    return found


def read(path: Path) -> tuple[bytes, bytes]:
    """A database and its log, of a process that stands still."""
    return path.read_bytes(), path.with_name(f"{path.name}-wal").read_bytes()


def write(path: Path, database: bytes, wal: bytes) -> None:
    """Lay them down as a disk would have them after a power cut."""
    path.parent.mkdir()
    path.write_bytes(database)
    path.with_name(f"{path.name}-wal").write_bytes(wal)


@contextlib.contextmanager
def clean(path: Path) -> Iterator[sqlite3.Connection]:
    """A database in which every page and every reference is right."""
    with contextlib.closing(sqlite3.connect(path)) as conn:
        assert conn.execute("pragma integrity_check").fetchall() == [("ok",)]
        assert conn.execute("pragma foreign_key_check").fetchall() == []
        yield conn
