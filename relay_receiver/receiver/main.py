"""The program of one receiver: `python -m relay_receiver.receiver.main PROFILE WORKSPACE CHANNEL [SECONDS]`.

It writes one JSON line when it is ready, or when it cannot start, to the descriptor that it was given for that
(see `processes.background`), and works until it is stopped.
"""

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from relay_receiver.client import profiles
from relay_receiver.processes import background, keeper_faults, notify, paths
from relay_receiver.processes.lock import InstanceLock
from relay_receiver.receiver import control
from relay_receiver.receiver.how import How
from relay_receiver.receiver.logs import open_log
from relay_receiver.receiver.receiver import Receiver
from relay_receiver.receiver.target import LOCK, LOG
from relay_receiver.wire import faultpoint
from relay_receiver.wire.errors import RelayError

LOCK_SECONDS = 5.0
"""How long a start waits for another process that holds the lock to answer or to let go."""
LOOK_SECONDS = 0.02


def run(
    folder: Path,
    profile: profiles.Profile,
    *,
    foreground: bool,
    ready: Callable[[dict[str, Any]], None],
    seconds: float | None = None,
) -> None:
    """Hold the instance lock and work until stopped.

    Args:
        ready: called with `{state: "ready", pid}` once the receiver is there, or `{state: "already_running", pid}`.
        seconds: stop by itself after this time.

    Raises:
        RelayError: it cannot start: the journal is copied, newer, or not to be opened.
    """
    lock = InstanceLock(folder / LOCK)
    running = _acquire(lock, folder)
    if running is not None:
        ready({"state": "already_running", "pid": running})
        return
    lock.announce()

    def announced(told: dict[str, Any]) -> None:
        notify.tell("READY=1")
        ready(told)

    try:
        log = open_log(folder / LOG, foreground=foreground)
        asyncio.run(_live(Receiver(profile, folder, log), announced, seconds))
    finally:
        lock.release()


def _acquire(lock: InstanceLock, folder: Path) -> int | None:
    """Take the lock; the pid of the receiver that has it where one does.

    A command that holds it for a moment (`configure`, `settle`) is waited for.

    Raises:
        RelayError: another process holds it and does not answer as a receiver does.
    """
    end = time.monotonic() + LOCK_SECONDS
    while not lock.acquire():
        try:
            return int(control.call(paths.runtime_dir(folder), "status", timeout=LOCK_SECONDS)["pid"])
        except RelayError as error:
            if time.monotonic() >= end:
                raise RelayError(
                    "Another process holds this receiver's state and does not answer.",
                    code="not_answering",
                    hint="relay receiver stop --now",
                ) from error
        time.sleep(LOOK_SECONDS)
    return None


async def _live(receiver: Receiver, ready: Callable[[dict[str, Any]], None], seconds: float | None) -> None:
    if seconds is not None:
        asyncio.get_running_loop().call_later(seconds, receiver.stop, How.GRACE)
    await receiver.run(ready)


def main(arguments: list[str]) -> int:
    """Run in the background, for `receiver start`."""
    name, workspace, channel = arguments[:3]
    report = background.reporter()
    if keeper_faults.arm():
        faultpoint.install(keeper_faults.hit)
    try:
        run(
            paths.binding_dir(name, workspace, channel),
            profiles.load(name),
            foreground=False,
            ready=report,
        )
    except RelayError as error:
        report({"error": error.sentence, "code": error.code, "hint": error.hint})
        return 1
    except OSError as error:
        why = f"The receiver's state cannot be used: {error.strerror or error}: {error.filename or paths.home()}."
        report({"error": why, "code": "not_writable", "hint": "Look at its file system and permissions."})
        return 1
    except Exception as error:
        report({"error": f"The receiver could not start: {error}", "code": "internal", "hint": "relay receiver logs"})
        raise
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
