"""One hand-over of one job: ask the hub's run guard, commit the intent, call the adapter. At most once."""

import asyncio
import contextlib
import secrets
from dataclasses import dataclass
from enum import Enum, auto

from relay_receiver.adapters.base import Accepted, HandoverLost, Refused, Scope, Work
from relay_receiver.client.errors import HubAway, HubError
from relay_receiver.client.profiles import JobCredential
from relay_receiver.jobs import prompt
from relay_receiver.jobs.job import Job
from relay_receiver.jobs.transitions import JobEvent, TransitionError
from relay_receiver.journal import jobs, messages
from relay_receiver.journal.journal import Connection, MissedTransition
from relay_receiver.receiver.parts import Parts
from relay_receiver.wire import faultpoint
from relay_receiver.wire.message import Message

FRESH_SECONDS = 10.0
"""A begin older than this, in boot time, is asked again before the adapter is called."""

_ENDED_AT_HUB = {
    "run_finished": JobEvent.ELSEWHERE,
    "run_settled": JobEvent.ELSEWHERE,
    "withdrawn": JobEvent.WITHDRAW,
    "expired": JobEvent.EXPIRE,
}


class Begin(Enum):
    """What the run guard said."""

    OPEN = auto()
    ENDED = auto()
    """Look at the queue again: the job left it (done elsewhere, withdrawn, expired or gone), or has a new claim."""
    LATER = auto()
    """Not now: the hub is away, the fence is old, or another run is open."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Handed:
    """The job after the call, and what the adapter said; `None` where the outcome of the call is unknown.

    `job` is None where it never left the queue.
    """

    job: Job | None
    answer: Accepted | Refused | None
    why: str = ""


class Handover:
    """Takes one queued job to the agent."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._credential: str | None = None
        self._fence: str | None = None
        """Of the last begin: the run keeps it, whatever becomes of the lease."""
        self._messages: tuple[Message | None, list[Message]] = (None, [])
        """What is asked, and what was said before, of the job of the last begin."""
        self.later: HubAway | HubError | None = None
        """Why the last begin was put off."""

    async def begin(self, job: Job) -> Begin:
        """Ask the hub for the run of this message. Repeated safely with the job's claim."""
        if job.run_claim is not None and not await self.close_run(job):
            return Begin.LATER
        async with asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(self._ask(job), name="begin")
            # Read while the hub is asked: the answer is not waited for twice.
            reading = tasks.create_task(self._parts.journal.read(_read, job), name="read the messages")
        self._messages = reading.result()
        return asking.result()

    async def _ask(self, job: Job) -> Begin:
        parts = self._parts
        self._fence = parts.situation.fence
        try:
            answer = await parts.hub.begin(
                channel=parts.binding.channel,
                holder=parts.binding.holder,
                fence=self._fence,
                request_id=job.id,
                message=job.message,
                attempt=job.attempt + 1,
                claim=job.claim,
            )
        except HubAway as error:
            self.later = error
            return Begin.LATER
        except HubError as error:
            if error.code == "claim_freed":
                # It was given back, and the process ended before its journal knew: nothing was handed over under it.
                await parts.write(jobs.run_closed, job.id, claim=job.claim)
                return Begin.ENDED
            if error.status == 404 or error.code in _ENDED_AT_HUB:
                event = _ENDED_AT_HUB.get(error.code, JobEvent.WITHDRAW)
                with contextlib.suppress(TransitionError):  # it left the queue meanwhile
                    await parts.write(jobs.move, job.id, event, at=parts.now(), who="hub", why=error.sentence)
                return Begin.ENDED
            self.later = error
            return Begin.LATER
        self._credential = answer.get("credential")
        return Begin.OPEN

    async def close_run(self, job: Job) -> bool:
        """Tell the hub that an earlier attempt did not happen. True once it knows."""
        parts = self._parts
        try:
            await parts.hub.finish(
                channel=parts.binding.channel,
                holder=job.holder or parts.binding.holder,
                fence=job.fence or parts.situation.fence,
                request_id=job.id,
                claim=job.run_claim,
                state="not-accepted",
                outcome=None,
                reason="this attempt did not start",
            )
        except HubAway as error:
            self.later = error
            return False
        except HubError as error:
            if error.code not in {"run_settled", "run_finished", "unknown_run", "not_found"}:
                self.later = error
                return False
        await parts.write(jobs.run_closed, job.id)
        return True

    async def call(self, job: Job) -> Handed | None:
        """Commit `submitting` and call the adapter once. None where the hub took its leave back meanwhile."""
        parts = self._parts
        begun = parts.boot()
        try:
            work = await self._work(job)
        except OSError as error:
            parts.log.warning("hand-over not prepared", extra={"job": job.id, "why": str(error)})
            return Handed(job=None, answer=Refused(scope=Scope.BINDING, reason=f"it could not be prepared: {error}"))
        try:
            job = await parts.write(
                jobs.submit,
                job.id,
                holder=parts.binding.holder,
                fence=self._fence,
                run_claim=job.claim,
                at=parts.now(),
            )
        except MissedTransition as error:
            # Withdrawn while the hub was asked: its run is closed before anything else is begun.
            parts.log.info("hand-over given up", extra={"job": job.id, "why": str(error)})
            parts.situation.reconciled = False
            parts.lease_in_doubt.set()
            return None
        if parts.boot() - begun > FRESH_SECONDS and not await self._still_open(job):
            return None
        parts.log.info("submitting", extra={"job": job.id, "attempt": job.attempt})
        faultpoint.hit("adapter.submit.before")
        try:
            answer = await parts.adapter.submit(work)
        except HandoverLost as error:
            return Handed(job=job, answer=None, why=str(error))
        except Exception as error:
            parts.log.exception("hand-over failed", extra={"job": job.id})
            return Handed(job=job, answer=None, why=f"the adapter failed in the middle of the hand-over: {error!r}")
        faultpoint.hit("adapter.submit.after")
        return Handed(job=job, answer=answer)

    async def _still_open(self, job: Job) -> bool:
        """Begin again after a long pause, in the state `submitting`, where nothing was handed over yet."""
        parts = self._parts
        try:
            await parts.hub.begin(
                channel=parts.binding.channel,
                holder=parts.binding.holder,
                fence=parts.situation.fence,
                request_id=job.id,
                message=job.message,
                attempt=job.attempt,
                claim=job.run_claim or job.claim,
            )
        except (HubAway, HubError) as error:
            why = f"the hub did not confirm the run after a pause: {error.sentence}"
            await parts.write(jobs.requeue, job.id, JobEvent.REFUSED, at=parts.now(), who="receiver", why=why)
            return False
        return True

    async def _work(self, job: Job) -> Work:
        parts = self._parts
        binding = parts.binding
        asked, context = self._messages
        if asked is None:
            raise LookupError(f"the message of job {job.id} is not in the journal")
        credential = None
        if binding.tools and self._credential:
            name = "agent.job" if parts.adapter.long_lived else f"{job.id}.{job.attempt + 1}.job"
            credential = parts.spool / name
            JobCredential(
                url=parts.profile.url,
                workspace=binding.workspace,
                agent=binding.agent,
                agent_name=binding.agent_name,
                channel=binding.channel,
                job=job.id,
                message=job.message,
                token=self._credential,
                expires=None,
            ).write(credential)
        text = prompt.compose(
            _said(asked),
            [_said(message) for message in context],
            boundary=secrets.token_hex(16),
            me=binding.agent,
            my_name=binding.agent_name,
            channel_name=binding.channel_name,
            request=job.request,
            tools=credential is not None,
        )
        return Work(job=job.id, attempt=job.attempt + 1, prompt=text, message=job.message, credential=credential)


def _read(conn: Connection, job: Job) -> tuple[Message | None, list[Message]]:
    context = messages.context(conn, before_event=job.event, count=prompt.CONTEXT_MESSAGES + 1)
    return messages.get(conn, job.message), context


def _said(message: Message) -> prompt.Said:
    return prompt.Said(
        id=message.id,
        author=message.author.id,
        author_name=message.author.name,
        author_kind=message.author.kind,
        kind=message.kind,
        at=message.created_at,
        content=message.content,
    )
