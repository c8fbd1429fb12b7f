"""What an agent asks goes to people at the hub, and their decisions come back (P11).

The journal leads: a question is committed before the hub is asked, a decision before the agent has it. The hub is asked
under an operation id of the question, so that it may be asked again. `Watch` gives decisions to the agent.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from relay_receiver.adapters.base import Waiting
from relay_receiver.client.errors import HubAway, HubError
from relay_receiver.jobs.job import Job
from relay_receiver.journal import approvals
from relay_receiver.journal.approvals import Approval, Decision
from relay_receiver.journal.journal import Connection
from relay_receiver.journal.tables import ApprovalKind, ApprovalState
from relay_receiver.receiver import decisions
from relay_receiver.receiver.backoff import Ladder
from relay_receiver.receiver.decisions import HUB, RECEIVER, Unfit
from relay_receiver.receiver.outbox import for_later
from relay_receiver.receiver.parts import Parts
from relay_receiver.wire.action import visible
from relay_receiver.wire.message import iso, seconds

CEILING = 30.0
"""Seconds between tries to reach the hub, at the most."""
LOOK_SECONDS = 60.0
"""Between looks at a request that is open: its event tells sooner, except while there is no lease."""
EXPIRED_SECONDS = 2.0
"""After its time a request is looked at so much later: its event comes within a second."""
OVERDUE_SECONDS = 10.0
"""Between looks at one whose time has passed here, and not yet at the hub."""
TITLE_CHARS = 200
"""Characters of a title; what is decided is shown whole below it."""

NOT_ASKED = "this receiver is set to ask nobody"
_NOTE = (
    "A note from the program that runs you, not from a person: what you asked for was declined: {why}. "
    "Go on without it, or say in your answer what is missing and why."
)


def asked(job: Job, wait: Waiting, approvers: tuple[str, ...], *, at: float) -> Approval:
    """The question of an agent as the journal keeps it."""
    return approvals.new(
        job=job.id,
        attempt=job.attempt,
        question=wait.question,
        kind=wait.kind,
        title=_title(wait.title),
        action=wait.action,
        schema=wait.schema,
        approvers=approvers,
        at=at,
    )


def _title(words: str) -> str:
    line = " ".join(visible(words).split()) or "The agent asks"
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1] + "…"


def decision(of: Approval) -> dict[str, Any]:
    """What the agent is given of a decided question. Everything but a person's yes declines."""
    if of.state is ApprovalState.APPROVED:
        return {"decision": "accept"}
    if of.state is ApprovalState.ANSWERED:
        return {"decision": "accept", "answers": json.loads(of.answer or "{}")}
    if of.reason is None:
        return {"decision": "decline"}
    return declined(of.reason)


def declined(why: str) -> dict[str, Any]:
    """A decline that no person spoke, with a note to the agent."""
    return {"decision": "decline", "note": _NOTE.format(why=why)}


def take(conn: Connection, request: Mapping[str, Any], *, agent: str, channel: str, at: float) -> str | None:
    """Commit what a request at the hub says about a question of this journal.

    Returns:
        Why it is not used, where it names a question here and does not fit it.
    """
    row = approvals.get(conn, str(request.get("operationId")))
    if row is None or decisions.is_partial(request):
        return None
    try:
        found = decisions.read(row, request, agent=agent, channel=channel)
    except Unfit as why:
        return str(why)
    if row.request is None:
        approvals.known_as(conn, row.id, str(request["id"]))
    if found is not None:
        approvals.decide(conn, row.id, found, at=at)
    return None


class Approvals:
    """Asks people at the hub, looks for their answers, and tells the hub how each question ended."""

    def __init__(self, parts: Parts, *, changed: Callable[[], None]) -> None:
        self._parts = parts
        self._changed = changed
        self._ladder = Ladder(parts.boot, ceiling=CEILING)
        self._look_at: dict[str, float] = {}
        """When each open request is looked at next, in boot time."""
        self._soon = False
        """All of them are looked at now."""

    def look_soon(self) -> None:
        """Look at every open request now: an event may have been missed, or left something out."""
        self._soon = True
        self._parts.asking.set()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            self._parts.asking.clear()
            wait = await self._step()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._parts.asking.wait()
                    # An answer that was put off is not tried sooner by it.
                    await asyncio.sleep(self._ladder.remaining())

    async def _step(self) -> float | None:
        """Do what can be done now. Seconds until there is more, None for when something happens."""
        rows = await self._parts.journal.read(approvals.unsettled)
        soon, self._soon = self._soon, False
        self._look_at = {row.id: 0.0 if soon else self._look_at.get(row.id, 0.0) for row in rows}
        following: list[float] = []
        for row in rows:
            try:
                wait = await self._one(row)
            except (HubAway, HubError) as error:
                return self._put_off(error)
            if wait is not None:
                following.append(wait)
        self._ladder.succeeded()
        return min(following, default=None)

    async def _one(self, row: Approval) -> float | None:
        if row.told:
            await self._close(row)
            return None
        if row.state is not ApprovalState.OPEN:
            return None
        if row.request is None:
            return await self._ask(row)
        wait = self._look_at[row.id] - self._parts.boot()
        if wait > 0:
            return wait
        return await self._look(row, row.request)

    async def _ask(self, row: Approval) -> float:
        """Make the request at the hub, or find it made; what the hub will never take is declined."""
        parts = self._parts
        if parts.hub_now() >= row.asked_at + parts.binding.approval_time:
            await self._decide(row, ApprovalState.EXPIRED, "the hub was away, and nobody could be asked in time")
            return 0.0
        try:
            request = await parts.hub.create_request(self._body(row))
        except HubError as error:
            if _for_later(error):
                raise
            why = f"nobody could be asked: {error.sentence}"
            parts.situation.last_error = f"an approval was declined, {why}"
            await self._decide(row, ApprovalState.DECLINED, why)
            return 0.0
        parts.log.info("asked", extra={"job": row.job, "request": request.get("id"), "title": row.title})
        return await self._taken(row, request)

    def _body(self, row: Approval) -> dict[str, Any]:
        parts = self._parts
        body: dict[str, Any] = {
            "channel": parts.binding.channel,
            "kind": "approval" if row.kind is ApprovalKind.APPROVAL else "form",
            "title": row.title,
            "description": (
                f"{parts.binding.agent_name} asks, at work in {parts.binding.directory}. What is decided is the action "
                "below, all of it; `agentSays` in it are the agent's own words, which nobody has checked."
            ),
            "action": json.loads(row.action),
            "job": row.job,
            "operationId": row.id,
            "expiresAt": iso(row.asked_at + parts.binding.approval_time),
        }
        if row.schema is not None:
            body["schema"] = json.loads(row.schema)
        if row.approvers is not None:
            body["approvers"] = json.loads(row.approvers)
        return body

    async def _look(self, row: Approval, request: str) -> float:
        try:
            found = await self._parts.hub.request(request)
        except HubError as error:
            if error.status != 404:
                raise
            # The hub was restored: it is asked again, under the same operation id.
            await self._parts.write(approvals.known_as, row.id, None)
            return 0.0
        return await self._taken(row, found)

    async def _taken(self, row: Approval, request: Mapping[str, Any]) -> float:
        parts = self._parts
        binding = parts.binding
        unfit = await parts.write(take, request, agent=binding.agent, channel=binding.channel, at=parts.now())
        if unfit is not None:
            why = f"the hub's request is not the one that was made: {unfit}"
            parts.log.warning("answer not used", extra={"request": request.get("id"), "why": unfit})
            await self._decide(row, ApprovalState.DECLINED, why)
        wait = min(LOOK_SECONDS, self._left(request))
        self._look_at[row.id] = parts.boot() + wait
        self._changed()
        return wait

    def _left(self, request: Mapping[str, Any]) -> float:
        """Seconds until the request has expired, by the hub's clock, and a moment longer."""
        try:
            until = seconds(str(request.get("expiresAt")))
        except ValueError:
            return LOOK_SECONDS
        left = until - self._parts.hub_now()
        return left + EXPIRED_SECONDS if left > 0 else OVERDUE_SECONDS

    async def _decide(self, row: Approval, state: ApprovalState, why: str) -> None:
        parts = self._parts
        parts.log.warning("declined", extra={"job": row.job, "question": row.question, "why": why})
        await parts.write(approvals.decide, row.id, Decision(state=state, by=RECEIVER, reason=why), at=parts.now())
        self._changed()

    async def _close(self, row: Approval) -> None:
        """Tell the hub how it ended; a request that ended there otherwise stays as it is."""
        end = _end(row)
        request = row.request or (await self._find(row) if end is not None else None)
        if request is not None and end is not None:
            try:
                await self._parts.hub.close_request(request, *end)
            except HubError as error:
                if _for_later(error):
                    raise
                self._parts.log.info("request not closed", extra={"request": request, "why": error.sentence})
        await self._parts.write(approvals.settle, row.id)

    async def _find(self, row: Approval) -> str | None:
        """The request that was made without its answer being heard."""
        found = await self._parts.hub.requests(self._parts.binding.channel, "open")
        return next((str(each["id"]) for each in found if each.get("operationId") == row.id), None)

    def _put_off(self, error: HubAway | HubError) -> float:
        parts = self._parts
        wait = self._ladder.failed(after=getattr(error, "retry_after", None))
        if getattr(error, "status", None) == 401:
            parts.situation.unauthorized = True
        parts.log.info("asking people put off", extra={"why": error.sentence, "retry_in": round(wait, 1)})
        return wait


def _for_later(error: HubError) -> bool:
    return for_later(error) or error.code == "too_many_open"


def _end(row: Approval) -> tuple[str, str | None] | None:
    """State and reason with which a request is closed; None where the hub itself ended it."""
    if row.state is ApprovalState.CLOSED:
        return "superseded", "The agent waits for it no longer."
    if row.decided_by == HUB:
        return None
    if row.decided_by == RECEIVER:
        return "expired" if row.state is ApprovalState.EXPIRED else "superseded", row.reason
    return "applied", None
