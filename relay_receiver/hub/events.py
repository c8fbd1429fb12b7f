"""Events: numbered in a workspace without holes, in commit order, each with a tag that makes its cursor unforgeable."""

import json
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, bindparam, delete, func, insert, or_, select, update

from relay_receiver.hub.prepared import Prepared
from relay_receiver.hub.tables import event, workspace
from relay_receiver.wire.cursor import Cursor
from relay_receiver.wire.message import iso

TAG_BYTES = 6
RETAIN_SECONDS = 7 * 24 * 3600.0
RETAIN_EVENTS = 200_000
PRUNE_AT_ONCE = 1000

CURSOR_EXPIRED = "cursor_expired"
DIVERGED = "diverged"

FRESH = "events"
"""Where a connection keeps the events of its transaction until they are committed."""

Data = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class EventRow:
    """A stored event; `payload` is its `data` as JSON."""

    workspace: str
    number: int
    tag: str
    type: str
    channel: str | None
    at: float
    payload: str

    @property
    def cursor(self) -> Cursor:
        """The position just after this event."""
        return Cursor(self.number, self.tag)

    def to_json(self) -> str:
        """The event as it goes on the wire."""
        kind, at = json.dumps(self.type), json.dumps(iso(self.at))
        return f'{{"type":{kind},"id":{self.number},"at":{at},"data":{self.payload}}}'


_next = Prepared(
    update(workspace)
    .where(workspace.c.id == bindparam("key"))
    .values(head=workspace.c.head + 1)
    .returning(workspace.c.head)
)
_insert = Prepared(insert(event))
_head = Prepared(
    select(workspace.c.head, workspace.c.pruned, workspace.c.pruned_tag).where(workspace.c.id == bindparam("key"))
)
_tag = Prepared(select(event.c.tag).where(event.c.workspace == bindparam("key"), event.c.number == bindparam("number")))


def next_number(conn: Connection, of: str) -> int:
    """Take the next number of a workspace; the same transaction must `put` an event of that number."""
    return int(_next(conn, key=of).scalar_one())


def put(
    conn: Connection,
    of: str,
    number: int,
    type: str,  # noqa: A002 - its name on the wire
    data: Data,
    *,
    channel: str | None = None,
    at: float,
) -> None:
    """Store the event of a number that was taken."""
    payload = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    tag = secrets.token_hex(TAG_BYTES)
    _insert(conn, workspace=of, number=number, tag=tag, type=type, channel=channel, at=at, payload=payload)
    conn.info.setdefault(FRESH, []).append(
        EventRow(workspace=of, number=number, tag=tag, type=type, channel=channel, at=at, payload=payload)
    )


def append(
    conn: Connection,
    of: str,
    type: str,  # noqa: A002 - its name on the wire
    data: Data,
    *,
    channel: str | None = None,
    at: float,
) -> int:
    """Store the next event of a workspace and return its number."""
    number = next_number(conn, of)
    put(conn, of, number, type, data, channel=channel, at=at)
    return number


def head(conn: Connection, of: str) -> Cursor:
    """The cursor of now: all that is committed is before it."""
    number, pruned, pruned_tag = _head(conn, key=of).one()
    return Cursor(number, pruned_tag if number == pruned else _tag(conn, key=of, number=number).scalar())


def cursor_at(conn: Connection, of: str, number: int) -> Cursor:
    """The cursor of one event's number; without a tag where that event is no longer kept."""
    return Cursor(number, _tag(conn, key=of, number=number).scalar())


def check_cursor(conn: Connection, of: str, cursor: Cursor) -> str | None:
    """None where reading can go on from `cursor`, else `cursor_expired` or `diverged`."""
    last, pruned, pruned_tag = _head(conn, key=of).one()
    if cursor.number > last:
        return DIVERGED
    if cursor.number < pruned:
        return CURSOR_EXPIRED
    if cursor.tag is None:
        return None
    tag = pruned_tag if cursor.number == pruned else _tag(conn, key=of, number=cursor.number).scalar()
    return None if cursor.tag == tag else DIVERGED


def rows_after(
    conn: Connection,
    of: str,
    number: int,
    *,
    channels: Collection[str] | None = None,
    types: Collection[str] = (),
    limit: int,
) -> list[EventRow]:
    """The next events after `number`, in order, at most `limit`.

    Args:
        channels: only of these; events that belong to no channel are always among them. None: of all.
        types: only these; empty: all.
    """
    base = select(event).where(event.c.workspace == of, event.c.number > number).order_by(event.c.number).limit(limit)
    if channels is None or not types:
        where = []
        if channels is not None:
            where.append(or_(event.c.channel.is_(None), event.c.channel.in_(channels)))
        if types:
            where.append(event.c.type.in_(types))
        return [EventRow(**row._mapping) for row in conn.execute(base.where(and_(True, *where)))]  # noqa: SLF001 - Core's own API
    # One range of the index for each pair, merged: no event of other channels is ever read.
    found = [
        row
        for where in [event.c.channel.is_(None), *(event.c.channel == each for each in channels)]
        for kind in types
        for row in conn.execute(base.where(where, event.c.type == kind))
    ]
    found.sort(key=lambda row: row.number)
    return [EventRow(**row._mapping) for row in found[:limit]]  # noqa: SLF001 - Core's own API


def prunable(conn: Connection, of: str, *, now: float, keep: int = RETAIN_EVENTS) -> int:
    """Up to which number events may go now, at most `PRUNE_AT_ONCE` at a time; 0 where there is nothing to do."""
    last, pruned, _ = _head(conn, key=of).one()
    ceiling = min(pruned + PRUNE_AT_ONCE, last - 1)
    by_count = min(last - keep, ceiling)
    window = and_(event.c.workspace == of, event.c.number > pruned, event.c.number <= ceiling)
    kept = conn.execute(select(func.min(event.c.number)).where(window, event.c.at >= now - RETAIN_SECONDS)).scalar()
    by_age = ceiling if kept is None else kept - 1
    through = max(by_count, by_age)
    return through if through > pruned else 0


def prune(conn: Connection, of: str, *, now: float, keep: int = RETAIN_EVENTS) -> int:
    """Forget the oldest events; messages outlive them. Returns up to which number events are gone."""
    through = prunable(conn, of, now=now, keep=keep)
    if through:
        tag = _tag(conn, key=of, number=through).scalar()
        conn.execute(delete(event).where(event.c.workspace == of, event.c.number <= through))
        conn.execute(update(workspace).where(workspace.c.id == of).values(pruned=through, pruned_tag=tag))
    return through
