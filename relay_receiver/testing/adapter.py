"""A scripted agent and its adapter: as an agent under a keeper does, it goes on while its receiver is away."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from relay_receiver.adapters.base import (
    Accepted,
    AdapterEvent,
    Binding,
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Ends:
    """The work starts and ends so."""

    result: Result = Result.COMPLETED
    text: str = ""
    reason: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Runs:
    """The work runs until `ScriptedAgent.end`, or until it is interrupted where it `stops`."""

    stops: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Breaks:
    """The hand-over breaks in the middle; `started` is what nobody but the agent knows."""

    started: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Asks:
    """The work asks people, `count` questions at once, and its answer is what they decided."""

    count: int = 1
    title: str = "May I?"
    schema: Mapping[str, Any] | None = None
    """The form of an input; without it the questions are approvals."""
    goes_on: bool = False
    """With its answers it runs until `ScriptedAgent.end`."""


Play = Ends | Runs | Breaks | Asks | Refused


class ScriptedAgent:
    """What lives on when a receiver dies: executions, and what became of them.

    `plays` says what is done with each piece of work; `starts` has the key of each start, in order.
    """

    def __init__(self, plays: Callable[[Work], Play]) -> None:
        self._plays = plays
        self._found: dict[str, Recovery] = {}
        self._stops: dict[str, bool] = {}
        self._waits: dict[str, Waiting] = {}
        """Questions without an answer, by their name."""
        self._go_on: set[str] = set()
        self._said: dict[str, list[str]] = {}
        """What people decided, by attempt."""
        self._listener: Callable[[AdapterEvent], None] = lambda _: None
        self.starts: list[str] = []
        self.answers: list[tuple[str, Mapping[str, Any]]] = []
        """What people decided, by question; each is answered once."""

    def listen(self, listener: Callable[[AdapterEvent], None]) -> None:
        """From now on events go there; only the newest listener has them."""
        self._listener = listener

    def start(self, work: Work) -> Accepted | Refused:
        """Take one attempt; each starts at most once.

        Raises:
            HandoverLost: its play breaks.
        """
        key = work.key
        if key in self._found:
            return Refused(scope=Scope.BINDING, reason="this attempt was decided before")
        play = self._plays(work)
        match play:
            case Refused():
                return play
            case Breaks(started=started):
                self._found[key] = Unprovable(reason="the hand-over broke", evidence={"started": started})
                if started:
                    self.starts.append(key)
                raise HandoverLost("the hand-over broke")
            case Runs(stops=stops):
                self._began(key)
                self._stops[key] = stops
            case Asks():
                self._began(key)
                self._stops[key] = True
                self._ask(key, play)
            case Ends(result=result, text=text, reason=reason):
                self._began(key)
                self.end(key, result=result, text=text, reason=reason)
        return Accepted(execution=key)

    def end(self, key: str, *, result: Result = Result.COMPLETED, text: str = "", reason: str = "") -> None:
        """End an attempt that runs; the first end counts."""
        if isinstance(self._found.get(key), StillRunning):
            for wait in self._of(key):
                self._close(wait)
            end = Finished(key=key, result=result, text=text, reason=reason)
            self._found[key] = end
            self._listener(end)

    def interrupt(self, key: str) -> bool:
        """Stop an attempt that runs and stops; True once it has ended so."""
        if not isinstance(self._found.get(key), StillRunning) or not self._stops[key]:
            return False
        self.end(key, result=Result.CANCELLED, reason="it was stopped on request")
        return True

    def find(self, key: str) -> Recovery:
        """What became of an attempt; one that did not start yet never will."""
        found = self._found.setdefault(
            key, NeverStarted(proof="the agent has not seen this attempt, and now never will")
        )
        return replace(found, waits=self._of(key)) if isinstance(found, StillRunning) else found

    def answer(self, question: str, decision: Mapping[str, Any]) -> None:
        """Take a decision about a question that waits; with the last one the work ends."""
        wait = self._waits.get(question)
        if wait is None:
            return
        self.answers.append((question, decision))
        said = self._said[wait.key]
        said.append(json.dumps(decision.get("answers") or decision.get("decision")))
        self._close(wait)
        if not self._of(wait.key) and wait.key not in self._go_on:
            self.end(wait.key, text=", ".join(said))

    def _ask(self, key: str, play: Asks) -> None:
        self._said[key] = []
        if play.goes_on:
            self._go_on.add(key)
        for number in range(play.count):
            question = f"{key}/{number}"
            self._waits[question] = Waiting(
                key=key,
                question=question,
                kind="approval" if play.schema is None else "input",
                title=play.title,
                action={"kind": "command", "command": f"do {number}", "agentSays": "please"},
                schema=play.schema,
            )
            self._listener(self._waits[question])

    def _of(self, key: str) -> list[Waiting]:
        return [wait for wait in self._waits.values() if wait.key == key]

    def _close(self, wait: Waiting) -> None:
        del self._waits[wait.question]
        self._listener(WaitOver(key=wait.key, question=wait.question))

    def running(self) -> list[str]:
        """The keys of what runs."""
        return [key for key, found in self._found.items() if isinstance(found, StillRunning)]

    def _began(self, key: str) -> None:
        self.starts.append(key)
        self._found[key] = StillRunning(execution=key)
        self._listener(Started(key=key))


class ScriptedAdapter:
    """An adapter over a scripted agent."""

    proves = Proofs(never_started=True, finished=True, survives_receiver=True, note="a script of tests")
    long_lived = False

    def __init__(self, binding: Binding, agent: ScriptedAgent) -> None:
        self._binding = binding
        self._agent = agent
        self._events: asyncio.Queue[AdapterEvent | None] = asyncio.Queue()

    def rebind(self, binding: Binding) -> None:
        """The settings of the next job."""
        self._binding = binding

    async def open(self, session: str | None) -> str | None:
        """Listen to the agent."""
        self._agent.listen(self._events.put_nowait)
        return session or "scripted"

    async def submit(self, work: Work) -> Accepted | Refused:
        """Give the agent one attempt."""
        return self._agent.start(work)

    async def events(self) -> AsyncIterator[AdapterEvent]:
        """What happens from `open` on."""
        while (event := await self._events.get()) is not None:
            yield event

    async def answer(self, question: str, decision: Mapping[str, Any]) -> None:
        """Hand on what a person decided."""
        self._agent.answer(question, decision)

    async def interrupt(self, execution: str) -> bool:
        """Stop one attempt."""
        return self._agent.interrupt(execution)

    async def recover(self, execution: str | None, work: Work) -> Recovery:  # noqa: ARG002 - the key names everything
        """Ask the agent."""
        return self._agent.find(work.key)

    async def recorded(self, key: str) -> None:
        """The agent remembers everything."""

    async def close(self, *, detach: bool = False) -> None:
        """Let go of what runs, or end it."""
        if not detach:
            for key in self._agent.running():
                self._agent.interrupt(key)
        self._agent.listen(lambda _: None)
        self._events.put_nowait(None)
