"""The command adapter: any program, one process a job, `{threadId, requestId, prompt}` in and `{text}` out.

What it proves: the keeper's claim file says whether an attempt ever started, its end file how it ended. Only a
keeper that dies with its job (SIGKILL, power) leaves an attempt unknown.
"""

import asyncio
import contextlib
import json
import shutil
import signal
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from relay_receiver.adapters.base import (
    Accepted,
    AdapterEvent,
    AdapterUnusable,
    Binding,
    Finished,
    HandoverLost,
    NeverStarted,
    Proofs,
    Recovery,
    Refused,
    Result,
    Scope,
    StillRunning,
    Unprovable,
    Work,
)
from relay_receiver.processes import command
from relay_receiver.processes.command import KeeperLost, KeptCommand, Lost, NotStarted
from relay_receiver.processes.ending import End
from relay_receiver.processes.launch import OUTPUT_BYTES, Launcher, LauncherLost
from relay_receiver.processes.spool import sweep
from relay_receiver.wire.errors import RelayError

INTERRUPT_SECONDS = 5.0
"""Grace of an interrupt, between TERM and KILL."""
CONFIRM_SECONDS = 15.0
"""How long the end of an interrupted program is waited for."""
KEPT_OF_OVERFLOW = 64 * 1024
"""Characters that are kept of an answer that is too long."""
_MISSING = frozenset({"ENOENT", "EACCES", "ENOEXEC", "ENOTDIR", "EPERM"})
_OUTCOMES = {"completed": Result.COMPLETED, "quiet": Result.COMPLETED, "failed": Result.FAILED}


class CommandAdapter:
    """Runs `argv` once for each job, in the binding's directory."""

    proves = Proofs(
        never_started=True,
        finished=True,
        survives_receiver=True,
        note="a job goes on while the receiver is down; only a keeper that dies with its job leaves it unknown",
    )
    long_lived = False

    def __init__(self, binding: Binding, launcher: Launcher) -> None:
        self._binding = binding
        self._launcher = launcher
        self._session: str | None = None
        self._events: asyncio.Queue[AdapterEvent | None] = asyncio.Queue()
        self._running: dict[str, tuple[KeptCommand, asyncio.Task[Finished]]] = {}
        self._interrupted: set[str] = set()

    @classmethod
    def check(cls, binding: Binding) -> dict[str, Any]:
        """The settings with an absolute program.

        Raises:
            AdapterUnusable: no program is named, or it cannot be run.
        """
        argv = [str(word) for word in binding.settings.get("argv") or ()]
        if not argv:
            raise AdapterUnusable(
                "The command adapter needs a program: --adapter command --argv '[\"/path/to/runner\"]'."
            )
        found = shutil.which(argv[0], path=binding.environment.get("PATH"))
        if found is None:
            there = Path(argv[0]).exists()
            raise AdapterUnusable(f"The program {argv[0]} is {'not executable' if there else 'not there'}.")
        return {**binding.settings, "argv": [str(Path(found).absolute()), *argv[1:]]}

    def rebind(self, binding: Binding) -> None:
        """The next job is run as `binding` says."""
        self._binding = binding

    async def open(self, session: str | None) -> str | None:
        """Nothing has to be ready; the session is only a name that the program is given."""
        self._session = session
        return None

    async def submit(self, work: Work) -> Accepted | Refused:
        """Start the program under a keeper."""
        asked = {"threadId": self._session, "requestId": work.key, "prompt": work.prompt}
        extra = {} if work.credential is None else {"RELAY_JOB": str(work.credential)}
        try:
            kept = await command.run(
                self._launcher,
                key=work.key,
                argv=[str(word) for word in self._binding.settings["argv"]],
                environment={**self._binding.environment, **extra},
                directory=self._binding.directory,
                stdin=json.dumps(asked),
                spool=self._binding.spool,
                runtime=self._binding.runtime,
            )
        except LauncherLost as error:
            return Refused(scope=Scope.BINDING, reason=error.sentence)
        except KeeperLost as error:
            raise HandoverLost(str(error)) from error
        if isinstance(kept, NotStarted):
            return _not_started(kept)
        self._follow(work.key, kept)
        return Accepted(execution=work.key, keeper=kept.identity)

    async def events(self) -> AsyncIterator[AdapterEvent]:
        """The ends of programs, as they are on the disk."""
        while (event := await self._events.get()) is not None:
            yield event

    async def answer(self, question: str, decision: Mapping[str, Any]) -> None:
        """A command asks nothing."""

    async def interrupt(self, execution: str) -> bool:
        """TERM, then KILL; True once nothing of the program lives."""
        if execution not in self._running:
            return False
        kept, following = self._running[execution]
        self._interrupted.add(execution)
        try:
            with contextlib.suppress(ConnectionError):
                await kept.kill(INTERRUPT_SECONDS)
            async with asyncio.timeout(CONFIRM_SECONDS):
                end = await asyncio.shield(following)
        except TimeoutError:
            return False
        return end.result is not Result.UNKNOWN

    async def recover(self, execution: str | None, work: Work) -> Recovery:  # noqa: ARG002 - the key names everything
        """Look at the attempt's files, and race for its claim."""
        found = await command.recover(work.key, spool=self._binding.spool, runtime=self._binding.runtime)
        match found:
            case End():
                return finished(work.key, found)
            case KeptCommand():
                await self._let_go(work.key)
                self._follow(work.key, found)
                return StillRunning(execution=work.key, keeper=found.identity)
            case NotStarted(reason=reason):
                return NeverStarted(proof=reason)
            case Lost(reason=reason):
                return Unprovable(reason=reason, evidence=_traces(found))

    async def recorded(self, key: str) -> None:
        """The files of that attempt may go, and with it all others: one job is in flight at a time."""
        self._interrupted.discard(key)
        await self._let_go(key)
        sweep(self._binding.spool, self._binding.runtime, keep=self._running)

    async def close(self, *, detach: bool = False) -> None:
        """Let go of what runs, or end it."""
        if not detach:
            await asyncio.gather(*(self.interrupt(execution) for execution in list(self._running)))
        for key in list(self._running):
            await self._let_go(key)
        self._events.put_nowait(None)

    def _follow(self, key: str, kept: KeptCommand) -> None:
        self._running[key] = (kept, asyncio.create_task(self._wait(key, kept), name=f"command {key}"))

    async def _let_go(self, key: str) -> None:
        if key in self._running:
            kept, following = self._running.pop(key)
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await kept.detach()

    async def _wait(self, key: str, kept: KeptCommand) -> Finished:
        try:
            event = finished(key, await kept.end())
        except (KeeperLost, OSError) as error:
            event = await self._lost(key, str(error))
        if key in self._interrupted and event.result is Result.FAILED:
            event = replace(event, result=Result.CANCELLED, reason="it was stopped on request")
        self._events.put_nowait(event)
        return event

    async def _lost(self, key: str, reason: str) -> Finished:
        """What there is of an attempt whose keeper is lost; nobody can know more."""
        try:
            found = await command.recover(key, spool=self._binding.spool, runtime=self._binding.runtime)
        except (OSError, RelayError) as error:
            return Finished(key=key, result=Result.UNKNOWN, reason=f"{reason} ({error})")
        match found:
            case End():
                return finished(key, found)
            case NotStarted():
                refused = _not_started(found)
                return Finished(key=key, result=Result.REFUSED, reason=refused.reason, refused=refused)
            case Lost():
                return Finished(key=key, result=Result.UNKNOWN, reason=found.reason, evidence=_traces(found))
            case KeptCommand():
                await found.detach()
                return Finished(key=key, result=Result.UNKNOWN, reason=reason)


def _traces(found: Lost) -> dict[str, Any]:
    return {"alive": found.alive, **({"unreadable": found.unreadable} if found.unreadable else {})}


def _not_started(found: NotStarted) -> Refused:
    if found.code == "E2BIG":
        return Refused(scope=Scope.JOB, reason="the job is too large for the program's arguments and environment")
    code = "missing" if found.code in _MISSING else "refused"
    return Refused(scope=Scope.BINDING, reason=f"the program could not be started: {found.reason}", code=code)


def finished(key: str, end: End) -> Finished:  # noqa: PLR0911 - one return a way to end
    """What the end of a program means; each way to fail has a sentence of its own."""
    stdout = end.stdout.decode("utf-8", "replace")
    evidence = {"exit": end.exit, "signal": end.signal, "stderr": end.stderr.decode("utf-8", "replace")}
    if end.leftovers:
        evidence["leftovers"] = "processes that the program left running were ended"

    def failed(reason: str, text: str = "") -> Finished:
        return Finished(key=key, result=Result.FAILED, reason=reason, text=text, evidence=evidence)

    if end.overflow:
        kept = f"the first {KEPT_OF_OVERFLOW // 1024} KiB are kept"
        reason = f"the program wrote more than {OUTPUT_BYTES // 1024 // 1024} MiB and was ended; {kept}"
        return failed(reason, stdout[:KEPT_OF_OVERFLOW])
    if end.signal is not None:
        return failed(f"the program was ended by {_signal(end.signal)}", stdout.strip())
    if end.exit != 0:
        return failed(f"the program ended with exit status {end.exit}", stdout.strip())
    if not stdout.strip():
        return failed("the program ended without an answer on stdout")
    try:
        answer = json.loads(stdout)
    except (ValueError, RecursionError) as error:
        return failed(f"the program's answer is not JSON: {error}", stdout.strip())
    if not isinstance(answer, dict):
        return failed("the program's answer is no JSON object", stdout.strip())
    return _answered(key, answer, evidence)


def _answered(key: str, answer: dict[str, Any], evidence: dict[str, Any]) -> Finished:
    text = answer.get("text")
    outcome = answer.get("outcome", "completed")
    usage = answer.get("usage")
    reason = ""
    if answer.get("quiet") is True and text is None:
        text = ""
    if not isinstance(text, str) or outcome not in _OUTCOMES:
        missing = "text" if not isinstance(text, str) else "a known outcome"
        return Finished(
            key=key, result=Result.FAILED, reason=f"the program's answer has no {missing}", evidence=evidence
        )
    if outcome == "failed":
        reason = text.strip().splitlines()[0] if text.strip() else "the program says that it failed"
    return Finished(
        key=key,
        result=_OUTCOMES[outcome],
        text="" if outcome == "quiet" else text,
        reason=reason,
        usage={str(name): int(value) for name, value in usage.items() if type(value) is int}
        if isinstance(usage, dict)
        else None,
        evidence=evidence,
    )


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
