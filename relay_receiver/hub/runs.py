"""Runs: one for each agent and message, for as long as the message. What keeps a message from being run twice."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, insert, select, update

from relay_receiver.hub import ask_views, events, ids, message_views, receipts
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.errors import Refusal, not_found
from relay_receiver.hub.prepared import Prepared
from relay_receiver.hub.store import AUTH_CHANGED
from relay_receiver.hub.tables import RUN_OPEN, job_credential, message, receiver, run
from relay_receiver.wire.message import iso
from relay_receiver.wire.stage import Stage, stage_of_result

NOT_ACCEPTED = "not-accepted"
"""The state, or a person's outcome, that frees the message for a new claim."""
UNKNOWN = "unknown"
NO_SCOPE = ""
"""Of clients that name no channel."""

_STAGE_OF_STATE = {
    "failed": Stage.FAILED,
    "abandoned": Stage.FAILED,
    "quiet": Stage.QUIET,
    "cancelled": Stage.CANCELLED,
    "expired": Stage.EXPIRED,
    "withdrawn": Stage.WITHDRAWN,
    UNKNOWN: Stage.UNKNOWN,
}
_TOLD = {"starting": Stage.STARTING, "running": Stage.RUNNING, "waiting": Stage.WAITING, UNKNOWN: Stage.UNKNOWN}

Json = dict[str, Any]
RunRow = Row[*tuple[Any, ...]]

_by_message = Prepared(select(run).where(run.c.message == bindparam("said"), run.c.member == bindparam("who")))
_by_request = Prepared(
    select(run).where(
        run.c.member == bindparam("who"), run.c.scope == bindparam("place"), run.c.request == bindparam("said")
    )
)
_open = Prepared(select(run).where(run.c.member == bindparam("who"), run.c.scope == bindparam("place"), RUN_OPEN))
_lease = Prepared(select(receiver).where(receiver.c.member == bindparam("who"), receiver.c.scope == bindparam("place")))
_by_id = Prepared(select(run).where(run.c.id == bindparam("wanted")))
_insert = Prepared(insert(run))
_end = Prepared(
    update(run)
    .where(run.c.id == bindparam("wanted"), run.c.state == bindparam("before"))
    .values(
        state=bindparam("over"),
        outcome=bindparam("came_to"),
        reason=bindparam("why"),
        ended_at=bindparam("at"),
        settled_by=bindparam("by"),
        claim=bindparam("kept"),
        freed_claim=bindparam("freed"),
    )
)
_end_credentials = Prepared(delete(job_credential).where(job_credential.c.run == bindparam("of")))
_insert_credential = Prepared(insert(job_credential))


@dataclass(frozen=True, kw_only=True, slots=True)
class Ref:
    """A run as a client names it. What it leaves out is not compared."""

    scope: str
    holder: str
    request: str
    fence: str | None = None
    claim: str | None = None


def open_run(conn: Connection, who: str, scope: str) -> RunRow | None:
    """The one run that an agent has open in a scope."""
    return _open(conn, who=who, place=scope).one_or_none()


def by_request(conn: Connection, who: str, scope: str, request: str) -> RunRow | None:
    """A run by what its client calls it; one that was begun without a channel is found too."""
    found = _by_request(conn, who=who, place=scope, said=request).one_or_none()
    return found if found or not scope else _by_request(conn, who=who, place=NO_SCOPE, said=request).one_or_none()


def by_id(conn: Connection, wanted: str) -> RunRow | None:
    """A run by the hub's own id of it."""
    return _by_id(conn, wanted=wanted).one_or_none()


def view(row: RunRow) -> Json:
    """An open run as lease and begin tell it."""
    return {
        "requestId": row.request,
        "message": row.message,
        "attempt": row.attempt,
        "claim": row.claim,
        "holderId": row.holder,
        "fence": int(row.fence),
        "state": row.state,
        "stage": row.stage,
        "cancelRequested": bool(row.cancel_requested),
        "beganAt": iso(row.began_at),
    }


def begin(
    conn: Connection, actor: Actor, ref: Ref, *, message: str | None, attempt: int, credential: str, at: float
) -> Json:
    """Open the run of a message, or find it open under the same claim.

    Args:
        credential: the digest of the job credential that goes with this answer.

    Raises:
        Refusal: 404, the hub has no such message in this channel; 409 `run_finished`, `run_unresolved`, `withdrawn`,
            `expired`, `fenced`.
    """
    asked = None if message is None else _asked(conn, actor, ref, message)
    row = _find(conn, actor, ref, message)
    if row is not None and row.state in {"finished", "settled"}:
        raise ended(row, code="run_finished")
    lease = _need_holder(conn, actor, ref)
    if row is not None and row.state == "open":
        if row.claim != ref.claim or row.holder != ref.holder or row.request != ref.request:
            raise _unresolved(row)
        _insert_credential(conn, digest=credential, run=row.id)
        if row.fence == lease.fence:
            return view(row)
        # The same holder got its lease back under a new fence: from here on the run is its run of that one.
        conn.execute(update(run).where(run.c.id == row.id).values(fence=lease.fence))
        return view(conn.execute(select(run).where(run.c.id == row.id)).one())
    if row is not None and ref.claim is not None and row.freed_claim == ref.claim:
        raise Refusal(409, "claim_freed", "This claim was given back; a new attempt needs a new one.")
    if asked is not None:
        _check_message(conn, asked, at)
    if (other := open_run(conn, actor.id, ref.scope)) is not None:
        raise _unresolved(other)
    row = _open_anew(conn, actor, ref, row, message=message, attempt=attempt, fence=lease.fence, at=at)
    _insert_credential(conn, digest=credential, run=row.id)
    if message is not None:
        receipts.move(conn, message, Stage.STARTING, at=at, by=actor.id, job=ref.request)
    return view(row)


def _asked(conn: Connection, actor: Actor, ref: Ref, wanted: str) -> message_views.MessageRow:
    found = message_views.row_of(conn, wanted)
    if found is None or found.channel not in actor.channels or ref.scope not in {NO_SCOPE, found.channel}:
        raise not_found("message")
    return found


def _find(conn: Connection, actor: Actor, ref: Ref, message: str | None) -> RunRow | None:
    named = _by_request(conn, who=actor.id, place=ref.scope, said=ref.request).one_or_none()
    row = named if message is None else _by_message(conn, said=message, who=actor.id).one_or_none()
    if named is not None and (row is None or row.id != named.id):
        raise Refusal(409, "operation_reused", "This requestId belongs to the run of another message.")
    return row


def _need_holder(conn: Connection, actor: Actor, ref: Ref) -> Row[*tuple[Any, ...]]:
    lease: Row[*tuple[Any, ...]] | None = _lease(conn, who=actor.id, place=ref.scope).one_or_none()
    if lease is None or lease.released or lease.holder != ref.holder or ref.fence not in {None, lease.fence}:
        raise Refusal(409, "fenced", "Another holder has the lease, or this fence is old; take the lease again.")
    return lease


def _check_message(conn: Connection, asked: message_views.MessageRow, at: float) -> None:
    """Refuse what was withdrawn or has expired. The receipt of the latter is moved by the sweep: a refusal undoes."""
    receipt = receipts.get(conn, asked.id)
    stage = None if receipt is None else receipt.stage
    if asked.withdrawn_at is not None or stage == Stage.WITHDRAWN:
        raise Refusal(409, "withdrawn", "Its author has withdrawn this message.")
    if stage == Stage.EXPIRED or (asked.expires_at is not None and asked.expires_at <= at):
        raise Refusal(409, "expired", "This message has expired.")


def _unresolved(row: RunRow) -> Refusal:
    return Refusal(
        409,
        "run_unresolved",
        "A run is still open here; it has to be finished, or settled by a person.",
        requestId=row.request,
        message=row.message,
    )


def ended(row: RunRow, *, code: str | None = None) -> Refusal:
    """The 409 of a run that is over."""
    settled = row.settled_by is not None
    sentence = "A person has settled this run." if settled else f"This was run already; it came to: {row.outcome}."
    return Refusal(
        409, code or ("run_settled" if settled else "run_finished"), sentence, outcome=row.outcome, reason=row.reason
    )


def _open_anew(
    conn: Connection,
    actor: Actor,
    ref: Ref,
    row: RunRow | None,
    *,
    message: str | None,
    attempt: int,
    fence: str,
    at: float,
) -> RunRow:
    values = {
        "request": ref.request,
        "attempt": attempt,
        "claim": ref.claim,
        "holder": ref.holder,
        "fence": fence,
        "state": "open",
        "stage": Stage.STARTING.value,
        "cancel_requested": 0,
        "began_at": at,
    }
    if row is None:
        made = ids.new("r")
        _insert(conn, id=made, workspace=actor.workspace, member=actor.id, scope=ref.scope, message=message, **values)
    else:
        made = row.id
        cleared = {"outcome": None, "reason": None, "settled_by": None, "ended_at": None}
        conn.execute(
            update(run).where(run.c.id == made, run.c.state == "freed").values(scope=ref.scope, **values, **cleared)
        )
    opened: RunRow = _by_id(conn, wanted=made).one()
    return opened


def tell_stage(conn: Connection, actor: Actor, ref: Ref, *, state: str, detail: str | None, at: float) -> Json:
    """Note how far a run has come. What comes late, or of another claim, changes nothing and is no error."""
    row = by_request(conn, actor.id, ref.scope, ref.request)
    if row is None or row.state != "open":
        settled = row is not None and row.settled_by is not None
        return {
            "open": False,
            "outcome": row.outcome if row is not None else None,
            "settled": {"outcome": row.outcome, "reason": row.reason, "by": row.settled_by}
            if row and settled
            else None,
        }
    stage = _TOLD.get(state)
    if stage is Stage.RUNNING and ask_views.waits(conn, row.id):
        # It was said before the run asked a person, or of what runs beside the question.
        stage = None
    if stage is not None and _is(row, ref):
        if row.stage != stage.value:
            conn.execute(update(run).where(run.c.id == row.id).values(stage=stage.value))
        if row.message is not None:
            receipts.move(conn, row.message, stage, at=at, by=actor.id, detail=detail, job=row.request)
    return {"open": True, "cancelRequested": bool(row.cancel_requested), "settled": None}


def _is(row: RunRow, ref: Ref) -> bool:
    """Whether the client that names a run is the one that began it."""
    return row.holder == ref.holder and ref.fence in {None, row.fence} and ref.claim in {None, row.claim}


def finish(
    conn: Connection, actor: Actor, ref: Ref, *, state: str, outcome: str | None, reason: str | None, at: float
) -> Json:
    """Close a run without a message; `not-accepted` frees what it was for. Twice is the same as once.

    Raises:
        Refusal: 404 `unknown_run`; 409 `run_settled`, or `fenced` where another holder began it.
    """
    row = by_request(conn, actor.id, ref.scope, ref.request)
    if row is None:
        raise unknown_run()
    if row.settled_by is not None:
        raise ended(row, code="run_settled")
    if row.state != "open":
        return _closed(row.state, row.outcome)
    if ref.claim not in {None, row.claim}:
        raise unknown_run()
    if not _is(row, ref):
        raise fenced_run()
    close(conn, row, state=state, outcome=outcome, reason=reason, at=at)
    return _closed("freed" if state == NOT_ACCEPTED else "finished", outcome or state)


def _closed(state: str, outcome: str | None) -> Json:
    return {"open": False, "state": state, "outcome": outcome}


def unknown_run() -> Refusal:
    """The 404 of a run that is not there."""
    return Refusal(404, "unknown_run", "There is no such run here.")


def fenced_run() -> Refusal:
    """The 409 of a run that another holder began."""
    return Refusal(409, "fenced", "Another holder began this run.")


def close(
    conn: Connection,
    row: RunRow,
    *,
    state: str,
    outcome: str | None,
    reason: str | None,
    at: float,
    settled_by: str | None = None,
    shown: Stage | None = None,
) -> bool:
    """End a run, its credentials, and show what it came to on the request. False where no request shows it.

    Args:
        shown: the stage that shows it, where a result says so; else that of outcome and state.
    """
    freed = NOT_ACCEPTED in {state, outcome}
    over = "freed" if freed else "settled" if settled_by else "finished"
    _end(
        conn,
        wanted=row.id,
        before=row.state,
        over=over,
        came_to=NOT_ACCEPTED if freed else outcome or state,
        why=reason,
        at=at,
        by=settled_by,
        kept=None if freed else row.claim,
        freed=row.claim if freed else row.freed_claim,
    )
    _end_credentials(conn, of=row.id)
    ask_views.supersede(conn, row.id, at=at)
    conn.info[AUTH_CHANGED] = True
    if row.message is None:
        return False
    if freed and row.cancel_requested and settled_by is None:
        # Its author took it back while it was held: it is not run again.
        conn.execute(update(message).where(message.c.id == row.message).values(withdrawn_at=at))
        return receipts.move(conn, row.message, Stage.WITHDRAWN, at=at, by=row.member, job=row.request)
    stage = shown or (Stage.RECEIVED if freed else stage_of(outcome, state))
    return receipts.move(
        conn, row.message, stage, at=at, by=row.member, reason=reason, job=row.request, settled_by=settled_by
    )


def stage_of(outcome: str | None, state: str) -> Stage:
    """What a run that ended without a result shows."""
    word = outcome or state
    return _STAGE_OF_STATE.get(word) or stage_of_result(word)


def settle(
    conn: Connection,
    actor: Actor,
    *,
    agent: str,
    request: str,
    channel: str | None,
    outcome: str,
    reason: str | None,
    at: float,
) -> Json:
    """End somebody's run, as a person; `not-accepted` lets the message be run again. Twice is the same as once.

    Args:
        request: what the run is called, or the message that it is of.

    Raises:
        Refusal: 404, 409 `run_finished`.
    """
    row = _settled_for(conn, actor, agent, request, channel)
    if row is None:
        raise unknown_run()
    told = {"agent": agent, "requestId": row.request, "message": row.message, "outcome": outcome, "reason": reason}
    if row.settled_by is not None and row.outcome == outcome:
        return told
    if row.state != "open" and row.outcome != UNKNOWN:
        raise ended(row)
    if not close(conn, row, state=outcome, outcome=outcome, reason=reason, at=at, settled_by=actor.id):
        # An ordinary message has no receipt; that a person settled its run is told all the same.
        data = {"message": row.message, "stage": None, "job": row.request, "to": agent, "reason": reason}
        place = _place(conn, row)
        events.append(conn, row.workspace, "message.stage", {**data, "settledBy": actor.id}, channel=place, at=at)
    return told


def _place(conn: Connection, row: RunRow) -> str | None:
    """The channel that a run belongs to; None where its client named neither channel nor message."""
    asked = None if row.message is None else message_views.row_of(conn, row.message)
    return (row.scope or None) if asked is None else str(asked.channel)


def _settled_for(conn: Connection, actor: Actor, agent: str, request: str, channel: str | None) -> RunRow | None:
    """The run that a person means, in a channel where the person is."""
    row = _by_message(conn, said=request, who=agent).one_or_none()
    scopes = [channel] if channel is not None else [*sorted(actor.channels), NO_SCOPE]
    for scope in scopes:
        row = row or by_request(conn, agent, scope, request)
    if row is None or row.workspace != actor.workspace:
        return None
    place = _place(conn, row)
    return row if place is None or place in actor.channels else None
