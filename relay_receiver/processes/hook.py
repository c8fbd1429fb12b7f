"""A command of a person, run for one event: the event on stdin, in bounded time, with a built environment."""

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from relay_receiver.processes import environment
from relay_receiver.processes.identity import NONCE, started_by
from relay_receiver.wire.errors import RelayError

ALLOWED = (
    "RELAY_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
)
"""Beside the usual small environment: what it takes to show something on this person's screen, and to call relay."""
GRACE_SECONDS = 2.0
"""Between SIGTERM and SIGKILL."""
_LOOK_SECONDS = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class Hook:
    """A command with its limits."""

    argv: tuple[str, ...]
    seconds: float
    env: tuple[str, ...] = ()
    """More names of variables to hand on."""


def parse(command: str) -> tuple[str, ...]:
    """The words of a command line, its program made absolute; no shell is involved.

    Raises:
        RelayError: it is no command line, or there is no such program.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise RelayError(
            f"The command cannot be read: {error}.", code="usage", hint="Quote it as for a shell."
        ) from None
    program = shutil.which(words[0]) if words else None
    if program is None:
        what = words[0] if words else "nothing"
        raise RelayError(f"There is no program {what}.", code="usage", hint="Say --exec '/path/program argument'.")
    return (os.path.abspath(program), *words[1:])  # noqa: PTH100 - a link is kept: programs look at their own name


async def run(hook: Hook, event: bytes, *, nonce: str) -> str | None:
    """Run the hook to its end; None where it succeeded, else one sentence.

    Whatever it writes goes to our stderr. What it leaves running in the background is its own affair, unless its time
    is up, or we are cancelled: then its whole process group is ended.

    Args:
        nonce: is in its environment, so that what is left of it is found after our own death.
    """
    env = environment.build((*ALLOWED, *hook.env), extra={NONCE: nonce})
    try:
        child = await asyncio.create_subprocess_exec(
            *hook.argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=_stderr(),
            stderr=_stderr(),
            env=env,
            start_new_session=True,
        )
    except OSError as error:
        return f"it cannot be started: {error.strerror or error}"
    try:
        async with asyncio.timeout(hook.seconds):
            await _feed(child, event)
            code = await child.wait()
    except TimeoutError:
        await _end(child)
        return f"it took longer than {hook.seconds:g} s and was ended"
    except BaseException:
        await _end(child)
        raise
    if code < 0:
        return f"it was ended by signal {-code}"
    return None if code == 0 else f"it ended with exit status {code}"


def _stderr() -> int:
    """The descriptor of our stderr: stdout carries our own answers only."""
    return sys.stderr.fileno()


async def _feed(child: asyncio.subprocess.Process, event: bytes) -> None:
    """Give it the event; one that does not read is no error."""
    if child.stdin is None:
        return
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        child.stdin.write(event)
        await child.stdin.drain()
    child.stdin.close()


async def _end(child: asyncio.subprocess.Process) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await child.wait()
                return


def left(nonce: str) -> Sequence[int]:
    """The processes that are left of a hook whose caller died."""
    return started_by(nonce)


def end_left(nonce: str, *, seconds: float) -> Sequence[int]:
    """Wait for what is left of a hook whose caller died, end it once its time is up; the pids that were ended."""
    until = time.monotonic() + seconds
    while (living := left(nonce)) and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)
    ended = list(living)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in living:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        until = time.monotonic() + GRACE_SECONDS
        while (living := left(nonce)) and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
    return ended
