"""Reaching a receiver from the command line: the running process over its socket, else its journal under its lock."""

import time
from typing import TYPE_CHECKING, Any, TypeVar

from relay_receiver.processes import identity
from relay_receiver.processes.lock import InstanceLock
from relay_receiver.receiver import control
from relay_receiver.receiver.target import JOURNAL, LOCK, Target
from relay_receiver.wire.errors import RelayError

if TYPE_CHECKING:
    from collections.abc import Callable

    from relay_receiver.journal.binding import Binding
    from relay_receiver.journal.journal import Connection

T = TypeVar("T")

ANSWER_SECONDS = 10.0
"""How long a receiver that has just started, or ends, is waited for."""
LOOK_SECONDS = 0.02


def ask(target: Target, verb: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Ask the running receiver; one that is just starting or ending is waited for.

    Raises:
        NotRunning: none runs.
        RelayError: it refused, or does not answer.
    """
    end = time.monotonic() + ANSWER_SECONDS
    while True:
        try:
            return control.call(target.runtime, verb, **arguments)
        except control.NotRunning:
            if time.monotonic() >= end or (running(target) is None and free(target)):
                raise
        time.sleep(LOOK_SECONDS)


def running(target: Target) -> identity.ProcessIdentity | None:
    """The process that runs, or None."""
    return InstanceLock(target.folder / LOCK).holder()


def free(target: Target) -> bool:
    """Whether no process holds the lock: one that has just taken it has not said yet who it is."""
    path = target.folder / LOCK
    if not path.exists():
        return True
    lock = InstanceLock(path)
    try:
        free = lock.acquire()
    except OSError:
        return True
    if free:
        lock.release()
    return free


def locked(target: Target) -> InstanceLock:
    """The lock of a receiver that does not run, taken.

    Raises:
        RelayError: it runs and does not answer, or its state cannot be used.
    """
    lock = InstanceLock(target.folder / LOCK)
    end = time.monotonic() + ANSWER_SECONDS
    try:
        while not (free := lock.acquire()) and time.monotonic() < end:
            time.sleep(LOOK_SECONDS)
    except OSError as error:
        raise RelayError(
            f"The receiver's state in {target.folder} cannot be used: {error.strerror}.",
            code="not_writable",
            hint="Look at its file system and permissions.",
        ) from error
    if not free:
        raise RelayError(
            "The receiver is running but does not answer.", code="not_answering", hint="relay receiver stop --now"
        )
    return lock


def on_journal(target: Target, call: "Callable[[Connection, Binding], T]", *, write: bool = False) -> T:
    """Do on the journal of a receiver that does not run what the running one would do."""
    from relay_receiver.journal import binding as bindings
    from relay_receiver.journal.journal import Journal

    target.facts()
    lock = locked(target)
    try:
        journal = Journal.open(target.folder / JOURNAL)
        try:
            binding = journal.read_now(bindings.get)
            if binding is None:
                raise RelayError(
                    "The journal holds no binding.", code="not_configured", hint="relay receiver configure"
                )
            access = journal.write_now if write else journal.read_now
            return access(call, binding)
        finally:
            journal.close()
    finally:
        lock.release()
