"""Watching the agent: what it says moves the job on; ceiling, stall and cancel are watched for."""

from collections.abc import Callable, Coroutine
from typing import Any

from relay_receiver.adapters.base import (
    Accepted,
    AdapterEvent,
    Finished,
    Progress,
    Refused,
    Result,
    Started,
    Waiting,
    WaitOver,
)
from relay_receiver.jobs.state import AT_THE_AGENT, JobState
from relay_receiver.jobs.transitions import JobEvent
from relay_receiver.receiver import results
from relay_receiver.receiver.hand import Hand
from relay_receiver.receiver.outbox import Outbox
from relay_receiver.receiver.parts import Parts

SETTLE_SECONDS = 0.03
"""A job that ends this soon after it was accepted goes from `submitting` straight to `output`: one fsync less."""

Refusal = Callable[[Refused], Coroutine[Any, Any, None]]
Later = Callable[[Callable[[], Coroutine[Any, Any, None]]], None]
Beside = Callable[[Coroutine[Any, Any, None], str], Any]


class Watch:
    """Looks after the job at the agent."""

    def __init__(
        self, parts: Parts, hand: Hand, outbox: Outbox, *, refused: Refusal, later: Later, beside: Beside
    ) -> None:
        self._parts = parts
        self._hand = hand
        self._outbox = outbox
        self._refused = refused
        self._later = later
        self._beside = beside

    def accepted(self, answer: Accepted) -> None:
        """The agent has the job; that is committed as soon as it lasts."""
        memory = self._hand.memory
        memory.accepted = answer
        memory.accepted_at = memory.began = memory.last_event = self._parts.boot()

    async def step(self) -> float | None:
        """Commit `running` once it lasts, and look at the limits. Seconds until the next look, None for never."""
        job, memory, parts = self._hand.held(), self._hand.memory, self._parts
        now = parts.boot()
        if job.state is JobState.SUBMITTING and memory.accepted is not None:
            young = memory.accepted_at + SETTLE_SECONDS - now
            if young > 0:
                return young
            await self._commit_running(memory.accepted)
            return 0
        if memory.interrupt is not None:
            return None
        left = memory.began + parts.binding.ceiling - now
        waits = job.state is JobState.WAITING
        if job.cancel is not None or (left <= 0 and not waits):
            memory.ceiling = job.cancel is None
            self.interrupt()
            return None
        if waits:
            return None
        return min(left, self._until_stall(now) or left)

    def _until_stall(self, now: float) -> float | None:
        situation, memory = self._parts.situation, self._hand.memory
        left = memory.last_event + self._parts.binding.stall - now
        if left > 0:
            return left
        if not situation.stalled:
            situation.stalled = True
            silent = round(now - memory.last_event)
            self._parts.log.warning("stalled", extra={"job": self._hand.held().id, "silent_seconds": silent})
        return None

    async def _commit_running(self, accepted: Accepted) -> None:
        await self._hand.move(JobEvent.ACCEPTED, who="adapter", execution=accepted.execution, keeper=accepted.keeper)
        self._stage("running")

    def _stage(self, state: str, detail: str | None = None) -> None:
        self._beside(self._outbox.stage(self._hand.held(), state, detail), f"stage {state}")

    # Stopping it.

    def interrupt(self) -> None:
        """Ask the agent to stop, once; what it answers is heard between two steps of the runner."""
        memory = self._hand.memory
        execution = memory.accepted.execution if memory.accepted else self._hand.held().execution
        if execution is None or memory.interrupt is not None:
            return
        memory.interrupt = self._beside(self._interrupt(execution), "interrupt")

    async def _interrupt(self, execution: str) -> None:
        try:
            confirmed = await self._parts.adapter.interrupt(execution)
        except Exception:
            self._parts.log.exception("interrupt failed")
            confirmed = False
        self._later(lambda: self._interrupted(confirmed=confirmed))

    async def _interrupted(self, *, confirmed: bool) -> None:
        """The agent's own terminal event comes first where there is one: it is in the queue before this."""
        job = self._hand.job
        if job is None or job.state not in AT_THE_AGENT or self._hand.memory.interrupt is None:
            return
        if confirmed:
            await self._hand.finish(self._hand.interrupted())
        else:
            await self._hand.lose("the agent did not confirm that it stopped")

    # What the agent says.

    async def hear(self, event: AdapterEvent) -> None:
        """Take one event; those of other attempts are passed over."""
        job, memory = self._hand.job, self._hand.memory
        if job is None or event.key != f"{job.id}.{job.attempt}":
            return
        memory.last_event = self._parts.boot()
        self._parts.situation.stalled = False
        self._parts.situation.last_activity = self._parts.now()
        if isinstance(event, Finished):
            if job.state in AT_THE_AGENT or job.state is JobState.UNKNOWN:
                await self.finished(event)
        elif job.state in AT_THE_AGENT:
            proves = not isinstance(event, Progress)
            if job.state is JobState.SUBMITTING and memory.accepted is not None and proves:
                await self._commit_running(memory.accepted)
            await self._living(event)

    async def _living(self, event: Started | Progress | Waiting | WaitOver) -> None:
        job, memory = self._hand.held(), self._hand.memory
        match event:
            case Started():
                if job.started_at is None:
                    await self._hand.note(started_at=self._parts.now())
            case Progress(note=note):
                self._parts.situation.last_note = note
            case Waiting(title=title):
                if job.state is JobState.RUNNING:
                    await self._hand.move(JobEvent.WAIT, who="adapter", why=title)
                    memory.waiting_since = self._parts.boot()
                    self._stage("waiting", title)
            case WaitOver():
                if job.state is JobState.WAITING:
                    await self._hand.move(JobEvent.RESUME, who="adapter")
                    memory.began += self._parts.boot() - (memory.waiting_since or self._parts.boot())
                    memory.waiting_since = None
                    self._stage("running")

    async def finished(self, event: Finished) -> None:
        """Take the end of the attempt."""
        job, memory = self._hand.held(), self._hand.memory
        unknown = job.state is JobState.UNKNOWN
        untouched = job.state in {JobState.SUBMITTING, JobState.RUNNING} and job.started_at is None
        if event.result is Result.REFUSED and event.refused is not None and untouched:
            await self._refused(event.refused)
        elif event.result is Result.REFUSED and not unknown:
            await self._hand.finish(results.ending(event), evidence=event.evidence)
        elif event.result in {Result.UNKNOWN, Result.REFUSED}:
            if not unknown:
                await self._hand.lose(event.reason, event.evidence, event.text or None)
        elif event.result is Result.CANCELLED and (memory.ceiling or memory.stopped):
            await self._hand.finish(self._hand.interrupted(event.text), evidence=event.evidence)
        else:
            await self._hand.finish(results.ending(event), evidence=event.evidence)
