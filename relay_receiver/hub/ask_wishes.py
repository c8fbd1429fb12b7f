"""Requests to people before they are made: what belongs to each kind, who may ask it, and how much may be open."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, func, select

from relay_receiver.hub import ask_views, members, message_views, runs
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.errors import Refusal, forbidden, invalid
from relay_receiver.hub.prepared import Prepared
from relay_receiver.hub.tables_people import ASK_OPEN, ask
from relay_receiver.wire.form import FormError, check_schema
from relay_receiver.wire.limits import ASK_EXPIRY_SECONDS, ASK_MOST_SECONDS

RECEIVERS_OPERATION = "ask:"
"""Operation ids of what a receiver asks begin so; its job cannot take one before it."""
OPEN_MOST = 256
"""Requests that one member may have open in one channel."""
OPEN_MOST_OF_A_JOB = 16
OPEN_CHARS = 4 * 1024 * 1024
"""Of all that one member has open in one channel together: the largest that there may be always fits."""

Json = dict[str, Any]

_count = Prepared(
    select(func.count(), ask_views.size)
    .select_from(ask)
    .where(ask.c.author == bindparam("who"), ask.c.channel == bindparam("place"), ASK_OPEN)
)
_count_of_run = Prepared(select(func.count()).select_from(ask).where(ask.c.run == bindparam("of"), ASK_OPEN))


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """What a request is made for, until when, and on whom it waits, in words."""

    run: str | None
    job: str | None
    message: str | None
    expires_at: float
    on: str


def check(conn: Connection, actor: Actor, wish: Wish, *, at: float) -> Place:
    """Accept a wish of somebody who is in its channel.

    Raises:
        Refusal: 401, 403, 409, 422.
    """
    if actor.job is not None:
        _check_job(wish)
    _check_parts(wish)
    until = _until(wish, at)
    on = _approvers(conn, actor, wish)
    of, job, message = _origin(conn, actor, wish)
    _check_room(conn, actor, wish, of)
    return Place(run=of, job=job, message=message, expires_at=until, on=on)


def _check_job(wish: Wish) -> None:
    if wish.kind == "approval" or wish.action is not None:
        raise forbidden("A job may ask input, choice or form; approvals are asked for by its receiver.", "inside_a_job")
    if wish.operation.startswith(RECEIVERS_OPERATION):
        raise forbidden("This operation id belongs to the receiver.", "inside_a_job")


def is_receivers(kind: str, operation: str) -> bool:
    """Whether a receiver asks, and not the job that works for it under the same name."""
    return kind == "approval" or operation.startswith(RECEIVERS_OPERATION)


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
    count, size = _count(conn, who=actor.id, place=wish.channel).one()
    most = OPEN_MOST
    if actor.job is not None:
        count, most = _count_of_run(conn, of=of).scalar_one(), OPEN_MOST_OF_A_JOB
    if count >= most or size >= OPEN_CHARS:
        raise Refusal(409, "too_many_open", f"{count} requests of this author are open here; wait for their answers.")
