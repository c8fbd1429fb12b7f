"""The hub's own files: private from the first system call on, and its directory used by one hub at a time."""

import fcntl
import os
import secrets
import stat
from pathlib import Path

from relay_receiver.wire.errors import RelayError

LOCK = "hub.lock"


def private_dir(path: Path) -> None:
    """Make a directory of mode 0700, with its parents; check one that is there.

    Raises:
        RelayError: it is a link, no directory, another user's, or open to others.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise RelayError(f"The data directory {path} cannot be made: {error.strerror}.", code="bad_data") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise RelayError(f"{path} is not a directory of this user.", code="not_private", hint="Name another: --data")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise RelayError(f"The data directory {path} is open to others.", code="not_private", hint=f"chmod 700 {path}")


def write_private(path: Path, data: bytes) -> None:
    """Write a file of mode 0600 in one step, durable."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def read_private(path: Path) -> bytes:
    """The content of a file; a link is not followed."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
        return file.read()


class DataLock:
    """Held by the one hub that uses a data directory; the system gives it up with the process.

    Raises:
        RelayError: another hub has it.
    """

    def __init__(self, data: Path) -> None:
        self._descriptor = os.open(data / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            raise RelayError(
                f"Another hub runs with the data directory {data}.",
                code="already_running",
                hint="relay hub status; or name another directory with --data",
            ) from None

    def release(self) -> None:
        """Let another hub have it."""
        os.close(self._descriptor)
