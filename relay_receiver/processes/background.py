"""Programs of ours in the background: started in a session of their own, ready when they say so, stopped until gone."""

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from relay_receiver.processes import files
from relay_receiver.processes.identity import Life, ProcessIdentity, life
from relay_receiver.wire.errors import RelayError

REPORT = "RELAY_REPORT_FD"
"""Names, in the environment of the child, the descriptor to which it writes its one JSON line."""
_LOG_SHOWN = 2000
_LOG_KEPT = 1024 * 1024
_POLL_SECONDS = 0.02
_END_SECONDS = 1.0
"""How long a program that reported an error, or nothing, may take to end."""


def spawn(argv: Sequence[str], *, log: Path, environment: Mapping[str, str], seconds: float) -> dict[str, Any]:
    """Start a program that outlives this one, and return what it reports once it is ready.

    Args:
        log: where its stdout and stderr go (0600).
        seconds: how long it may take to report.

    Returns:
        Its report, with its `pid` unless it named another.

    Raises:
        RelayError: it reported an error, ended before it was ready, or took too long.
    """
    files.private_dir(log.parent)
    reading, writing = os.pipe()
    try:
        with _open_log(log) as out:
            child = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**environment, REPORT: str(writing)},
                pass_fds=(writing,),
                start_new_session=True,
                cwd="/",
            )
        os.close(writing)
        writing = -1
        line = _line(reading, seconds)
    finally:
        os.close(reading)
        if writing >= 0:
            os.close(writing)
    return _report(child, line, log, seconds)


def reporter() -> Callable[[dict[str, Any]], None]:
    """In a spawned program: what tells the one who started it, once; later calls say nothing."""
    number = os.environ.pop(REPORT, None)
    descriptor = int(number) if number and number.isdigit() else None
    if descriptor is not None:
        os.set_inheritable(descriptor, False)

    def report(told: dict[str, Any]) -> None:
        nonlocal descriptor
        if descriptor is None:
            return
        with contextlib.suppress(OSError):
            os.write(descriptor, json.dumps(told).encode() + b"\n")
        os.close(descriptor)
        descriptor = None

    return report


def stop(identity: ProcessIdentity, *, grace: float, signal_first: bool = True) -> bool:
    """End that very process by SIGTERM, and wait until it is gone; never a process that only has its pid.

    Args:
        grace: seconds to wait.
        signal_first: False where it was asked to end in another way already.

    Returns:
        Whether it is gone.
    """
    if signal_first and life(identity) is Life.ALIVE:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(identity.pid, signal.SIGTERM)
    end = time.monotonic() + grace
    with contextlib.suppress(ProcessLookupError, OSError, AttributeError):
        _wait_by_descriptor(identity, grace)
    while life(identity) is Life.ALIVE:
        if time.monotonic() >= end:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _wait_by_descriptor(identity: ProcessIdentity, grace: float) -> None:
    descriptor = os.pidfd_open(identity.pid)
    try:
        if life(identity) is Life.ALIVE:
            select.select([descriptor], [], [], grace)
    finally:
        os.close(descriptor)


def _open_log(path: Path) -> Any:  # noqa: ANN401 - a binary file
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    if path.exists() and path.stat().st_size > _LOG_KEPT:
        flags |= os.O_TRUNC
    return os.fdopen(os.open(path, flags, 0o600), "ab")


def _line(descriptor: int, seconds: float) -> bytes:
    end = time.monotonic() + seconds
    line = b""
    while not line.endswith(b"\n"):
        left = end - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            break
        chunk = os.read(descriptor, 65536)
        if not chunk:
            break
        line += chunk
    return line


def _lives_on(child: "subprocess.Popen[bytes]") -> bool:
    """Whether it still runs; one that has let go of its report is about to end."""
    try:
        child.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        return True
    return False


def _report(child: "subprocess.Popen[bytes]", line: bytes, log: Path, seconds: float) -> dict[str, Any]:
    if line.endswith(b"\n"):
        told: dict[str, Any] = json.loads(line)
        if "error" in told:
            _lives_on(child)
            raise RelayError(told["error"], code=told.get("code", "error"), hint=told.get("hint"))
        child.returncode = 0  # it outlives this process on purpose: nobody here waits for it
        return {"pid": child.pid, **told}
    if _lives_on(child):
        child.returncode = 0
        raise RelayError(
            f"Process {child.pid} was started but is not ready after {seconds:g} s.",
            code="not_ready",
            hint=f"tail {log}",
        )
    tail = log.read_bytes()[-_LOG_SHOWN:].decode("utf-8", "replace").strip().splitlines()
    why = tail[-1] if tail else f"exit status {child.returncode}"
    raise RelayError(f"The program ended before it was ready: {why}.", code="not_ready", hint=f"tail {log}")
