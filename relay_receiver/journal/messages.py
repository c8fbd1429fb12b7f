"""What arrived in the channel, and which of it became work."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, func, insert, select, text, update

from relay_receiver.jobs.wake import Wake, wakes
from relay_receiver.journal import jobs, room
from relay_receiver.journal.room import Waking, expiry, promote
from relay_receiver.journal.tables import binding, job, message
from relay_receiver.wire.message import Author, Message

__all__ = ["Intake", "context", "get", "intake", "known", "newest", "promote", "prune"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Intake:
    """What a batch came to."""

    new: int
    """Messages that were not known before."""
    jobs: int
    """Jobs that were made, also of older wakes."""
    received: int
    """Wakes of this batch that found no room at once, or went behind older ones that wait."""


# Built once: building a statement costs more than SQLite takes for it.
_GET = select(message).where(message.c.id == bindparam("message_id"))
_BEFORE = (
    select(message)
    .where(message.c.event < bindparam("before"))
    .order_by(message.c.event.desc())
    .limit(bindparam("most"))
)
_KNOWN = select(message.c.id).where(
    message.c.id.in_(select(func.json_each(bindparam("ids")).table_valued("value").c.value))
)
_INSERT = insert(message)
_POSITION = update(binding).values(cursor=bindparam("new_cursor"), watermark=bindparam("new_watermark"))
_ME = select(*binding.c["agent", "channel", "wake", "cursor", "watermark"])


def intake(
    conn: Connection, messages: Sequence[Message], *, cursor: str | None, watermark: int | None, at: float
) -> Intake:
    """Store a batch with the jobs that it makes and the position after it, all in the caller's transaction.

    Messages that are known by id, or of another channel, are ignored. A request that has expired is stored, and
    makes no job.

    Args:
        cursor: the position after the batch; None leaves the recorded one.
    """
    me = conn.execute(_ME).one()
    new = _unknown(conn, (each for each in messages if each.channel == me.channel))
    waking = [each for each in map(_waking, (one for one in new if _wakes(one, me))) if not each.expired(at)]
    now, crowded = _fit(conn, waking)
    later = {each.message for each in waking} - {each.message for each in now}
    if new:
        conn.execute(_INSERT, [_row(each, received=each.id in later, at=at) for each in new])
    room.make(conn, now, at=at)
    promoted = promote(conn, at=at) if crowded else 0
    if cursor is not None and (cursor, watermark) != (me.cursor, me.watermark):
        conn.execute(_POSITION, {"new_cursor": cursor, "new_watermark": watermark})
    return Intake(new=len(new), jobs=len(now) + promoted, received=len(later))


def context(conn: Connection, *, before_event: int, count: int = 50) -> list[Message]:
    """The last `count` messages before an event, oldest first."""
    rows = conn.execute(_BEFORE, {"before": before_event, "most": count}).all()
    return [_message(row) for row in reversed(rows)]


def get(conn: Connection, message_id: str) -> Message | None:
    """The message of that id."""
    row = conn.execute(_GET, {"message_id": message_id}).one_or_none()
    return None if row is None else _message(row)


def known(conn: Connection, message_id: str, event: int) -> bool:
    """Whether the journal has that message under that number: the hub's history and ours are one up to there."""
    found = conn.execute(select(message.c.event).where(message.c.id == message_id)).scalar_one_or_none()
    return found == event


def newest(conn: Connection) -> Message | None:
    """The message with the highest event number."""
    row = conn.execute(select(message).order_by(message.c.event.desc()).limit(1)).one_or_none()
    return None if row is None else _message(row)


def prune(conn: Connection, *, keep_count: int, keep_age: float | None, at: float, most: int = 500) -> int:
    """Forget old messages, with the ended jobs that they made; how many rows went. Call again until it is 0.

    What is open, waits for room, still has to be posted, or may have to be posted again stays. Up to where messages are
    forgotten is recorded in the binding: history is never read again from behind that.

    Args:
        keep_count: more than these, the newest, go.
        keep_age: seconds after which a message (and an ended job) goes, however few there are; None for never.
        most: messages, and jobs, in one call.
    """
    gone = jobs.prune(conn, keep_count=keep_count, keep_age=keep_age, at=at, most=most)
    floor = max(_beyond(conn, keep_count), _before(conn, None if keep_age is None else at - keep_age))
    if floor < 0:
        return gone
    old = (
        select(message.c.id)
        .where(
            text("received = 0"),
            message.c.event <= floor,
            ~select(job.c.id).where(job.c.message == message.c.id).exists(),
        )
        .order_by(message.c.event)
        .limit(most)
    )
    forgotten = (
        conn.execute(delete(message).where(message.c.id.in_(old)).returning(message.c.created_at)).scalars().all()
    )
    _note_forgotten(conn, forgotten)
    return gone + len(forgotten)


def _beyond(conn: Connection, keep_count: int) -> int:
    """The event of the newest message that is not among the newest `keep_count`; -1 where there is none."""
    ordered = select(message.c.event).order_by(message.c.event.desc())
    found = conn.execute(ordered.offset(keep_count).limit(1)).scalar_one_or_none()
    return -1 if found is None else found


def _before(conn: Connection, moment: float | None) -> int:
    """The event before which every message arrived by then; -1 where there is no moment."""
    if moment is None:
        return -1
    kept = text("received = 0")
    young = select(message.c.event).where(kept, message.c.arrived_at > moment).order_by(message.c.event).limit(1)
    found = conn.execute(young).scalar_one_or_none()
    newest = select(message.c.event).where(kept).order_by(message.c.event.desc()).limit(1)
    return int(found - 1 if found is not None else conn.execute(newest).scalar_one_or_none() or -1)


def _note_forgotten(conn: Connection, created: Sequence[str]) -> None:
    """Have history never read again from behind what is forgotten: it would come as new."""
    moments = [moment for each in created if (moment := expiry(each)) is not None]
    if moments:
        newest = max(moments)
        conn.execute(update(binding).where(binding.c.configured_at < newest).values(configured_at=newest))


def _unknown(conn: Connection, messages: Iterable[Message]) -> list[Message]:
    """Those that the journal does not have, each once, in order."""
    first: dict[str, Message] = {}
    for each in messages:
        first.setdefault(each.id, each)
    if not first:
        return []
    found = set(conn.execute(_KNOWN, {"ids": json.dumps(list(first))}).scalars())
    return sorted((each for each in first.values() if each.id not in found), key=_order)


def _fit(conn: Connection, waking: Sequence[Waking]) -> tuple[list[Waking], bool]:
    """Those for which there is room at once, and whether others have to go behind older ones that wait."""
    if not waking:
        return [], False
    now: list[Waking] = []
    crowded = False
    rooms = room.look(conn)
    for by_agent in (False, True):
        mine = [each for each in waking if each.by_agent is by_agent]
        if mine and rooms[by_agent].others_wait:
            crowded = True
        else:
            now += mine[: rooms[by_agent].free]
    return now, crowded


def _wakes(each: Message, me: Row[Any]) -> bool:
    return wakes(
        Wake(me.wake),
        me=me.agent,
        author=each.author.id,
        kind=each.kind,
        to=each.to,
        mentions=each.mentions,
        notice=each.notice,
    )


def _order(each: Message) -> tuple[int, str]:
    return each.event, each.id


def _waking(each: Message) -> Waking:
    return Waking(
        message=each.id,
        event=each.event,
        channel=each.channel,
        author=each.author.id,
        by_agent=each.by_agent,
        request=each.kind == "request",
        root=each.root,
        hop=each.hop,
        expires_at=expiry(each.expires_at),
    )


def _row(each: Message, *, received: bool, at: float) -> dict[str, Any]:
    return {
        "id": each.id,
        "event": each.event,
        "channel": each.channel,
        "author": each.author.id,
        "author_name": each.author.name,
        "author_kind": each.author.kind,
        "kind": each.kind,
        "content": each.content,
        "to": each.to,
        "mentions": json.dumps(each.mentions),
        "reply_to": each.reply_to,
        "operation_id": each.operation_id,
        "outcome": each.outcome,
        "root": each.root,
        "hop": each.hop,
        "attachments": json.dumps([dict(one) for one in each.attachments]),
        "created_at": each.created_at,
        "expires_at": each.expires_at,
        "notice": each.notice,
        "received": received,
        "by_agent": each.by_agent,
        "arrived_at": at,
    }


def _message(row: Row[Any]) -> Message:
    return Message(
        id=row.id,
        event=row.event,
        channel=row.channel,
        author=Author(id=row.author, name=row.author_name, kind=row.author_kind),
        kind=row.kind,
        content=row.content,
        to=row.to,
        mentions=_tuple(row.mentions),
        reply_to=row.reply_to,
        operation_id=row.operation_id,
        outcome=row.outcome,
        root=row.root,
        hop=row.hop,
        attachments=_tuple(row.attachments),
        created_at=row.created_at,
        expires_at=row.expires_at,
        notice=row.notice,
    )


def _tuple(text_of_list: str) -> tuple[Any, ...]:
    return () if text_of_list == "[]" else tuple(json.loads(text_of_list))
