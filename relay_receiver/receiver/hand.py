"""The job in hand: its row as the journal has it, what is remembered beside it, and its moves."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from relay_receiver.adapters.base import Accepted
from relay_receiver.jobs.job import Job
from relay_receiver.jobs.outcome import Outcome
from relay_receiver.jobs.state import TERMINAL, JobState
from relay_receiver.jobs.transitions import JobEvent
from relay_receiver.journal import jobs, waiting
from relay_receiver.journal.approvals import Approval
from relay_receiver.receiver import results
from relay_receiver.receiver.parts import Parts


@dataclass(kw_only=True)
class Memory:
    """What a process remembers of its job, and a restart may forget. Boot times in seconds."""

    accepted: Accepted | None = None
    accepted_at: float = 0.0
    began: float = 0.0
    """From here its ceiling counts; moved on by the time it waited for a person."""
    waiting_since: float | None = None
    given: set[str] = field(default_factory=set)
    """Questions whose answer the adapter was given."""
    last_event: float = 0.0
    interrupt: asyncio.Task[None] | None = None
    ceiling: bool = False
    stopped: bool = False
    looks: int = 0
    """How often an unknown job was looked at."""
    look_again_at: float = 0.0


class Hand:
    """Holds at most one job (P6). Every move is a guarded write of the journal first."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.memory = Memory()
        self.job: Job | None = None

    def held(self) -> Job:
        """The job in hand.

        Raises:
            LookupError: there is none.
        """
        if self.job is None:
            raise LookupError("no job is in flight")
        return self.job

    def take(self, job: Job | None) -> None:
        """Hold this job, or none, and remember nothing of the one before."""
        self.job = job
        self.memory = Memory()
        self._parts.situation.stalled = False
        self._parts.situation.last_note = None

    async def move(self, event: JobEvent, *, who: str, why: str = "", **columns: Any) -> None:  # noqa: ANN401 - columns
        """Move the job as the table says, and let it go where that is an end."""
        job = self.held()
        moved = await self._parts.write(jobs.move, job.id, event, at=self._parts.now(), who=who, why=why, **columns)
        self._parts.log.info("job", extra={"job": job.id, "state": moved.state.value, "why": why})
        self.job = None if moved.state in TERMINAL or moved.state is JobState.QUEUED else moved
        if job.state is JobState.WAITING:
            self._parts.asking.set()

    # Questions to people.

    async def ask(self, asked: Approval) -> Approval:
        """Have the job wait for an answer; the question as the journal has it."""
        self.job, found = await self._parts.write(waiting.ask, asked, at=self._parts.now())
        self._wait()
        return found

    async def answered(self, approval: str) -> None:
        """The agent waits no longer for this; with the last such question the job runs again."""
        resumed = await self._parts.write(waiting.over, approval, at=self._parts.now())
        if resumed is not None and self.job is not None and resumed.id == self.job.id:
            self.job = resumed
        self._wait()

    async def found(self, asked: Sequence[Approval]) -> float:
        """Have the job wait for what it is found to wait for; the seconds that it has waited so far."""
        parts, job = self._parts, self.held()
        self.job = await parts.write(waiting.found, job.id, job.attempt, asked, at=parts.now())
        self._wait()
        return await parts.journal.read(waiting.waited, self.job, at=parts.now())

    def _wait(self) -> None:
        """Stop the clock of the job's ceiling while it waits for people."""
        memory, boot = self.memory, self._parts.boot()
        if self.job is not None and self.job.state is JobState.WAITING:
            memory.waiting_since = boot if memory.waiting_since is None else memory.waiting_since
        elif memory.waiting_since is not None:
            memory.began += boot - memory.waiting_since
            memory.waiting_since = None
        self._parts.asking.set()

    async def note(self, **columns: Any) -> None:  # noqa: ANN401 - columns
        """Store facts of the job that are no move."""
        changed = await self._parts.write(jobs.set_columns, self.held().id, **columns)
        self.job = changed

    async def look(self) -> None:
        """See whether its requester has asked to cancel it, which intake stores."""
        job = self.held()
        stored = await self._parts.journal.read(jobs.get, job.id)
        if stored is not None and stored.cancel is not None and stored.attempt == job.attempt:
            self.job = stored

    async def requeue(self, event: JobEvent, *, who: str, why: str) -> Job:
        """Back into the queue, in its order, under a new claim."""
        queued = await self._parts.write(jobs.requeue, self.held().id, event, at=self._parts.now(), who=who, why=why)
        self._parts.log.info("job", extra={"job": queued.id, "state": queued.state.value, "why": why})
        self.take(None)
        return queued

    async def lose(self, why: str, evidence: Mapping[str, Any] | None = None, suggestion: str | None = None) -> None:
        """Nobody can know what became of it: only a person, or later proof, moves it on."""
        await self.move(
            JobEvent.LOST, who="adapter", why=why, error=why, evidence=_json(evidence), text=suggestion, notified=False
        )

    async def finish(self, end: results.Ending, *, evidence: Mapping[str, Any] | None = None) -> None:
        """Commit the ending and the exact body; it is posted after that, and only then."""
        job = self.held()
        body = results.body(job, self._parts.binding.channel, end, run=job.run_claim is not None)
        await self.move(
            JobEvent.OUTPUT,
            who="adapter",
            why=end.error or "",
            text=end.text,
            outcome=end.outcome.value,
            error=end.error,
            usage=end.usage,
            body=json.dumps(body) if results.is_posted(job, end.outcome) else None,
            evidence=_json(evidence),
        )

    def interrupted(self, text: str = "") -> results.Ending:
        """The ending of a job that was stopped, with the reason why it was."""
        if self.memory.ceiling:
            minutes = self._parts.binding.ceiling / 60
            why = f"it ran into its limit of {minutes:g} minutes and was stopped"
            return results.Ending(outcome=Outcome.FAILED, text=text, error=why)
        if self.memory.stopped:
            why = "the receiver was stopped while it ran"
            return results.Ending(outcome=Outcome.FAILED, text=text, error=why)
        return results.Ending(outcome=Outcome.CANCELLED, text=text, error=f"by {self.held().cancel or 'request'}")


def _json(evidence: Mapping[str, Any] | None) -> str | None:
    return json.dumps(dict(evidence), default=str) if evidence else None
