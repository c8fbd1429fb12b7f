"""The child of a keeper, its process group, and whatever else descends from it. Standard library only.

On Linux the keeper adopts orphans below it (`PR_SET_CHILD_SUBREAPER`), so that "nothing is left" is the kernel's
word, also of what left the group and cleared its environment. Elsewhere the group alone is known.
"""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

try:
    import ctypes
except ImportError:  # a Python without libffi: orphans are then found by group and nonce
    ctypes = None  # type: ignore[assignment]  # looked at before it is used

PLATFORM: str = sys.platform
_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER."""


class Family:
    """One child, started in a process group of its own; everything below it carries `nonce` unless it took it away."""

    def __init__(self, nonce: str, boot: str) -> None:
        self.nonce = nonce
        self.boot = boot
        self.child: subprocess.Popen[bytes] | None = None
        self.code: int | None = None
        """Its exit code once it has ended; negative for a signal."""
        self._adopts = _adopt()

    def start(
        self, argv: Sequence[str], *, environment: Mapping[str, str], directory: str
    ) -> "subprocess.Popen[bytes]":
        """Start the child.

        Raises:
            OSError: it certainly did not start.
            ValueError: the same; it cannot be said to the operating system.
        """
        self.child = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environment, "RELAY_NONCE": self.nonce},
            cwd=directory,
            process_group=0,
            bufsize=0,
        )
        return self.child

    def identity(self) -> bytes:
        """Keeper and child as one line of JSON; the child is null before it starts."""
        child = None if self.child is None else self.child.pid
        told = {
            "pid": os.getpid(),
            "started": started(os.getpid()),
            "boot": self.boot,
            "nonce": self.nonce,
            "child": child,
            "childStarted": None if child is None else started(child),
        }
        return json.dumps(told).encode() + b"\n"

    def reap(self) -> bool:
        """Take the ends of the child and of adopted orphans; True once the child has ended."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
                _, status = os.waitpid(ended.si_pid, 0)
                if self.child is not None and ended.si_pid == self.child.pid:
                    self.code = self.child.returncode = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def lives(self) -> bool:
        """Whether anything is left beside the child, as far as that is known without a search."""
        if self._adopts:
            return _has_children()
        with contextlib.suppress(OSError):
            if self.child is not None:
                os.killpg(self.child.pid, 0)
                return True
        return False

    def signal(self, number: int) -> bool:
        """Signal all of it; False where nothing is left of it. A stranger that has an old number is never signalled."""
        reached = False
        if self.child is not None and self.code is None:
            _kill(-self.child.pid, number)
            reached = True
        for pid in self.others():
            _kill(pid, number)
            reached = True
        return reached

    def others(self) -> list[int]:
        """What lives beside the child and, as long as the child lives, its group; for `os.kill`."""
        if self.child is None or (self.code is not None and not self.lives()):
            return []
        group = self.child.pid
        if PLATFORM != "linux":
            return [-group] if self.code is not None else []
        running = {pid: stat for pid in _pids() if (stat := _stat(pid)) is not None}
        found = self._descendants(running) if self._adopts else self._marked(running)
        covered = {group} if self.code is not None else {pid for pid in found if running[pid][1] == group} | {group}
        return sorted(found - covered)

    def _descendants(self, running: Mapping[int, tuple[int, int]]) -> set[int]:
        found = {os.getpid()}
        while more := {pid for pid, (parent, _) in running.items() if parent in found} - found:
            found |= more
        return found - {os.getpid()}

    def _marked(self, running: Mapping[int, tuple[int, int]]) -> set[int]:
        wanted = f"RELAY_NONCE={self.nonce}".encode()
        return {pid for pid in running if pid != os.getpid() and wanted in _environment(pid)}


def started(pid: int) -> float:
    """When a process started, in seconds after boot; 0 where that is not known."""
    if PLATFORM != "linux":
        return 0.0
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rsplit(b")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError):
        return 0.0


def _adopt() -> bool:
    if PLATFORM != "linux" or ctypes is None:
        return False
    return bool(ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0) == 0)


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _stat(pid: int) -> tuple[int, int] | None:
    """Parent and group of a process; None where it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, parent, group = file.read().rsplit(b")", 1)[1].split()[:3]
    except (OSError, IndexError, ValueError):
        return None
    return None if state in {b"Z", b"X"} else (int(parent), int(group))


def _environment(pid: int) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []
