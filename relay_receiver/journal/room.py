"""Room for work: how many jobs may be open, and which wakes wait for theirs (P8)."""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Exists, Row, ScalarSelect, bindparam, func, insert, select, text, update

from relay_receiver.jobs.job import job_id
from relay_receiver.jobs.state import JobState
from relay_receiver.journal import history
from relay_receiver.journal.tables import OPEN_JOB, WAITING_FOR_ROOM, binding, job, message
from relay_receiver.wire.message import seconds

AGENT_JOBS = 256
"""Open jobs of agents' messages; more wait as `received`."""
PEOPLE_JOBS = 256
"""Open jobs of people's messages: no flood of agents shuts a person out."""


_COLUMNS = message.c["id", "event", "channel", "author", "by_agent", "kind", "root", "hop", "expires_at"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """What there is for one kind of author."""

    free: int
    """How many more jobs may be open."""
    others_wait: bool
    """Whether older wakes wait already, which go first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Waking:
    """What a job is made of."""

    message: str
    event: int
    channel: str
    author: str
    by_agent: bool
    request: bool
    root: str
    hop: int
    expires_at: float | None

    def expired(self, at: float) -> bool:
        """Whether its request has ended before it could begin."""
        return self.expires_at is not None and self.expires_at <= at


def _opened(*, agents: bool, most: str) -> ScalarSelect[int]:
    opened = select(job.c.id).where(text(OPEN_JOB), job.c.by_agent == agents).limit(bindparam(most)).subquery()
    return select(func.count()).select_from(opened).scalar_subquery()


def _waits(*, agents: bool) -> Exists:
    return select(message.c.id).where(text(WAITING_FOR_ROOM), message.c.by_agent == agents).exists()


_OWNER = select(binding.c.workspace, binding.c.agent)
_INSERT = insert(job)
_LOOK = select(
    _opened(agents=False, most="people").label("people"),
    _opened(agents=True, most="agents").label("agents"),
    _waits(agents=False).label("people_wait"),
    _waits(agents=True).label("agents_wait"),
)


def look(conn: Connection) -> dict[bool, Room]:
    """How much room there is, by whether an agent wrote the message."""
    found = conn.execute(_LOOK, {"people": PEOPLE_JOBS + 1, "agents": AGENT_JOBS + 1}).one()
    return {
        False: Room(free=max(0, PEOPLE_JOBS - found.people), others_wait=bool(found.people_wait)),
        True: Room(free=max(0, AGENT_JOBS - found.agents), others_wait=bool(found.agents_wait)),
    }


def make(conn: Connection, waking: Sequence[Waking], *, at: float) -> None:
    """Make a job of each."""
    if not waking:
        return
    workspace, agent = conn.execute(_OWNER).one()
    rows = [
        {
            "id": job_id(workspace, agent, each.channel, each.message),
            "message": each.message,
            "event": each.event,
            "state": JobState.QUEUED,
            "by_agent": each.by_agent,
            "request": each.request,
            "author": each.author,
            "root": each.root,
            "hop": each.hop,
            "attempt": 0,
            "claim": secrets.token_hex(16),
            "counted": False,
            "notified": False,
            "expires_at": each.expires_at,
            "created_at": at,
        }
        for each in waking
    ]
    conn.execute(_INSERT, rows)
    history.made(conn, [str(row["id"]) for row in rows], at=at)


def promote(conn: Connection, *, at: float) -> int:
    """Make jobs of wakes that wait, oldest first, as far as there is room; how many jobs were made."""
    room = look(conn)
    return sum(
        _promote(conn, by_agent=by_agent, most=room[by_agent].free, at=at)
        for by_agent in (False, True)
        if room[by_agent].others_wait
    )


def _promote(conn: Connection, *, by_agent: bool, most: int, at: float) -> int:
    """Fill `most` places. What has expired while it waited takes none."""
    made = 0
    while made < most:
        rows = conn.execute(
            select(*_COLUMNS)
            .where(text(WAITING_FOR_ROOM), message.c.by_agent == by_agent)
            .order_by(message.c.event, message.c.id)
            .limit(most - made)
        ).all()
        if not rows:
            break
        ids = func.json_each(json.dumps([row.id for row in rows])).table_valued("value")
        conn.execute(update(message).where(message.c.id.in_(select(ids.c.value))).values(received=False))
        fresh = [each for each in map(_waking, rows) if not each.expired(at)]
        make(conn, fresh, at=at)
        made += len(fresh)
    return made


def expiry(expires_at: str | None) -> float | None:
    """When a request expires; a time that nobody can read is none: the hub's clock ends it all the same."""
    try:
        return None if expires_at is None else seconds(expires_at)
    except (ValueError, OverflowError):
        return None


def _waking(row: Row[Any]) -> Waking:
    return Waking(
        message=row.id,
        event=row.event,
        channel=row.channel,
        author=row.author,
        by_agent=row.by_agent,
        request=row.kind == "request",
        root=row.root,
        hop=row.hop,
        expires_at=expiry(row.expires_at),
    )
