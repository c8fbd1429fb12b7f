"""Private files: mode 0600 from the first system call, no symlink followed, the owner checked, durable when asked."""

import hashlib
import os
import secrets
import stat
from pathlib import Path

from relay_receiver.wire.errors import RelayError


class NotPrivate(RelayError):  # noqa: N818 - it says what is the matter
    """A file or directory that others could read or change, or that is not what it seems."""


def private_dir(path: Path) -> Path:
    """Make a directory, and its missing parents, with mode 0700; check one that is there.

    Raises:
        NotPrivate: it is a symlink, no directory, another user's, or open to others.
    """
    if not path.parent.exists():
        private_dir(path.parent)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode):
            raise NotPrivate(f"{path} is not a directory of its own.", code="not_private", hint=f"rm {path}") from None
        _check(path, found, mode=0o700)
    return path


def write_private(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Write a file of mode 0600 in one step: readers see the old content or the new one, whole.

    Args:
        durable: survive a power cut: the file, then the rename in its directory, are on the disk on return.
    """
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            _write(descriptor, data)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    if durable:
        fsync_dir(path.parent)


def read_private(path: Path) -> bytes:
    """The content of a private file.

    Raises:
        FileNotFoundError: there is none.
        NotPrivate: it is a symlink, no regular file, another user's, or open to others.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise NotPrivate(f"{path} cannot be read: {error.strerror}.", code="not_private") from error
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise NotPrivate(f"{path} is not a regular file.", code="not_private")
        _check(path, found, mode=0o600)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def short(text: str) -> str:
    """A short name for a file that stands for a text of any length."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def fsync_dir(path: Path) -> None:
    """Have the entries of a directory on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _check(path: Path, found: os.stat_result, *, mode: int) -> None:
    if found.st_uid != os.geteuid():
        raise NotPrivate(f"{path} belongs to another user.", code="not_private", hint=f"ls -ld {path}")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise NotPrivate(f"{path} is open to others.", code="not_private", hint=f"chmod {mode:o} {path}")
