"""Requests to people: made once for each operation id, answered once, by a person, for exactly what was shown."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, TextClause, bindparam, func, insert, select

from relay_receiver.hub import ask_views, ask_wishes, channels, ids, members
from relay_receiver.hub.answer import dumps
from relay_receiver.hub.ask_views import AskRow
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.errors import Refusal, forbidden, invalid, not_found
from relay_receiver.hub.prepared import Prepared
from relay_receiver.hub.tables_people import ASK_OPEN, ask
from relay_receiver.wire.action import action_hash
from relay_receiver.wire.form import FormError, check_answer, schema_of

AT_ONCE = 200
"""Requests that one sweep expires, or one list has, at the most."""
NEEDS_AT_ONCE = ask_wishes.OPEN_MOST + 64
"""Of what waits for one person, at the most: one author alone may not have so many open, and crowds nobody out."""

STATES = ("open", "ended", "all")
CLOSED = ("expired", "superseded", "applied")

Json = dict[str, Any]
Where = ColumnElement[bool] | TextClause
Wish = ask_wishes.Wish

_insert = Prepared(insert(ask))
_overdue = Prepared(
    select(ask.c.id).where(ASK_OPEN, ask.c.expires_at <= bindparam("at")).order_by(ask.c.expires_at).limit(AT_ONCE)
)


def create(conn: Connection, actor: Actor, wish: Wish, *, at: float) -> Json:
    """Store a request, once for each operation id, and return it.

    Raises:
        Refusal: 403 `inside_a_job`, 404, 422; 409 `operation_reused`, `too_many_open`, or the run that it is for is
            over: `run_finished`, `run_settled`.
    """
    before = ask_views.row_by_operation(conn, actor.id, wish.operation)
    if before is not None:
        if before.fingerprint != wish.fingerprint or (actor.job is not None and before.run != actor.job.run):
            raise Refusal(409, "operation_reused", "This operation id was used for another request.")
        return ask_views.view(before, at=at)
    channels.need(actor, wish.channel)
    place = ask_wishes.check(conn, actor, wish, at=at)
    made = ids.new("req")
    _insert(
        conn,
        id=made,
        workspace=actor.workspace,
        channel=wish.channel,
        author=actor.id,
        run=place.run,
        message=place.message,
        job=place.job,
        kind=wish.kind,
        title=wish.title,
        description=wish.description,
        options=_text(wish.options),
        schema=_text(wish.schema),
        action=_text(wish.action),
        action_hash=None if wish.action is None else action_hash(wish.action),
        approvers=_text(wish.approvers),
        operation=wish.operation,
        fingerprint=wish.fingerprint,
        state="open",
        answer=None,
        answered_by=None,
        reason=None,
        created_at=at,
        expires_at=place.expires_at,
        ended_at=None,
    )
    row = ask_views.row_of(conn, made)
    if row is None:
        raise not_found("request")
    told = ask_views.tell(conn, row, ask_views.CREATED, at=at)
    ask_views.show_waiting(conn, row, place.on, at=at)
    return told


def _text(value: Any) -> str | None:  # noqa: ANN401 - JSON
    return None if value is None else dumps(value)


def get(conn: Connection, actor: Actor, wanted: str, *, at: float | None = None) -> Json:
    """One request.

    Raises:
        Refusal: 404, there is none, or it is not for this member to see: a job sees its own only.
    """
    return ask_views.view(_seen(conn, actor, wanted), at=_now(at))


def _seen(conn: Connection, actor: Actor, wanted: str) -> AskRow:
    row = ask_views.row_of(conn, wanted)
    if row is None or row.channel not in actor.channels or (actor.job is not None and row.run != actor.job.run):
        raise not_found("request")
    return row


def _now(at: float | None) -> float:
    return time.time() if at is None else at


def list_asks(
    conn: Connection,
    actor: Actor,
    *,
    channel: str | None = None,
    state: str = "open",
    limit: int = AT_ONCE,
    at: float | None = None,
) -> list[Json]:
    """Requests of the actor's channels, newest first. What is large in them is left out, `partial` says where.

    Args:
        channel: only of this one.
        state: one of `STATES`.

    Raises:
        Refusal: 404, the actor is not in the channel.
    """
    now = _now(at)
    where: list[Where] = []
    if state == "open":
        where = _open_at(now)
    elif state == "ended":
        where = [(ask.c.state != "open") | (ask.c.expires_at <= now)]
    if actor.job is not None:
        where.append(ask.c.run == actor.job.run)
    places = sorted(actor.channels) if channel is None else [channels.need(actor, channel)]
    return [ask_views.view(row, at=now) for row in _merged(conn, ask_views.brief, places, where, limit)]


def _open_at(at: float) -> list[Where]:
    return [ASK_OPEN, ask.c.expires_at > at]


def needs(conn: Connection, actor: Actor, at: float, *, limit: int = NEEDS_AT_ONCE) -> list[Json]:
    """The open requests that this person may answer, in full, the oldest first; none for agents and jobs."""
    if not actor.is_person:
        return []
    rows = _merged(conn, ask_views.columns, sorted(actor.channels), _for(actor, at), limit, oldest=True)
    found = [ask_views.view(row, at=at) for row in rows]
    return [each for each in found if may_answer(actor, each)]


def count_needs(conn: Connection, actor: Actor, at: float) -> int:
    """How many open requests this person may answer."""
    if not actor.is_person:
        return 0
    places = ask.c.channel.in_(sorted(actor.channels))
    return int(conn.execute(select(func.count()).select_from(ask).where(places, *_for(actor, at))).scalar_one())


def _for(actor: Actor, at: float) -> list[Where]:
    """Open, and for this person to answer."""
    return [*_open_at(at), ask.c.approvers.is_(None) | ask.c.approvers.contains(dumps(actor.id), autoescape=True)]


def may_answer(actor: Actor, request: Mapping[str, Any]) -> bool:
    """Whether this actor may answer a request, as long as it is open."""
    among = request["approvers"]
    return actor.is_person and request["channel"] in actor.channels and (among is None or actor.id in among)


def _merged(
    conn: Connection,
    of: Select[*tuple[Any, ...]],
    places: Sequence[str],
    where: Sequence[Where],
    limit: int,
    *,
    oldest: bool = False,
) -> Sequence[AskRow]:
    """One range of the index for each channel, merged, the newest first or the oldest: nothing else is read."""
    order = ask.c.created_at if oldest else ask.c.created_at.desc()
    found = [
        row
        for each in places
        for row in conn.execute(of.where(ask.c.channel == each, *where).order_by(order).limit(limit))
    ]
    found.sort(key=lambda row: row.created_at, reverse=not oldest)
    return found[:limit]


def respond(
    conn: Connection,
    actor: Actor,
    wanted: str,
    answer: Any,  # noqa: ANN401 - JSON
    action_hash: str | None = None,
    *,
    at: float,
) -> Json:
    """Answer a request as a person. The same answer of the same person again is the same as once.

    Args:
        action_hash: that of the action which the person was shown; needed where there is one.

    Raises:
        Refusal: 403 `person_needed`, `not_approver`; 404; 409 `request_answered`, `request_expired`,
            `request_superseded`, `action_changed`; 422, the answer does not fit. None of them changes anything.
    """
    actor.need_person("answer a request")
    row = _seen(conn, actor, wanted)
    if not members.joined(conn, row.channel, actor.id):
        raise not_found("request")
    told = ask_views.view(row, at=at)
    if not may_answer(actor, told):
        raise forbidden("This request is for others to answer.", "not_approver")
    if told["state"] != "open":
        if row.answered_by == actor.id and _same(told, answer):
            return told
        raise _over(told)
    if row.action_hash is not None and action_hash is None:
        raise invalid("actionHash", "`actionHash` is missing: an answer names the action that was shown.")
    if action_hash != row.action_hash:
        raise Refusal(409, "action_changed", "This is not the action that the request is about; read it again.")
    moved = ask_views.move(conn, row, "answered", at=at, answer=_checked(told, answer), by=actor.id)
    if moved is None:
        raise _over(ask_views.view(_seen(conn, actor, wanted), at=at))
    ask_views.show_over(conn, row, at=at)
    return moved


def _checked(request: Mapping[str, Any], answer: Any) -> Json:  # noqa: ANN401 - JSON
    try:
        return check_answer(schema_of(request["kind"], request["options"], request["schema"]), answer)
    except FormError as error:
        raise Refusal(422, error.code, error.sentence, field=f"answer.{error.field}".rstrip(".")) from error


def _same(request: Mapping[str, Any], answer: Any) -> bool:  # noqa: ANN401 - JSON
    """Whether an answer is the one that was stored, which has the form's order and defaults."""
    try:
        return dumps(_checked(request, answer)) == dumps(request["answer"])
    except Refusal:
        return False


def _over(request: Mapping[str, Any]) -> Refusal:
    """The 409 of a request that is no longer open."""
    state, by = request["state"], request["answeredBy"]
    data = {"state": state, "answeredBy": by, "endedAt": request["endedAt"]}
    if state == "expired":
        return Refusal(409, "request_expired", "This request has expired; nobody may answer it any more.", **data)
    if state == "superseded":
        return Refusal(409, "request_superseded", "Nobody waits for this answer any more.", **data)
    who = by["name"] if by else "Somebody"
    return Refusal(409, "request_answered", f"{who} has answered this request already.", **data)


def close(conn: Connection, actor: Actor, wanted: str, state: str, reason: str | None, *, at: float) -> Json:
    """End a request as its author: `applied` once its answer is used, else `expired` or `superseded`.

    Closing it again as the same is the same as once; a closed request is never opened again.

    Raises:
        Refusal: 403, also for a job where its receiver asks; 404; 409 `request_open`, `request_answered`,
            `request_applied`, `request_expired`, `request_superseded`.
    """
    row = _seen(conn, actor, wanted)
    if row.author != actor.id:
        raise forbidden("Only its author may close a request.")
    if actor.job is not None and ask_wishes.is_receivers(row.kind, row.operation):
        raise forbidden("This request is its receiver's, who alone closes it.", "inside_a_job")
    if row.state == state:
        return ask_views.view(row, at=at)
    if row.state != ("answered" if state == "applied" else "open"):
        sentence = f"This request is {row.state}, so it cannot become {state}."
        raise Refusal(409, f"request_{row.state}", sentence, state=row.state)
    moved = ask_views.move(conn, row, state, at=at, reason=reason)
    if moved is None:
        raise not_found("request")
    if state != "applied":
        ask_views.show_over(conn, row, at=at)
    return moved


def any_overdue(conn: Connection, at: float) -> bool:
    """Whether `expire` has something to do."""
    return _overdue(conn, at=at).first() is not None


def expire(conn: Connection, at: float) -> int:
    """End what nobody answered in time; returns how many."""
    count = 0
    for each in _overdue(conn, at=at).scalars():
        row = ask_views.row_of(conn, each)
        if row is not None and ask_views.move(conn, row, "expired", at=at, reason="Nobody answered it in time."):
            ask_views.show_over(conn, row, at=at)
            count += 1
    return count
