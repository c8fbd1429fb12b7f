"""Controls: what people decide about receivers, and what the receivers say became of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, bindparam, insert, select, update

from relay_receiver.hub import channels, events, ids, leases, members, runs
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.errors import Refusal, invalid, not_found
from relay_receiver.hub.prepared import Prepared
from relay_receiver.hub.tables import member
from relay_receiver.hub.tables_people import CONTROL_UNTOLD, control
from relay_receiver.wire.message import iso

CONTROL = "receiver.control"
"""The type of their events: one when a person decides, one when the receiver has told what became of it."""

SETTLE, RESUME, CANCEL = "settle", "resume", "cancel"
OUTCOMES = ("done", "refused")
WAITING_MOST = 100
"""Decisions about one receiver that wait for it, at the most."""
PAGE = 100

Json = dict[str, Any]
ControlRow = Row[*tuple[Any, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """What a person wants of a receiver; `arguments` are those of the action, checked by the API."""

    channel: str
    agent: str
    action: str
    arguments: Mapping[str, Any]
    operation: str


_by = member.alias("by_member")
_of = member.alias("of_member")
_seen = (
    select(control, _by.c.name.label("by_name"), _of.c.name.label("agent_name"))
    .join(_by, _by.c.id == control.c.by)
    .join(_of, _of.c.id == control.c.member)
)
_one = Prepared(_seen.where(control.c.id == bindparam("wanted")))
_by_operation = Prepared(_seen.where(control.c.by == bindparam("who"), control.c.operation == bindparam("named")))
_waiting = Prepared(
    _seen.where(control.c.member == bindparam("who"), control.c.channel == bindparam("place"), CONTROL_UNTOLD)
    .order_by(control.c.created_at, control.c.id)
    .limit(WAITING_MOST)
)
_insert = Prepared(insert(control))
_tell = Prepared(
    update(control)
    .where(control.c.id == bindparam("wanted"), CONTROL_UNTOLD)
    .values(outcome=bindparam("came_to"), sentence=bindparam("said"), told_at=bindparam("at"))
)


def create(conn: Connection, actor: Actor, wish: Wish, *, at: float) -> Json:
    """Store what a person decided, once for each operation id, and tell the receiver.

    What the decision means is fixed now: the attempt of the job, or which pause. A receiver where that is over
    refuses it.

    Raises:
        Refusal: 403, 404, 422; 409 `operation_reused`, `no_receiver`, `not_paused`, `run_settled`, or `decided`
            with the `control` that waits already.
    """
    actor.need_person("decide about a receiver")
    before = _by_operation(conn, who=actor.id, named=wish.operation).one_or_none()
    if before is not None:
        return _repeated(before, wish)
    channels.need(actor, wish.channel)
    row = members.get(conn, wish.agent)
    if row is None or row.role != members.AGENT or not members.joined(conn, wish.channel, wish.agent):
        raise not_found("agent")
    report = leases.last_report(conn, wish.agent, wish.channel) or {}
    arguments = _meant(conn, wish, report)
    _check_first(conn, wish, arguments)
    made = ids.new("ctl")
    _insert(
        conn,
        id=made,
        workspace=actor.workspace,
        channel=wish.channel,
        member=wish.agent,
        action=wish.action,
        arguments=json.dumps(arguments, separators=(",", ":"), ensure_ascii=False),
        by=actor.id,
        operation=wish.operation,
        created_at=at,
    )
    return _told(conn, made, at=at)


def tell(conn: Connection, actor: Actor, wanted: str, *, outcome: str, sentence: str, at: float) -> Json:
    """Store what the receiver says became of a decision; the same again is no error.

    Raises:
        Refusal: 403 for people and jobs; 404 for other agents; 409 `control_over`, it came to something else.
    """
    leases.need_agent(actor)
    row = _one(conn, wanted=wanted).one_or_none()
    if row is None or row.member != actor.id or row.channel not in actor.channels:
        raise not_found("decision")
    if row.outcome is None:
        return _end(conn, row, outcome=outcome, sentence=sentence, at=at)
    if row.outcome == outcome:
        return view(row)
    raise Refusal(409, "control_over", f"This was {row.outcome} already: {row.sentence}", control=view(row))


def get(conn: Connection, actor: Actor, wanted: str) -> Json:
    """One decision, in a channel where the caller is.

    Raises:
        Refusal: 404.
    """
    row = _one(conn, wanted=wanted).one_or_none()
    if row is None or row.channel not in actor.channels:
        raise not_found("decision")
    return view(row)


def list_controls(
    conn: Connection,
    actor: Actor,
    *,
    channel: str | None = None,
    agent: str | None = None,
    waiting: bool = False,
    limit: int = PAGE,
) -> list[Json]:
    """Decisions about receivers in the caller's channels, newest first.

    Args:
        waiting: only those of which the receiver has told nothing yet.
    """
    places = sorted(actor.channels) if channel is None else [channels.need(actor, channel)]
    found: list[ControlRow] = []
    for place in places:
        wanted = _seen.where(control.c.channel == place)
        if agent is not None:
            wanted = wanted.where(control.c.member == agent)
        if waiting:
            wanted = wanted.where(CONTROL_UNTOLD)
        found += conn.execute(wanted.order_by(control.c.created_at.desc(), control.c.id.desc()).limit(limit)).all()
    found.sort(key=lambda row: (row.created_at, row.id), reverse=True)
    return [view(row) for row in found[:limit]]


def settle_run(
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
    """End somebody's run at the hub, as a person; decisions about its job that still wait are over with it.

    Raises:
        Refusal: as `runs.settle` does.
    """
    told = runs.settle(
        conn, actor, agent=agent, request=request, channel=channel, outcome=outcome, reason=reason, at=at
    )
    sentence = f"{actor.name} settled the run at the hub meanwhile: {outcome}."
    for place in sorted(actor.channels):
        for row in _waiting(conn, who=agent, place=place):
            if row.action in {SETTLE, CANCEL} and json.loads(row.arguments).get("job") == told["requestId"]:
                _end(conn, row, outcome="refused", sentence=sentence, at=at)
    return told


def view(row: ControlRow) -> Json:
    """A decision as protocol 1 tells it; `outcome` is null while it waits for the receiver."""
    return {
        "id": row.id,
        "channel": row.channel,
        "agent": row.member,
        "agentName": row.agent_name,
        "action": row.action,
        "arguments": json.loads(row.arguments),
        "by": {"id": row.by, "name": row.by_name},
        "createdAt": iso(row.created_at),
        "outcome": row.outcome,
        "sentence": row.sentence,
        "toldAt": None if row.told_at is None else iso(row.told_at),
        "operationId": row.operation,
    }


def _repeated(row: ControlRow, wish: Wish) -> Json:
    stored = json.loads(row.arguments)
    same = (row.channel, row.member, row.action) == (wish.channel, wish.agent, wish.action)
    if not same or {**stored, **wish.arguments} != stored:
        raise Refusal(409, "operation_reused", "This operation id was used for another decision.", control=view(row))
    return view(row)


def _meant(conn: Connection, wish: Wish, report: Json) -> Json:
    """The arguments, with what the person saw named: which attempt of the job, or which pause."""
    arguments = dict(wish.arguments)
    if wish.action == RESUME:
        chain = report.get("chain")
        pause = chain.get("pause") if isinstance(chain, dict) and chain.get("paused") else None
        arguments.setdefault("pause", pause)
        if not isinstance(arguments["pause"], str):
            raise Refusal(409, "not_paused", "Its agents' jobs are not paused: there is nothing to resume.")
        return arguments
    run = runs.by_request(conn, wish.agent, wish.channel, str(arguments["job"]))
    if run is not None and run.state == "settled":
        raise runs.ended(run, code="run_settled")
    if "attempt" not in arguments:
        arguments["attempt"] = _attempt(report, str(arguments["job"]), None if run is None else run.attempt)
    return arguments


def _attempt(report: Json, job: str, begun: int | None) -> int:
    for name, key in (("unknown", "job"), ("job", "id")):
        seen = report.get(name)
        if isinstance(seen, dict) and seen.get(key) == job and type(seen.get("attempt")) is int:
            return int(seen["attempt"])
    if begun is None:
        raise invalid("attempt", "`attempt` is missing, and the receiver has reported no job of this id.")
    return begun


def _check_first(conn: Connection, wish: Wish, arguments: Json) -> None:
    """Refuse a second decision about the same while the first one waits."""
    waiting = _waiting(conn, who=wish.agent, place=wish.channel).all()
    for row in waiting:
        if row.action == wish.action and _about(json.loads(row.arguments)) == _about(arguments):
            sentence = f"{row.by_name} has decided this already; the decision waits for the receiver."
            raise Refusal(409, "decided", sentence, control=view(row))
    if len(waiting) >= WAITING_MOST:
        sentence = f"{WAITING_MOST} decisions wait for this receiver already."
        raise Refusal(409, "too_many", sentence)


def _about(arguments: Json) -> tuple[Any, ...]:
    return arguments.get("job"), arguments.get("attempt"), arguments.get("pause")


def _end(conn: Connection, row: ControlRow, *, outcome: str, sentence: str, at: float) -> Json:
    _tell(conn, wanted=row.id, came_to=outcome, said=sentence, at=at)
    return _told(conn, row.id, at=at)


def _told(conn: Connection, wanted: str, *, at: float) -> Json:
    row = _one(conn, wanted=wanted).one()
    told = view(row)
    events.append(conn, row.workspace, CONTROL, {"control": told}, channel=row.channel, at=at)
    return told
