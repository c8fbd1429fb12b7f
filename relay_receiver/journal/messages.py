"""What arrived in the channel, and which of it became work."""

import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select, text, update

from relay_receiver.jobs.job import job_id
from relay_receiver.jobs.state import JobState
from relay_receiver.jobs.wake import Wake, wakes
from relay_receiver.journal import history
from relay_receiver.journal import jobs as journal_jobs
from relay_receiver.journal.tables import OPEN_JOB, WAITING_FOR_ROOM, binding, job, message
from relay_receiver.wire.message import Author, Message, seconds

AGENT_JOBS = 256
"""Open jobs of agents' messages; more wait as `received`."""
PEOPLE_JOBS = 256
"""Open jobs of people's messages: no flood of agents shuts a person out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Intake:
    """What a batch came to."""

    new: int
    """Messages that were not known before."""
    jobs: int
    """Jobs that were made."""
    received: int
    """Wakes that wait for room."""


def intake(
    conn: Connection, messages: Sequence[Message], *, cursor: str | None, watermark: int | None, at: float
) -> Intake:
    """Store a batch with the jobs that it makes and the position after it, all in the caller's transaction.

    Messages that are known by id are ignored. A request that has expired is stored, and makes no job.

    Args:
        cursor: the position after the batch; None leaves the recorded one.
    """
    me = conn.execute(select(*binding.c["workspace", "agent", "wake", "cursor", "watermark"])).one()
    new = _unknown(conn, messages)
    waking = [each for each in new if _wakes(each, me) and not _expired(each, at)]
    now: list[Message] = []
    crowded = False
    if waking:
        room = _room(conn)
        for by_agent in (False, True):
            mine = sorted((each for each in waking if each.by_agent is by_agent), key=_order)
            if mine and room[by_agent].others_wait:
                crowded = True
            else:
                now += mine[: room[by_agent].free]
    later = {each.id for each in waking} - {each.id for each in now}
    if new:
        conn.execute(insert(message), [_row(each, received=each.id in later, at=at) for each in new])
    _make(conn, me, now, at=at)
    promoted = promote(conn, at=at) if crowded else 0
    if cursor is not None and (cursor, watermark) != (me.cursor, me.watermark):
        conn.execute(update(binding).values(cursor=cursor, watermark=watermark))
    return Intake(new=len(new), jobs=len(now) + promoted, received=len(later))


def promote(conn: Connection, *, at: float) -> int:
    """Make jobs of wakes that wait for room, oldest first, as far as there is room; how many jobs were made."""
    room = _room(conn)
    made = 0
    for by_agent in (False, True):
        if not room[by_agent].others_wait or not room[by_agent].free:
            continue
        rows = conn.execute(
            select(message)
            .where(text(WAITING_FOR_ROOM), message.c.by_agent == by_agent)
            .order_by(message.c.event, message.c.id)
            .limit(room[by_agent].free)
        ).all()
        _released(conn, [row.id for row in rows])
        waiting = [each for each in map(_message, rows) if not _expired(each, at)]
        me = conn.execute(select(*binding.c["workspace", "agent"])).one()
        _make(conn, me, waiting, at=at)
        made += len(waiting)
    return made


def context(conn: Connection, *, before_event: int, count: int = 50) -> list[Message]:
    """The last `count` messages before an event, oldest first."""
    rows = conn.execute(
        select(message).where(message.c.event < before_event).order_by(message.c.event.desc()).limit(count)
    ).all()
    return [_message(row) for row in reversed(rows)]


def get(conn: Connection, message_id: str) -> Message | None:
    """The message of that id."""
    row = conn.execute(select(message).where(message.c.id == message_id)).one_or_none()
    return None if row is None else _message(row)


def known(conn: Connection, message_id: str, event: int) -> bool:
    """Whether the journal has that message under that number: the hub's history and ours are one up to there."""
    found = conn.execute(select(message.c.event).where(message.c.id == message_id)).scalar_one_or_none()
    return found == event


def newest(conn: Connection) -> Message | None:
    """The message with the highest event number."""
    row = conn.execute(select(message).order_by(message.c.event.desc()).limit(1)).one_or_none()
    return None if row is None else _message(row)


def prune(conn: Connection, *, keep_count: int, keep_age: float, at: float, most: int = 500) -> int:
    """Forget old messages, with the ended jobs that they made; how many rows went. Call again until it is 0.

    What is open, waits for room, or still has to be posted stays.

    Args:
        keep_count: the newest messages (and jobs), which stay whatever their age.
        keep_age: seconds for which everything stays.
        most: messages, and jobs, in one call.
    """
    gone = journal_jobs.prune(conn, keep_count=keep_count, keep_age=keep_age, at=at, most=most)
    floor = conn.execute(
        select(message.c.event).order_by(message.c.event.desc()).offset(keep_count).limit(1)
    ).scalar_one_or_none()
    if floor is None:
        return gone
    old = (
        select(message.c.id)
        .where(
            text("received = 0"),
            message.c.arrived_at <= at - keep_age,
            message.c.event <= floor,
            ~select(job.c.id).where(job.c.message == message.c.id).exists(),
        )
        .order_by(message.c.arrived_at)
        .limit(most)
    )
    return gone + conn.execute(delete(message).where(message.c.id.in_(old))).rowcount


@dataclass(frozen=True, kw_only=True, slots=True)
class _Room:
    free: int
    others_wait: bool


def _room(conn: Connection) -> dict[bool, _Room]:
    """By whether an agent wrote them: how many more jobs may be open, and whether older wakes wait already."""
    parts = []
    for by_agent, cap in ((False, PEOPLE_JOBS), (True, AGENT_JOBS)):
        opened = select(job.c.id).where(text(OPEN_JOB), job.c.by_agent == by_agent).limit(cap + 1).subquery()
        waiting = select(message.c.id).where(text(WAITING_FOR_ROOM), message.c.by_agent == by_agent)
        parts += [select(func.count()).select_from(opened).scalar_subquery(), waiting.exists()]
    people, people_wait, agents, agents_wait = conn.execute(select(*parts)).one()
    return {
        False: _Room(free=max(0, PEOPLE_JOBS - people), others_wait=bool(people_wait)),
        True: _Room(free=max(0, AGENT_JOBS - agents), others_wait=bool(agents_wait)),
    }


def _unknown(conn: Connection, messages: Iterable[Message]) -> list[Message]:
    """Those that the journal does not have, each once, in order."""
    first: dict[str, Message] = {}
    for each in messages:
        first.setdefault(each.id, each)
    if not first:
        return []
    ids = func.json_each(json.dumps(list(first))).table_valued("value")
    found = set(conn.execute(select(message.c.id).where(message.c.id.in_(select(ids.c.value)))).scalars())
    return sorted((each for each in first.values() if each.id not in found), key=_order)


def _released(conn: Connection, ids: Sequence[str]) -> None:
    values = func.json_each(json.dumps(ids)).table_valued("value")
    conn.execute(update(message).where(message.c.id.in_(select(values.c.value))).values(received=False))


def _make(conn: Connection, me: Row[Any], waking: Sequence[Message], *, at: float) -> None:
    if not waking:
        return
    rows = [
        {
            "id": job_id(me.workspace, me.agent, each.channel, each.id),
            "message": each.id,
            "event": each.event,
            "state": JobState.QUEUED,
            "by_agent": each.by_agent,
            "request": each.kind == "request",
            "author": each.author.id,
            "root": each.root,
            "hop": each.hop,
            "attempt": 0,
            "claim": secrets.token_hex(16),
            "counted": False,
            "notified": False,
            "expires_at": _expiry(each),
            "created_at": at,
        }
        for each in waking
    ]
    conn.execute(insert(job), rows)
    history.made(conn, [str(row["id"]) for row in rows], at=at)


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


def _expiry(each: Message) -> float | None:
    """When it expires; a time that nobody can read is none: the hub's clock ends the request all the same."""
    try:
        return None if each.expires_at is None else seconds(each.expires_at)
    except (ValueError, OverflowError):
        return None


def _expired(each: Message, at: float) -> bool:
    expiry = _expiry(each)
    return expiry is not None and expiry <= at


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
        mentions=tuple(json.loads(row.mentions)),
        reply_to=row.reply_to,
        operation_id=row.operation_id,
        outcome=row.outcome,
        root=row.root,
        hop=row.hop,
        attachments=tuple(json.loads(row.attachments)),
        created_at=row.created_at,
        expires_at=row.expires_at,
        notice=row.notice,
    )
