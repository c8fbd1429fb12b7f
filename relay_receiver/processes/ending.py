"""What a keeper wrote down of a child's end, and what is done about a child whose keeper is gone."""

import contextlib
import json
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from relay_receiver.processes.identity import Life, life, started_by
from relay_receiver.processes.launch import Kept

_LOOK_SECONDS = 0.02


@dataclass(frozen=True, kw_only=True, slots=True)
class End:
    """How a child ended. `exit` is None where `signal` ended it; `overflow` where it said more than it may."""

    exit: int | None
    signal: int | None
    overflow: bool
    stdout: bytes
    stderr: bytes
    leftovers: bool
    """It left processes running, which were ended."""
    refused: dict[str, Any] | None = None
    """Set where it never started: `{code, reason}`."""

    @classmethod
    def read(cls, spool: Path, key: str) -> Self | None:
        """The end of that key. None where there is none; a file that cannot be read is put aside."""
        path = spool / f"{key}.end"
        try:
            told = json.loads(path.read_bytes())
            return cls(
                exit=told.get("exit"),
                signal=told.get("signal"),
                overflow=bool(told.get("overflow")),
                stdout=_bytes(told.get("stdout", "")),
                stderr=_bytes(told.get("stderr", "")),
                leftovers=bool(told.get("leftovers")),
                refused=told.get("refused"),
            )
        except FileNotFoundError:
            return None
        except (ValueError, AttributeError, TypeError):
            quarantine(path)
            return None


def quarantine(path: Path) -> None:
    """Put a file that cannot be read aside, under a name that says so; nothing looks at it again."""
    with contextlib.suppress(OSError):
        path.rename(path.with_name(f"{path.name}.unreadable-{time.time_ns()}"))


def living(kept: Kept | None) -> list[int]:
    """Processes of a child that still live, found by its identity and its nonce."""
    if kept is None or kept.child is None:
        return []
    found = set(started_by(kept.keeper.nonce)) if kept.keeper.nonce else set()
    if life(kept.child) is Life.ALIVE:
        found.add(kept.child.pid)
    return sorted(found)


def end_child(kept: Kept, *, grace: float) -> bool:
    """End a child whose keeper is gone: TERM, grace, KILL. True once nothing of it lives; strangers are never touched.

    Args:
        grace: seconds between TERM and KILL.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        if kept.child is not None and life(kept.child) is Life.ALIVE:
            with contextlib.suppress(OSError):
                os.killpg(kept.child.pid, number)
        for pid in living(kept):
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        until = time.monotonic() + grace
        while living(kept):
            if time.monotonic() >= until:
                break
            time.sleep(_LOOK_SECONDS)
        else:
            return True
    return not living(kept)


def sweep(spool: Path, keep: set[str]) -> int:
    """Remove what is left of other keys than those in `keep`; how many files went."""
    gone = 0
    with contextlib.suppress(FileNotFoundError):
        for path in spool.iterdir():
            if not any(path.name.startswith(f"{key}.") for key in keep):
                with contextlib.suppress(OSError):
                    path.unlink()
                    gone += 1
    return gone


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
