"""Requests to people as the hub tells them, and how one ends: by an answer, its time, its author, or its run's end."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    RowMapping,
    Select,
    bindparam,
    case,
    func,
    select,
    update,
)

from relay_receiver.hub import events, receipts
from relay_receiver.hub.answer import dumps
from relay_receiver.hub.members import kind
from relay_receiver.hub.prepared import Prepared
from relay_receiver.hub.tables import member, run
from relay_receiver.hub.tables_people import ASK_OPEN, ask
from relay_receiver.wire.message import iso
from relay_receiver.wire.stage import Stage

EVENT_BYTES = 16 * 1024
"""Events and lists carry a request up to here; of a larger one they leave out the large fields and say so."""
_LARGE = ("description", "options", "schema", "action", "answer")

CREATED = "request.created"
UPDATED = "request.updated"
ANYBODY = "anybody in the channel"

Json = dict[str, Any]
AskRow = Row[*tuple[Any, ...]]

_answerer = member.alias("answerer")
_size = sum((func.coalesce(func.length(ask.c[name]), 0) for name in _LARGE[1:]), func.length(ask.c.description))
size = func.coalesce(func.sum(_size), 0)
"""Characters of the large fields of some requests."""


def _select(*of: ColumnElement[Any]) -> Select[*tuple[Any, ...]]:
    people = (
        member.c.name.label("author_name"),
        member.c.role.label("author_role"),
        _answerer.c.name.label("answerer_name"),
    )
    return (
        select(*of, *people)
        .join(member, member.c.id == ask.c.author)
        .outerjoin(_answerer, _answerer.c.id == ask.c.answered_by)
    )


columns = _select(*ask.c)
"""Requests in full, with the names of who asked and who answered."""
brief = _select(
    *(each for each in ask.c if each.name not in _LARGE),
    *(case((_size <= EVENT_BYTES, ask.c[name])).label(name) for name in _LARGE),
    (_size > EVENT_BYTES).label("partial"),
)
"""The same for lists: what is large is left out, and said to be."""
_one = Prepared(columns.where(ask.c.id == bindparam("wanted")))
_by_operation = Prepared(columns.where(ask.c.author == bindparam("who"), ask.c.operation == bindparam("said")))
_open_of_run = Prepared(select(ask.c.id).where(ask.c.run == bindparam("of"), ASK_OPEN))
_open_of_message = Prepared(
    columns.join(run, run.c.id == ask.c.run)
    .where(ask.c.message == bindparam("of"), run.c.message == bindparam("of"), ASK_OPEN)
    .order_by(ask.c.created_at)
)
"""What the run of a message asks; a request that only names the message shows nothing on it."""
_set = Prepared(
    update(ask)
    .where(ask.c.id == bindparam("wanted"), ask.c.state == bindparam("before"))
    .values(
        state=bindparam("now"),
        answer=bindparam("said"),
        answered_by=bindparam("who"),
        reason=bindparam("why"),
        ended_at=bindparam("over"),
    )
)
_stage_of_run = Prepared(update(run).where(run.c.id == bindparam("wanted")).values(stage=bindparam("shown")))


def row_of(conn: Connection, wanted: str) -> AskRow | None:
    """One request with the names of who asked and who answered."""
    return _one(conn, wanted=wanted).one_or_none()


def row_by_operation(conn: Connection, who: str, operation: str) -> AskRow | None:
    """The request that a member made under an operation id."""
    return _by_operation(conn, who=who, said=operation).one_or_none()


def view(row: AskRow, *, at: float) -> Json:
    """The request that a row is. One whose time has passed is told as expired even before that is stored."""
    seen = row._mapping  # noqa: SLF001 - Core's own API
    overdue = seen["state"] == "open" and seen["expires_at"] <= at
    ended = seen["expires_at"] if overdue else seen["ended_at"]
    told = {
        "id": seen["id"],
        "channel": seen["channel"],
        "kind": seen["kind"],
        "title": seen["title"],
        "description": seen["description"],
        "options": _json(seen, "options"),
        "schema": _json(seen, "schema"),
        "action": _json(seen, "action"),
        "actionHash": seen["action_hash"],
        "approvers": _json(seen, "approvers"),
        "author": {"id": seen["author"], "name": seen["author_name"], "kind": kind(seen["author_role"])},
        "job": seen["job"],
        "message": seen["message"],
        "state": "expired" if overdue else seen["state"],
        "answer": _json(seen, "answer"),
        "answeredBy": answerer(row),
        "reason": seen["reason"],
        "createdAt": iso(seen["created_at"]),
        "expiresAt": iso(seen["expires_at"]),
        "endedAt": None if ended is None else iso(ended),
        "operationId": seen["operation"],
    }
    return {**told, "partial": True} if seen.get("partial") else told


def answerer(row: AskRow) -> Json | None:
    """Who answered, `{id, name}`."""
    return None if row.answered_by is None else {"id": row.answered_by, "name": row.answerer_name}


def _json(row: Mapping[str, Any] | RowMapping, name: str) -> Any:  # noqa: ANN401 - JSON
    return None if row[name] is None else json.loads(row[name])


def tell(conn: Connection, row: AskRow, type: str, *, at: float) -> Json:  # noqa: A002 - its name on the wire
    """Store the event of a request and return the request.

    A large request goes out without its large fields, `partial: true`: who needs them reads it.
    """
    told = view(row, at=at)
    sent = told
    if len(dumps(told).encode()) > EVENT_BYTES:
        sent = {**told, **dict.fromkeys(_LARGE), "partial": True}
    events.append(conn, row.workspace, type, {"request": sent}, channel=row.channel, at=at)
    return told


def move(
    conn: Connection,
    row: AskRow,
    state: str,
    *,
    at: float,
    answer: Json | None = None,
    by: str | None = None,
    reason: str | None = None,
) -> Json | None:
    """Bring a request into another state and tell it; None where it was not as `row` says any more.

    Args:
        answer: with `by`, the person's; else what was answered before stays.
    """
    said, who = (row.answer, row.answered_by) if by is None else (dumps(answer), by)
    over = at if row.state == "open" else row.ended_at
    moved = _set(conn, wanted=row.id, before=row.state, now=state, said=said, who=who, why=reason, over=over)
    if moved.rowcount != 1:
        return None
    now = row_of(conn, row.id)
    return None if now is None else tell(conn, now, UPDATED, at=at)


def supersede(conn: Connection, of: str, *, at: float) -> None:
    """A run has ended: nobody waits for the answers that it still asked for."""
    for each in _open_of_run(conn, of=of).scalars():
        row = row_of(conn, each)
        if row is not None:
            move(conn, row, "superseded", at=at, reason="The job that asked has ended.")


def waits(conn: Connection, of: str) -> bool:
    """Whether a run waits for a person."""
    return _open_of_run(conn, of=of).first() is not None


def show_waiting(conn: Connection, row: AskRow, on: str, *, at: float) -> None:
    """Show on the message that a run is of that it waits for a person, and on whom."""
    if row.run is None or row.message is None:
        return
    _stage_of_run(conn, wanted=row.run, shown=Stage.WAITING.value)
    receipts.move(conn, row.message, Stage.WAITING, at=at, by=row.author, detail=f"on {on}: {row.title}"[:200])


def show_over(conn: Connection, row: AskRow, *, at: float) -> None:
    """Show that a run waits no longer, once nothing that it asked is open."""
    if row.run is None or row.message is None or waits(conn, row.run):
        return
    receipt = receipts.get(conn, row.message)
    if receipt is not None and receipt.stage == Stage.WAITING.value:
        _stage_of_run(conn, wanted=row.run, shown=Stage.RUNNING.value)
        receipts.move(conn, row.message, Stage.RUNNING, at=at, by=row.author)


def waiting_on(conn: Connection, message: str, *, at: float) -> list[Json]:
    """What a message's job waits for from people: `{request, kind, title, approvers, expiresAt}` each, oldest first."""
    rows: Sequence[AskRow] = _open_of_message(conn, of=message).all()
    return [
        {
            "request": row.id,
            "kind": row.kind,
            "title": row.title,
            "approvers": None if row.approvers is None else json.loads(row.approvers),
            "expiresAt": iso(row.expires_at),
        }
        for row in rows
        if row.expires_at > at
    ]
