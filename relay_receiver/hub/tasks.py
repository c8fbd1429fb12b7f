"""The task list of a channel: what is to be done, by whom, and what it refers to."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row, and_, insert, or_, select, update

from relay_receiver.hub import channels, events, ids, members, message_views
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.docs import PAGE, person, stale
from relay_receiver.hub.errors import Refusal, invalid, not_found
from relay_receiver.hub.tables_people import TASK_STATES, doc, task
from relay_receiver.wire.message import iso

ACTIVE = ("open", "doing")
LISTS = ("active", "all", *TASK_STATES)
"""What a list may be asked for; `active` is what is still to be done."""

UPDATED = "task.updated"

Json = dict[str, Any]
TaskRow = Row[*tuple[Any, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """A task to make. `operation` makes it once, however often it is asked for."""

    channel: str
    title: str
    description: str = ""
    state: str = "open"
    assignee: str | None = None
    message: str | None = None
    doc: str | None = None
    operation: str | None = None

    @property
    def fingerprint(self) -> str:
        """What the operation id pins."""
        said = [self.channel, self.title, self.description, self.state, self.assignee, self.message, self.doc]
        return hashlib.sha256(json.dumps(said, separators=(",", ":")).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """What becomes of a task that was read at `rev`: new values of its columns, None for no reference any more."""

    rev: int
    values: Mapping[str, str | None] = field(default_factory=dict)


def create(conn: Connection, actor: Actor, draft: Draft, *, at: float) -> Json:
    """Make a task and return it.

    Raises:
        Refusal: 403 for a job, 404 the channel, 409 `operation_reused`, 422 what it refers to is not in the channel.
    """
    actor.need_member()
    if (before := _repeated(conn, actor, draft)) is not None:
        return before
    place = channels.need(actor, draft.channel)
    values = {
        "title": draft.title,
        "description": draft.description,
        "state": draft.state,
        "assignee": draft.assignee,
        "message": draft.message,
        "doc": draft.doc,
    }
    _check(conn, place, values)
    made = ids.new("t")
    conn.execute(
        insert(task).values(
            id=made,
            workspace=actor.workspace,
            channel=place,
            created_by=actor.id,
            created_at=at,
            updated_by=actor.id,
            updated_at=at,
            operation=draft.operation,
            fingerprint=draft.fingerprint,
            **values,
        )
    )
    return _changed(conn, actor, made, at=at)


def _repeated(conn: Connection, actor: Actor, draft: Draft) -> Json | None:
    """The task that was made under this operation id before, as it is now."""
    if draft.operation is None:
        return None
    row = conn.execute(select(task).where(task.c.created_by == actor.id, task.c.operation == draft.operation)).first()
    if row is None:
        return None
    if row.fingerprint != draft.fingerprint:
        raise Refusal(409, "operation_reused", "This operation id was used for another task.", task=row.id)
    if row.channel not in actor.channels:
        raise not_found("task")
    return views(conn, [row])[0]


def _check(conn: Connection, place: str, values: Mapping[str, str | None]) -> None:
    """Refuse what refers to something outside the channel."""
    who, said, about = values.get("assignee"), values.get("message"), values.get("doc")
    if who is not None and not members.joined(conn, place, who):
        raise invalid("assignee", "`assignee` is no member of this channel.")
    if said is not None:
        found = message_views.row_of(conn, said)
        if found is None or found.channel != place:
            raise invalid("message", "`message` is no message of this channel.")
    if about is not None:
        where = conn.execute(select(doc.c.channel).where(doc.c.id == about)).scalar()
        if where != place:
            raise invalid("doc", "`doc` is no document of this channel.")


def change(conn: Connection, actor: Actor, wanted: str, wish: Change, *, at: float) -> Json:
    """Change a task; what it says already is no change, and no conflict.

    Raises:
        Refusal: 403 for a job, 404, 422; 409 `stale_rev`, somebody changed it since, with the task as it is now in
            `current`.
    """
    actor.need_member()
    row = _need(conn, actor, wanted)
    values = dict(wish.values)
    if not values:
        raise invalid("state", "Nothing to change: give a field of the task.")
    if wish.rev > row.rev:
        raise invalid("rev", f"`rev` is ahead of the task, which is at revision {row.rev}.")
    new = {name: value for name, value in values.items() if row._mapping[name] != value}  # noqa: SLF001 - Core's own API
    if not new:
        return views(conn, [row])[0]
    if wish.rev != row.rev:
        raise stale("task", views(conn, [row])[0])
    _check(conn, row.channel, new)
    conn.execute(
        update(task).where(task.c.id == wanted).values(**new, rev=wish.rev + 1, updated_by=actor.id, updated_at=at)
    )
    return _changed(conn, actor, wanted, at=at)


def _changed(conn: Connection, actor: Actor, wanted: str, *, at: float) -> Json:
    told = get(conn, actor, wanted)
    data = {"task": {name: told[name] for name in ("id", "channel", "rev", "title", "state", "assignee")}}
    events.append(conn, actor.workspace, UPDATED, data, channel=told["channel"], at=at)
    return told


def get(conn: Connection, actor: Actor, wanted: str) -> Json:
    """One task.

    Raises:
        Refusal: 404.
    """
    return views(conn, [_need(conn, actor, wanted)])[0]


def list_tasks(
    conn: Connection,
    actor: Actor,
    channel: str | None = None,
    *,
    state: str = "active",
    assignee: str | None = None,
    before: str | None = None,
    limit: int = PAGE,
) -> Json:
    """`{tasks, more}`: tasks of the caller's channels, the last changed first.

    Args:
        channel: only of this one.
        state: one of `LISTS`.
        assignee: only those of this member.
        before: the id of a task; only those that come after it in this order.

    Raises:
        Refusal: 404, the channel or `before`.
    """
    places = actor.channels if channel is None else {channels.need(actor, channel)}
    wanted = select(task).where(task.c.channel.in_(places))
    if state != "all":
        wanted = wanted.where(task.c.state.in_(ACTIVE if state == "active" else (state,)))
    if assignee is not None:
        wanted = wanted.where(task.c.assignee == assignee)
    if before is not None:
        last = _need(conn, actor, before)
        same = and_(task.c.updated_at == last.updated_at, task.c.id < last.id)
        wanted = wanted.where(or_(task.c.updated_at < last.updated_at, same))
    rows = conn.execute(wanted.order_by(task.c.updated_at.desc(), task.c.id.desc()).limit(limit + 1)).all()
    return {"tasks": views(conn, rows[:limit]), "more": len(rows) > limit}


def _need(conn: Connection, actor: Actor, wanted: str) -> TaskRow:
    row = conn.execute(select(task).where(task.c.id == wanted)).one_or_none()
    if row is None or row.channel not in actor.channels:
        raise not_found("task")
    return row


def views(conn: Connection, rows: Sequence[TaskRow]) -> list[Json]:
    """Tasks as they are told."""
    people = members.names(
        conn, {who for row in rows for who in (row.created_by, row.updated_by, row.assignee) if who is not None}
    )
    return [
        {
            "id": row.id,
            "channel": row.channel,
            "rev": row.rev,
            "title": row.title,
            "description": row.description,
            "state": row.state,
            "assignee": None if row.assignee is None else person(people, row.assignee),
            "message": row.message,
            "doc": row.doc,
            "createdBy": person(people, row.created_by),
            "createdAt": iso(row.created_at),
            "updatedBy": person(people, row.updated_by),
            "updatedAt": iso(row.updated_at),
        }
        for row in rows
    ]
