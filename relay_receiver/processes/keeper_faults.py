"""What a process does at a fault point, as the folder that `RELAY_FAULTS` names says. For tests. Standard library only.

The folder has, in files:

- `plan`: JSON `{"point", "do", "skip"}`; `do` is `kill`, `stop` (SIGSTOP) or `raise`. The first process that comes to
  that point, after `skip` others, takes the plan and does it.
- `hits`: a line `point pid do` for each plan that was carried out, on the disk before it is.
- `seen`: every point that any process came to, at least once.
"""

import json
import os
import signal

VARIABLE = "RELAY_FAULTS"

_armed: list[str] = []
_seen: set[str] = set()


class FaultError(OSError):
    """What a point raises when it is told to."""


def arm() -> bool:
    """Look at the plan from here on, where the environment names a folder. True where it does."""
    folder = os.environ.get(VARIABLE)
    if folder and not _armed:
        _armed.append(folder)
    return bool(folder)


def hit(point: str) -> None:
    """This process is at a point. Nothing happens in one that is not armed.

    Raises:
        FaultError: the plan says so.
    """
    if not _armed:
        return
    folder = _armed[0]
    if point not in _seen:
        _seen.add(point)
        _append(f"{folder}/seen", point)
    plan = _take(folder, point)
    if plan is None:
        return
    do = plan["do"]
    _append(f"{folder}/hits", f"{point} {os.getpid()} {do}")
    if do == "raise":
        raise FaultError(f"told to fail at {point}")
    os.kill(os.getpid(), signal.SIGSTOP if do == "stop" else signal.SIGKILL)


def _take(folder: str, point: str) -> dict[str, str] | None:
    """The plan, taken so that nobody else takes it; None where it is not for this point, or not yet."""
    path = f"{folder}/plan"
    try:
        with open(path, encoding="utf-8") as file:
            plan = json.load(file)
        if plan["point"] != point:
            return None
        mine = f"{path}.{os.getpid()}"
        os.rename(path, mine)
    except (OSError, ValueError):
        return None
    skip = int(plan.get("skip", 0))
    if skip:
        with open(mine, "w", encoding="utf-8") as file:
            json.dump({**plan, "skip": skip - 1}, file)
        os.rename(mine, path)
        return None
    found: dict[str, str] = plan
    return found


def _append(path: str, line: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, line.encode() + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
