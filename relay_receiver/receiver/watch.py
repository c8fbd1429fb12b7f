"""Watching the agent: what it says moves the job on; ceiling, stall and cancel are watched for."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
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
from relay_receiver.journal.approvals import name, untold
from relay_receiver.journal.binding import ASK
from relay_receiver.journal.tables import ApprovalState
from relay_receiver.receiver import approvals, results
from relay_receiver.receiver.hand import Hand
from relay_receiver.receiver.outbox import Outbox
from relay_receiver.receiver.parts import Parts
from relay_receiver.wire import faultpoint

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
            await self._give_decided()
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
            if isinstance(event, Waiting):
                await self.give(event.question, approvals.declined("the job that asked has ended"))
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
        elif isinstance(event, Waiting):
            await self.give(event.question, approvals.declined("nobody knows what became of the job that asked"))

    async def _living(self, event: Started | Progress | Waiting | WaitOver) -> None:
        job = self._hand.held()
        match event:
            case Started():
                if job.started_at is None:
                    await self._hand.note(started_at=self._parts.now())
            case Progress(note=note):
                self._parts.situation.last_note = note
            case Waiting():
                await self._asked(event)
            case WaitOver(question=question):
                await self._hand.answered(name(job.id, job.attempt, question))

    # What it asks of people.

    async def _asked(self, wait: Waiting) -> None:
        job, parts = self._hand.held(), self._parts
        if parts.binding.approvals != ASK:
            await self.give(wait.question, approvals.declined(approvals.NOT_ASKED))
            return
        row = await self._hand.ask(approvals.asked(job, wait, parts.binding.approvers, at=parts.hub_now()))
        if row.told:
            await self.give(wait.question, approvals.declined("what it asked was closed before"))

    async def _give_decided(self) -> None:
        """Give the agent what was decided, once in this process; `WaitOver` tells that it has it."""
        job, given = self._hand.held(), self._hand.memory.given
        for row in await self._parts.journal.read(untold, job.id):
            if row.state is not ApprovalState.OPEN and row.id not in given:
                given.add(row.id)
                self._parts.log.info("decided", extra={"job": job.id, "what": row.state.value, "by": row.decided_by})
                await self.give(row.question, approvals.decision(row))

    async def _note_answered(self, questions: Sequence[str]) -> None:
        job = self._hand.held()
        if job.state is not JobState.WAITING or not questions:
            return
        for row in await self._parts.journal.read(untold, job.id):
            if row.question in questions:
                await self._hand.answered(row.id)

    async def give(self, question: str, decision: Mapping[str, Any]) -> None:
        """Give an answer to the agent; where that fails, the end of the execution is told as always."""
        faultpoint.hit("adapter.answer.before")
        try:
            await self._parts.adapter.answer(question, decision)
        except Exception:
            self._parts.log.exception("answer not given")
        faultpoint.hit("adapter.answer.after")

    async def finished(self, event: Finished) -> None:
        """Take the end of the attempt, and first what it says of answers that a process before this one gave."""
        await self._note_answered(event.answered)
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
