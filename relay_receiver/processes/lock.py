"""The single-instance lock: held for the life of a process, gone with it, whatever way it goes."""

import fcntl
import os
from pathlib import Path

from relay_receiver.processes import files
from relay_receiver.processes.identity import Life, ProcessIdentity, identify, life

_ROOM = 256
"""Bytes that are written at once, so that a reader never sees half of an identity."""


class InstanceLock:
    """A lock on a file (0600) that also says who holds it. The kernel drops it when the holder dies."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> bool:
        """Take it without waiting; False where another process has it."""
        files.private_dir(self._path.parent)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        except OSError:
            os.close(descriptor)
            raise
        os.pwrite(descriptor, b"".ljust(_ROOM), 0)
        self._descriptor = descriptor
        return True

    def announce(self) -> None:
        """Write into the lock that this process holds it for as long as it lives, not only for a moment."""
        identity = identify(os.getpid())
        if self._descriptor is not None and identity is not None:
            os.pwrite(self._descriptor, identity.to_json().encode().ljust(_ROOM), 0)

    def holder(self) -> ProcessIdentity | None:
        """The living process that announced itself; a look never stands in the way of one that takes the lock."""
        try:
            holder = ProcessIdentity.from_json(self._path.read_bytes())
        except (OSError, ValueError):
            return None
        return holder if life(holder) is Life.ALIVE else None

    def release(self) -> None:
        """Give it back."""
        if self._descriptor is not None:
            os.pwrite(self._descriptor, b"".ljust(_ROOM), 0)
            os.close(self._descriptor)
            self._descriptor = None
