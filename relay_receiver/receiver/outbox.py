"""The outbox: what the hub must be told, under ids that make a repeated call harmless."""

import json
from enum import Enum, auto

from relay_receiver.client.errors import HubAway, HubError
from relay_receiver.jobs.job import Job, notice_id
from relay_receiver.jobs.outcome import WIRE_OUTCOME, Outcome
from relay_receiver.jobs.transitions import JobEvent
from relay_receiver.journal import jobs
from relay_receiver.receiver import results
from relay_receiver.receiver.backoff import Ladder
from relay_receiver.receiver.parts import Parts

CEILING = 30.0
"""Seconds between tries to post, at the most: the requester waits."""

_FOR_LATER = frozenset({401, 408, 425, 429})


class Posted(Enum):
    """What became of a post."""

    DONE = auto()
    LATER = auto()


class Outbox:
    """Posts results and notices, and says stages."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._ladder = Ladder(parts.boot, ceiling=CEILING)

    def remaining(self) -> float | None:
        """Seconds until the next try, None when nothing is put off."""
        return self._ladder.remaining() or None

    def retry_now(self) -> None:
        """Forget the back-off: the hub was heard of."""
        self._ladder.succeeded()

    async def post(self, job: Job) -> Posted:
        """Post the result of a job in `output`, or close its run where there is nothing to post; commit its end."""
        if self._ladder.remaining():
            return Posted.LATER
        parts = self._parts
        try:
            sent = None if job.body is None else await self._send(job)
            if sent is None:
                await self._finish(job, job.outcome or Outcome.FAILED.value, job.error)
        except HubAway as error:
            return self._later(error)
        except HubError as error:
            if for_later(error):
                return self._later(error)
            if job.run_claim is not None and _is_no_run_any_more(error):
                return await self._without_run(job)
            return await self._refused(job, error)
        self._said()
        message, number = sent or (None, None)
        await parts.write(jobs.posted, job.id, result=message, event=number, at=parts.now())
        self._stored(message, number)
        parts.log.info("posted", extra={"job": job.id, "result": message, "outcome": job.outcome})
        return Posted.DONE

    async def post_leftovers(self) -> bool:
        """Post one result that belongs to no run (cancelled in the queue, accepted late). True if one left."""
        if self._ladder.remaining():
            return False
        parts = self._parts
        waiting = await parts.journal.read(jobs.unposted)
        if not waiting:
            return False
        job = waiting[0]
        try:
            message, number = await self._send(job)
        except (HubAway, HubError) as error:
            if for_later(error):
                self._later(error)
                return False
            parts.situation.last_error = error.sentence
            await parts.write(
                jobs.set_columns, job.id, body=None, error=f"the hub refused the result: {error.sentence}"
            )
            return True
        self._said()
        await parts.write(jobs.set_columns, job.id, result=message, result_event=number)
        self._stored(message, number)
        return True

    async def notify(self, job: Job) -> bool:
        """Tell the requester that the outcome is unknown. True once the hub has it, or will never take it."""
        if self._ladder.remaining():
            return False
        parts = self._parts
        text = (
            f"I cannot tell whether this was done: {job.error or 'the outcome of the hand-over is unknown'}. "
            "It will not be run again unless a person says so. "
            f"On my machine: relay receiver job {job.id}"
        )
        try:
            await parts.hub.post_message(
                {
                    "channel": parts.binding.channel,
                    "kind": "message",
                    "content": text,
                    "replyTo": job.message,
                    "mentions": [],
                    "operationId": notice_id(job.id, job.attempt),
                    "notice": {"requestId": job.id},
                }
            )
        except (HubAway, HubError) as error:
            if for_later(error):
                self._later(error)
                return False
            parts.situation.last_error = f"the notice of an unknown outcome was refused: {error.sentence}"
            parts.log.warning("notice refused", extra={"job": job.id, "why": error.sentence})
        self._said()
        return True

    async def stage(self, job: Job, state: str, detail: str | None) -> None:
        """Say once how far the job is; nobody waits for it, and a lost one is not repeated."""
        parts = self._parts
        try:
            await parts.hub.stage(
                channel=parts.binding.channel,
                holder=job.holder or parts.binding.holder,
                fence=job.fence,
                request_id=job.id,
                claim=job.run_claim,
                state=state,
                detail=detail,
            )
        except (HubAway, HubError) as error:
            parts.log.info("stage not told", extra={"job": job.id, "state": state, "why": error.sentence})

    def _stored(self, message: str | None, number: int | None) -> None:
        if message is not None:
            self._parts.unseen.add(message, number, watermark=self._parts.binding.watermark or 0)

    async def _send(self, job: Job) -> tuple[str, int | None]:
        """Post the result; its id and event number."""
        parts = self._parts
        body = json.loads(job.body or "{}")
        if body.get("attachments"):
            end = results.Ending(
                outcome=Outcome(job.outcome or Outcome.COMPLETED.value), text=job.text or "", error=job.error
            )
            await parts.hub.upload(
                results.whole_text(end),
                name=results.ATTACHMENT_NAME,
                media_type=results.ATTACHMENT_TYPE,
                channel=parts.binding.channel,
            )
        message = await parts.hub.post_message(body)
        number = message.get("event")
        return str(message["id"]), number if isinstance(number, int) else None

    async def _finish(self, job: Job, outcome: str, reason: str | None) -> None:
        if job.run_claim is None:
            return
        await self._parts.hub.finish(
            channel=self._parts.binding.channel,
            holder=job.holder or self._parts.binding.holder,
            fence=job.fence,
            request_id=job.id,
            claim=job.run_claim,
            state="failed" if outcome == Outcome.FAILED.value else "completed",
            outcome=WIRE_OUTCOME[Outcome(outcome)],
            reason=reason,
        )

    async def _without_run(self, job: Job) -> Posted:
        """The hub has no run of it any more: the result stands by itself, under the same operation id."""
        self._parts.log.warning("no run at the hub", extra={"job": job.id})
        body = None if job.body is None else results.without_run(job.body)
        return await self.post(await self._parts.write(jobs.set_columns, job.id, run_claim=None, body=body))

    async def _refused(self, job: Job, error: HubError) -> Posted:
        """The hub will never take this result as it is: the job ends, its text is kept, the queue goes on."""
        parts = self._parts
        parts.situation.last_error = f"the hub refused a result: {error.sentence}"
        parts.log.warning("result refused", extra={"job": job.id, "status": error.status, "why": error.sentence})
        if error.code in {"run_settled", "operation_reused", "run_finished"}:
            why = f"the hub has closed it: {error.sentence}"
            await parts.write(jobs.move, job.id, JobEvent.ELSEWHERE, at=parts.now(), who="hub", why=why)
            self._said()
            return Posted.DONE
        reason = f"the result could not be delivered: {error.sentence}"
        try:
            await self._finish(job, Outcome.FAILED.value, reason)
        except HubAway as away:
            return self._later(away)
        except HubError as refusal:
            parts.log.warning("finish refused", extra={"job": job.id, "why": refusal.sentence})
        await parts.write(jobs.posted, job.id, result=None, at=parts.now(), deliverable=False, why=reason)
        self._said()
        return Posted.DONE

    def _later(self, error: HubAway | HubError) -> Posted:
        parts = self._parts
        after = getattr(error, "retry_after", None)
        wait = self._ladder.failed(after=after)
        parts.situation.last_error = error.sentence
        if getattr(error, "status", None) == 401:
            parts.situation.unauthorized = True
        parts.log.warning("post put off", extra={"why": error.sentence, "retry_in": round(wait, 1)})
        return Posted.LATER

    def _said(self) -> None:
        self._ladder.succeeded()
        self._parts.situation.unauthorized = False


def _is_no_run_any_more(error: HubError) -> bool:
    """A restored hub has forgotten the run; or a person freed it to have the work done, and here it is done."""
    freed = error.code == "run_settled" and error.data.get("outcome") == "not-accepted"
    return freed or error.code == "unknown_run"


def for_later(error: HubAway | HubError) -> bool:
    """Whether the hub may take the same post another time."""
    return isinstance(error, HubAway) or error.status in _FOR_LATER or error.status >= 500
