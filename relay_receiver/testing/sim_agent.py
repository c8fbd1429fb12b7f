"""Agents of simulated machines: executions under keepers that outlive a receiver, and the adapter to them."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from relay_receiver.adapters.base import (
    Accepted,
    AdapterEvent,
    AdapterUnusable,
    Finished,
    HandoverLost,
    NeverStarted,
    Proofs,
    Recovery,
    Refused,
    Result,
    Scope,
    Started,
    StillRunning,
    Unprovable,
    Waiting,
    WaitOver,
    Work,
)

Gate = Callable[[str], None]


class Turn(StrEnum):
    """What one hand-over comes to."""

    ANSWER = "answer"
    QUIET = "quiet"
    LONG = "long"
    """It answers after 20 s."""
    ASKS = "asks"
    """It waits for a person in between."""
    ASKS_TWICE = "asks twice"
    """It waits for two answers at once."""
    FAILS = "fails"
    HANGS = "hangs"
    """It never ends by itself; an interrupt is confirmed."""
    DEAF = "deaf"
    """It ends late, and confirms no interrupt."""
    VANISHES = "vanishes"
    """Its keeper dies: nobody can know."""
    BUSY = "busy"
    """Refused for now."""
    NEVER = "never"
    """Refused for good."""
    LIMIT = "limit"
    """Accepted, then certainly not done."""
    LOST = "lost"
    """It starts, and the hand-over breaks."""
    UNSTARTED = "unstarted"
    """It does not start, and the hand-over breaks."""
    CRASH = "crash"
    """The adapter itself fails in the hand-over, after the start."""


_REFUSES = {Turn.BUSY: Scope.BINDING, Turn.NEVER: Scope.JOB}
_SECONDS = {Turn.LONG: 20.0, Turn.DEAF: 400.0}
_QUESTIONS = {Turn.ASKS: ("q",), Turn.ASKS_TWICE: ("q", "r")}


@dataclass(kw_only=True)
class Execution:
    """One attempt at an agent."""

    key: str
    turn: Turn
    started: bool
    end: Finished | None = None
    gone: bool = False
    """Its keeper died."""
    timers: list[asyncio.TimerHandle] = field(default_factory=list)
    waits: dict[str, Waiting] = field(default_factory=dict)
    """Questions without an answer."""


class Machine:
    """Where agents run. `spool` is what a later process finds of earlier attempts."""

    def __init__(
        self,
        name: str,
        *,
        started: Callable[["Machine", str], None],
        answered: Callable[[str, str, bool], None] = lambda _key, _question, _accepted: None,
    ) -> None:
        self.name = name
        self._answered = answered
        self.turns: deque[Turn] = deque()
        self.spool: dict[str, Execution] = {}
        self.provable = True
        """Whether its adapter can prove what became of an attempt."""
        self.usable = True
        self.doubtful: set[str] = set()
        """Attempts of which the adapter said that nobody can know."""
        self.adapter: SimAdapter | None = None
        self._started = started

    def run(self, key: str, turn: Turn) -> Execution:
        """Start an attempt."""
        execution = self.spool[key] = Execution(key=key, turn=turn, started=turn is not Turn.UNSTARTED)
        if turn not in {Turn.UNSTARTED, Turn.LIMIT}:
            self._started(self, key)
        if turn in {Turn.HANGS, Turn.UNSTARTED}:
            return execution
        loop = asyncio.get_running_loop()
        took = _SECONDS.get(turn, 0.02)
        if turn in _QUESTIONS:
            execution.timers = [
                loop.call_later(0.5, self.say, Started(key=key)),
                loop.call_later(1.0, self._ask, execution),
            ]
            return execution
        execution.timers.append(loop.call_later(took, self.end, execution, _end_of(key, turn)))
        return execution

    def _ask(self, execution: Execution) -> None:
        for name in _QUESTIONS[execution.turn]:
            action = {"kind": "command", "command": f"do {name}"}
            question = f"{execution.key}:{name}"
            asks = Waiting(key=execution.key, question=question, kind="approval", title="may I?", action=action)
            execution.waits[question] = asks
            self.say(asks)

    def answer(self, question: str, *, accepted: bool) -> None:
        """Take the answer to a question that waits."""
        for execution in self.spool.values():
            wait = execution.waits.pop(question, None)
            if wait is None:
                continue
            self._answered(execution.key, question, accepted)
            self.say(WaitOver(key=execution.key, question=question))
            if not execution.waits:
                done = _end_of(execution.key, execution.turn)
                execution.timers.append(asyncio.get_running_loop().call_later(0.02, self.end, execution, done))

    def end(self, execution: Execution, end: Finished) -> None:
        """An attempt is over."""
        for timer in execution.timers:
            timer.cancel()
        for question in list(execution.waits):
            del execution.waits[question]
            self.say(WaitOver(key=execution.key, question=question))
        if execution.end is not None or execution.gone:
            return
        execution.gone = execution.turn is Turn.VANISHES
        if execution.gone:
            self.doubtful.add(execution.key)
        else:
            execution.end = end
        self.say(end)

    def say(self, event: AdapterEvent) -> None:
        """Tell whoever listens."""
        if self.adapter is not None:
            self.adapter.queue.put_nowait(event)


class SimAdapter:
    """An adapter of one process. What it starts stays when the process dies."""

    proves = Proofs(never_started=True, finished=True, survives_receiver=True, note="simulated")
    long_lived = False

    def __init__(self, machine: Machine, gate: Gate, handed: Callable[[Work], None]) -> None:
        self._machine = machine
        self._gate = gate
        self._handed = handed
        self.queue: asyncio.Queue[AdapterEvent] = asyncio.Queue()

    def rebind(self, binding: object) -> None:
        """Nothing depends on it."""

    async def open(self, session: str | None) -> str | None:
        """Listen from now on."""
        if not self._machine.usable:
            raise AdapterUnusable("The program is not there.")
        self._machine.adapter = self
        return session

    async def submit(self, work: Work) -> Accepted | Refused:
        """As the next turn says."""
        machine = self._machine
        turn = machine.turns.popleft() if machine.turns else Turn.ANSWER
        self._gate("call submit")
        self._handed(work)
        if (scope := _REFUSES.get(turn)) is not None:
            await asyncio.sleep(0.01)
            return Refused(scope=scope, reason=f"it is {turn.value}")
        if work.key in machine.spool:
            return Refused(scope=Scope.BINDING, reason="this attempt is claimed already", code="claimed")
        machine.run(work.key, turn)
        self._gate("applied submit")
        await asyncio.sleep(0.01)
        if turn in {Turn.LOST, Turn.UNSTARTED}:
            machine.doubtful.add(work.key)
            raise HandoverLost("the pipe broke")
        if turn is Turn.CRASH:
            machine.doubtful.add(work.key)
            raise RuntimeError("an error in the adapter")
        self._gate("answered submit")
        return Accepted(execution=work.key)

    async def events(self) -> AsyncIterator[AdapterEvent]:
        """What executions say."""
        while True:
            yield await self.queue.get()

    async def answer(self, question: str, decision: Mapping[str, Any]) -> None:
        """Give it to the pending call."""
        self._gate("call answer")
        await asyncio.sleep(0.005)
        self._machine.answer(question, accepted=decision.get("decision") == "accept")
        self._gate("applied answer")

    async def interrupt(self, execution: str) -> bool:
        """Stop it, where it listens."""
        self._gate("call interrupt")
        found = self._machine.spool.get(execution)
        await asyncio.sleep(0.05)
        if found is None or found.turn is Turn.DEAF or found.gone:
            self._machine.doubtful.add(execution)
            return False
        if found.end is None:
            end = Finished(key=execution, result=Result.CANCELLED, reason="it was stopped")
            self._machine.end(found, end)
        self._gate("applied interrupt")
        return True

    async def recover(self, execution: str | None, work: Work) -> Recovery:  # noqa: ARG002 - the key names everything
        """What the spool says."""
        self._gate("call recover")
        machine = self._machine
        machine.adapter = self
        await asyncio.sleep(0.01)
        found = machine.spool.get(work.key)
        if found is None:
            machine.spool[work.key] = Execution(key=work.key, turn=Turn.UNSTARTED, started=False)
            return NeverStarted(proof="nobody had claimed it, and now nobody can")
        if not machine.provable:
            machine.doubtful.add(work.key)
            return Unprovable(reason="this agent keeps no records")
        if not found.started:
            return NeverStarted(proof="it was claimed, and never started")
        if found.end is not None:
            return found.end
        if found.gone:
            machine.doubtful.add(work.key)
            return Unprovable(reason="its keeper died")
        return StillRunning(execution=work.key, waits=tuple(found.waits.values()))

    async def recorded(self, key: str) -> None:
        """The files of that attempt go."""
        self._gate("call recorded")
        self._machine.spool.pop(key, None)

    async def close(self, *, detach: bool = False) -> None:
        """Let go, or end what runs."""
        if self._machine.adapter is self:
            self._machine.adapter = None
        if not detach:
            for execution in list(self._machine.spool.values()):
                await self.interrupt(execution.key)


def _end_of(key: str, turn: Turn) -> Finished:
    match turn:
        case Turn.QUIET:
            return Finished(key=key, result=Result.COMPLETED, text="COLLABORATION_QUIET")
        case Turn.FAILS:
            return Finished(key=key, result=Result.FAILED, reason="it ended with exit status 1")
        case Turn.VANISHES:
            return Finished(key=key, result=Result.UNKNOWN, reason="its keeper died, and left no end")
        case Turn.LIMIT:
            limit = Refused(scope=Scope.BINDING, reason="usage limit", code="usage_limit")
            return Finished(key=key, result=Result.REFUSED, reason="usage limit", refused=limit)
    return Finished(key=key, result=Result.COMPLETED, text=f"answer of {key}")
