"""Files of a keeper in its spool: written whole, private, and on the disk when they count. Standard library only."""

import contextlib
import os
from collections.abc import Sequence

_NEW = os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


def create(path: str, *, exclusive: bool) -> int:
    """Open a new or emptied file (0600) that is only appended to; its descriptor.

    Raises:
        FileExistsError: `exclusive`, and it is there.
    """
    return os.open(path, os.O_RDWR | os.O_APPEND | _NEW | (os.O_EXCL if exclusive else os.O_TRUNC), 0o600)


def write_whole(path: str, parts: Sequence[bytes | bytearray]) -> None:
    """Write a file durably and in one step: file, rename, directory. Nothing is left of one that did not fit.

    Raises:
        OSError: it is not there, or not certainly on the disk.
    """
    beside = f"{path}.new"
    descriptor = os.open(beside, os.O_WRONLY | os.O_TRUNC | _NEW, 0o600)
    try:
        try:
            for part in parts:
                write_all(descriptor, part)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(beside, path)
    except OSError:
        remove(beside)
        raise
    sync_directory(os.path.dirname(path))


def write_all(descriptor: int, data: bytes | bytearray) -> None:
    """Write every byte."""
    with memoryview(data) as view:
        done = 0
        while done < len(view):
            done += os.write(descriptor, view[done:])


def sync_directory(path: str) -> None:
    """Have the entries of a directory on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path: str) -> None:
    """Remove a file that may be there."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def read_some(descriptor: int, size: int) -> bytes | None:
    """What a pipe has: bytes, b"" at its end, None when there is nothing just now."""
    try:
        return os.read(descriptor, size)
    except BlockingIOError:
        return None
    except OSError:
        return b""
