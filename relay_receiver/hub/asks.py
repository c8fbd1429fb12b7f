"""Requests to people: made once for each operation id, answered once, by a person, for exactly what was shown."""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, TextClause, bindparam, func, insert, select

from relay_receiver.hub import ask_views, channels, ids, members, message_views, runs
from relay_receiver.hub.answer import dumps
from relay_receiver.hub.ask_views import AskRow
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.errors import Refusal, forbidden, invalid, not_found
from relay_receiver.hub.prepared import Prepared
from relay_receiver.hub.tables_people import ASK_OPEN, ask
from relay_receiver.wire.action import action_hash
from relay_receiver.wire.form import FormError, check_answer, check_schema, schema_of
from relay_receiver.wire.limits import ASK_EXPIRY_SECONDS, ASK_MOST_SECONDS

RECEIVERS_OPERATION = "ask:"
"""Operation ids of what a receiver asks begin so; its job cannot take one before it."""
OPEN_MOST = 256
"""Requests that one member may have open in one channel."""
OPEN_MOST_OF_A_JOB = 16
AT_ONCE = 200
"""Requests that one sweep expires, or one list has, at the most."""

STATES = ("open", "ended", "all")
CLOSED = ("expired", "superseded", "applied")

Json = dict[str, Any]
Where = ColumnElement[bool] | TextClause

_insert = Prepared(insert(ask))
_count = Prepared(
    select(func.count())
    .select_from(ask)
    .where(ask.c.author == bindparam("who"), ask.c.channel == bindparam("place"), ASK_OPEN)
)
_count_of_run = Prepared(select(func.count()).select_from(ask).where(ask.c.run == bindparam("of"), ASK_OPEN))
_overdue = Prepared(
    select(ask.c.id).where(ASK_OPEN, ask.c.expires_at <= bindparam("at")).order_by(ask.c.expires_at).limit(AT_ONCE)
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """A request as its author makes it. `expires_at` in seconds since the epoch; None for the default."""

    channel: str
    kind: str
    title: str
    operation: str
    description: str = ""
    options: tuple[Json, ...] | None = None
    schema: Json | None = None
    action: Any = None
    job: str | None = None
    message: str | None = None
    approvers: tuple[str, ...] | None = None
    expires_at: float | None = None

    @property
    def fingerprint(self) -> str:
        """What the operation id pins; the expiry is not among it."""
        said = [self.channel, self.kind, self.title, self.description, self.options, self.schema, self.action]
        said += [self.job, self.message, self.approvers]
        return hashlib.sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


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
    if actor.job is not None:
        _check_job(wish)
    _check_parts(wish)
    until = _until(wish, at)
    on = _approvers(conn, actor, wish)
    of, job, message = _origin(conn, actor, wish)
    _check_room(conn, actor, wish, of)
    made = ids.new("req")
    _insert(
        conn,
        id=made,
        workspace=actor.workspace,
        channel=wish.channel,
        author=actor.id,
        run=of,
        message=message,
        job=job,
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
        expires_at=until,
        ended_at=None,
    )
    row = ask_views.row_of(conn, made)
    if row is None:
        raise not_found("request")
    told = ask_views.tell(conn, row, ask_views.CREATED, at=at)
    ask_views.show_waiting(conn, row, on, at=at)
    return told


def _text(value: Any) -> str | None:  # noqa: ANN401 - JSON
    return None if value is None else dumps(value)


def _check_job(wish: Wish) -> None:
    if wish.kind == "approval" or wish.action is not None:
        raise forbidden("A job may ask input, choice or form; approvals are asked for by its receiver.", "inside_a_job")
    if wish.operation.startswith(RECEIVERS_OPERATION):
        raise forbidden("This operation id belongs to the receiver.", "inside_a_job")


def _check_parts(wish: Wish) -> None:
    """Refuse a request whose parts do not belong to its kind."""
    if not wish.title.strip():
        raise invalid("title", "`title` must say what is asked.")
    for name, value, belongs in (("options", wish.options, "choice"), ("schema", wish.schema, "form")):
        if (value is not None) != (wish.kind == belongs):
            verb = "needs" if wish.kind == belongs else "cannot have"
            raise invalid(name, f"A request of kind {wish.kind} {verb} `{name}`.")
    if wish.kind == "approval" and wish.action is None:
        raise invalid("action", "A request of kind approval needs `action`: what is to be done, in full.")
    if wish.options is not None and len({each["id"] for each in wish.options}) != len(wish.options):
        raise invalid("options", "Two of `options` have the same id.")
    if wish.schema is not None:
        try:
            check_schema(wish.schema)
        except FormError as error:
            raise invalid("schema", error.sentence) from error


def _until(wish: Wish, at: float) -> float:
    until = at + ASK_EXPIRY_SECONDS if wish.expires_at is None else wish.expires_at
    if until <= at:
        raise Refusal(422, "expired", "The request has expired already.", field="expiresAt")
    if until > at + ASK_MOST_SECONDS:
        raise invalid("expiresAt", f"`expiresAt` must be within {ASK_MOST_SECONDS // 86400} days.")
    return until


def _approvers(conn: Connection, actor: Actor, wish: Wish) -> str:
    """Whom the request waits on, in words.

    Raises:
        Refusal: 422, one of the approvers is no person here, or none of them is in the channel.
    """
    if wish.approvers is None:
        return ask_views.ANYBODY
    found = [members.get(conn, each) for each in wish.approvers]
    people = [row for row in found if row is not None and row.workspace == actor.workspace and row.role != "agent"]
    if len(people) != len(wish.approvers) or not people:
        raise invalid("approvers", "Each of `approvers` must be the id of a person in this workspace.")
    here = [row for row in people if members.joined(conn, wish.channel, row.id)]
    if not here:
        raise invalid("approvers", "None of `approvers` is in this channel, so nobody could answer.")
    return ", ".join(row.name for row in here)


def _origin(conn: Connection, actor: Actor, wish: Wish) -> tuple[str | None, str | None, str | None]:
    """Run, job and message that a request is for. A job's own are set by the hub, whatever it says."""
    if actor.job is not None:
        row = runs.by_id(conn, actor.job.run)
        if row is None or row.state != "open":
            raise Refusal(401, "unauthorized", "The run of this job has ended, and its credential with it.")
        return row.id, row.request, row.message
    if wish.message is not None:
        said = message_views.row_of(conn, wish.message)
        if said is None or said.channel != wish.channel:
            raise invalid("message", "`message` is no message of this channel.")
    row = None if wish.job is None else runs.by_request(conn, actor.id, wish.channel, wish.job)
    if row is None:
        return None, wish.job, wish.message
    if row.state != "open":
        raise runs.ended(row)
    return row.id, wish.job, row.message or wish.message


def _check_room(conn: Connection, actor: Actor, wish: Wish, of: str | None) -> None:
    if actor.job is not None:
        count, most = _count_of_run(conn, of=of).scalar_one(), OPEN_MOST_OF_A_JOB
    else:
        count, most = _count(conn, who=actor.id, place=wish.channel).scalar_one(), OPEN_MOST
    if count >= most:
        raise Refusal(409, "too_many_open", f"{count} requests of this author are open here; wait for their answers.")


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
    """Requests of the actor's channels, newest first.

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
    return [ask_views.view(row, at=now) for row in _newest(conn, places, where, limit)]


def _open_at(at: float) -> list[Where]:
    return [ASK_OPEN, ask.c.expires_at > at]


def needs(conn: Connection, actor: Actor, at: float, *, limit: int = AT_ONCE) -> list[Json]:
    """The open requests that this person may answer, newest first; none for agents and jobs."""
    if not actor.is_person:
        return []
    named = ask.c.approvers.is_(None) | ask.c.approvers.contains(dumps(actor.id), autoescape=True)
    rows = _newest(conn, sorted(actor.channels), [*_open_at(at), named], limit)
    found = [ask_views.view(row, at=at) for row in rows]
    return [each for each in found if may_answer(actor, each)]


def may_answer(actor: Actor, request: Mapping[str, Any]) -> bool:
    """Whether this actor may answer a request, as long as it is open."""
    among = request["approvers"]
    return actor.is_person and request["channel"] in actor.channels and (among is None or actor.id in among)


def _newest(conn: Connection, places: Sequence[str], where: Sequence[Where], limit: int) -> Sequence[AskRow]:
    """One range of the index for each channel, merged: nothing of other channels is read."""
    found = [
        row
        for each in places
        for row in conn.execute(
            ask_views.columns.where(ask.c.channel == each, *where).order_by(ask.c.created_at.desc()).limit(limit)
        )
    ]
    found.sort(key=lambda row: row.created_at, reverse=True)
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
        Refusal: 403, 404; 409 `request_open`, `request_answered`, `request_applied`, `request_expired`,
            `request_superseded`.
    """
    row = _seen(conn, actor, wanted)
    if row.author != actor.id:
        raise forbidden("Only its author may close a request.")
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
