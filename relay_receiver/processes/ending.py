"""What a keeper wrote down of a child's end, and what is done about a child whose keeper is gone."""

import contextlib
import json
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from relay_receiver.processes import files, spool
from relay_receiver.processes.files import NotPrivate
from relay_receiver.processes.identity import Life, ProcessIdentity, life, started_by
from relay_receiver.processes.kept import Kept

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

    @classmethod
    def read(cls, folder: Path, key: str) -> Self | None:
        """The end of that key. None where there is none; a file that cannot be read is put aside."""
        path = folder / f"{key}.end"
        try:
            return cls.parse(files.read_private(path))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, NotPrivate):
            spool.quarantine(path)
            return None

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read the file: a line of JSON, then as many bytes of stdout and stderr as it says.

        Raises:
            ValueError, KeyError, TypeError: it is truncated or no such file.
        """
        head, _, rest = data.partition(b"\n")
        told = json.loads(head)
        stdout, stderr = int(told["stdout"]), int(told["stderr"])
        if len(rest) != stdout + stderr:
            raise ValueError(f"it has {len(rest)} bytes of output and not {stdout + stderr}")
        return cls(
            exit=told["exit"],
            signal=told["signal"],
            overflow=bool(told["overflow"]),
            stdout=rest[:stdout],
            stderr=rest[stdout:],
            leftovers=bool(told["leftovers"]),
        )


def left_by(folder: Path, key: str, keeper: str | None) -> Kept | None:
    """Whom the processes of an attempt are found by, as far as they are its own.

    A command has a keeper of its own, which is in the spool under the attempt's key. What serves many jobs, such as
    the app-server of Codex, is nobody's leftover as long as its keeper lives.

    Args:
        keeper: identity of the keeper as JSON, as it was stored with the job.
    """
    if (kept := Kept.read(folder, key)) is not None:
        return kept
    try:
        identity = ProcessIdentity.from_json(keeper or "")
    except ValueError:
        return None
    return Kept(keeper=identity, child=None) if identity.nonce and life(identity) is Life.GONE else None


def living(kept: Kept | None) -> list[int]:
    """Processes of a child that still live, found by its identity and its nonce."""
    if kept is None:
        return []
    found = set(started_by(kept.keeper.nonce)) if kept.keeper.nonce else set()
    if kept.child is not None and life(kept.child) is Life.ALIVE:
        found.add(kept.child.pid)
    return sorted(found)


def end_child(kept: Kept, *, grace: float) -> bool:
    """End a child that its keeper does not end: TERM, grace, KILL; strangers are never touched.

    Returns:
        Whether nothing of it lives any more.

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
