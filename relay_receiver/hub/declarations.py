"""Declarations: what an agent intends to take, per channel. It controls no delivery."""

import time
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from relay_receiver.hub import events
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.errors import Refusal
from relay_receiver.hub.live import Live
from relay_receiver.hub.tables import declaration
from relay_receiver.wire.message import iso

Json = dict[str, Any]


def view(row: Row[*tuple[Any, ...]], live: Live) -> Json:
    """A declaration as it is told; `validUntil` is in the past once it does not count any more."""
    left = live.declaration_left((row.member, row.channel))
    return {
        "agentId": row.member,
        "channelId": row.channel,
        "rev": row.rev,
        "mode": row.mode,
        "text": row.text,
        "validUntil": iso(time.time() + left),
    }


def of_channels(conn: Connection, live: Live, channels: frozenset[str]) -> list[Json]:
    """All declarations in some channels."""
    wanted = select(declaration).where(declaration.c.channel.in_(channels))
    return [view(row, live) for row in conn.execute(wanted.order_by(declaration.c.channel, declaration.c.member))]


def _get(conn: Connection, who: str, channel: str) -> Row[*tuple[Any, ...]] | None:
    here = (declaration.c.member == who, declaration.c.channel == channel)
    return conn.execute(select(declaration).where(*here)).one_or_none()


def put(
    conn: Connection, actor: Actor, channel: str, live: Live, *, rev: int | None, mode: str, text: str, at: float
) -> Json:
    """Declare; said again with the same words, only its time begins anew.

    Raises:
        Refusal: 409 `stale_rev`, it was changed since `rev`; the answer holds what it is now.
    """
    row = _get(conn, actor.id, channel)
    current = 0 if row is None else row.rev
    same = row is not None and (row.mode, row.text) == (mode, text)
    if not same and rev is not None and rev != current:
        now = None if row is None else view(row, live)
        raise Refusal(409, "stale_rev", "The declaration was changed since it was read.", rev=current, status=now)
    live.renew_declaration((actor.id, channel))
    if same and rev != current:
        return view(_need(conn, actor.id, channel), live)
    values = {"rev": current + 1, "mode": mode, "text": text, "declared_at": at}
    if row is None:
        conn.execute(insert(declaration).values(member=actor.id, channel=channel, **values))
    else:
        here = (declaration.c.member == actor.id, declaration.c.channel == channel)
        conn.execute(update(declaration).where(*here).values(**values))
    said = view(_need(conn, actor.id, channel), live)
    events.append(conn, actor.workspace, "status.updated", {"status": said}, channel=channel, at=at)
    return said


def _need(conn: Connection, who: str, channel: str) -> Row[*tuple[Any, ...]]:
    row = _get(conn, who, channel)
    assert row is not None  # noqa: S101 - it was written in this transaction
    return row


def ping(conn: Connection, actor: Actor, channel: str, live: Live, *, rev: int | None) -> Json:
    """Contact; with the current `rev` the declaration counts for its whole time again. Nothing is written."""
    row = _get(conn, actor.id, channel)
    if row is None:
        return {"renewed": False, "rev": 0, "validUntil": None}
    renewed = rev == row.rev
    if renewed:
        live.renew_declaration((actor.id, channel))
    said = view(row, live)
    return {"renewed": renewed, "rev": said["rev"], "validUntil": said["validUntil"]}
