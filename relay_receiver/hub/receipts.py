"""Receipts: how far a request has come, each stage shown only once it is proven."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, insert, not_, or_, select, update

from relay_receiver.hub import events
from relay_receiver.hub.prepared import Prepared
from relay_receiver.hub.tables import (
    IN_LINE,
    NOT_ENDED,
    RUN_OPEN,
    member,
    message,
    receipt,
    receiver,
    run,
    subscription,
)
from relay_receiver.wire.message import iso
from relay_receiver.wire.stage import ENDS, Stage, may_follow

AT_ONCE = 200
"""Receipts that one write moves, at the most."""

WAITING_IN_LINE = frozenset({Stage.STORED, Stage.RECEIVED})

Json = dict[str, Any]
ReceiptRow = Row[*tuple[Any, ...]]

_insert = Prepared(insert(receipt))
_one = Prepared(select(receipt).where(receipt.c.message == bindparam("wanted")))
_move = Prepared(
    update(receipt)
    .where(receipt.c.message == bindparam("wanted"), receipt.c.ended == 0)
    .values(
        stage=bindparam("shown"),
        since=bindparam("at"),
        detail=bindparam("more"),
        reason=bindparam("why"),
        job=bindparam("of"),
        ended=bindparam("over"),
    )
)
_stored = Prepared(
    select(receipt.c.message)
    .where(
        receipt.c.workspace == bindparam("place"),
        receipt.c.member == bindparam("who"),
        receipt.c.channel == bindparam("where"),
        NOT_ENDED,
        receipt.c.stage == Stage.STORED.value,
        receipt.c.event > bindparam("after"),
        receipt.c.event <= bindparam("through"),
    )
    .order_by(receipt.c.event)
    .limit(AT_ONCE)
)
_overdue = Prepared(
    select(receipt.c.message)
    .where(IN_LINE, receipt.c.expires_at <= bindparam("at"))
    .order_by(receipt.c.expires_at)
    .limit(AT_ONCE)
)
_held = Prepared(select(run.c.id).where(run.c.message == bindparam("wanted"), RUN_OPEN))
_open = (
    select(func.count())
    .select_from(receipt)
    .where(receipt.c.member == bindparam("who"), receipt.c.channel == bindparam("place"), NOT_ENDED)
)
_all = Prepared(_open)
_ahead = Prepared(_open.where(receipt.c.event < bindparam("number")))
_in_line = or_(receipt.c.stage == Stage.STORED.value, receipt.c.stage == Stage.RECEIVED.value)
_by_people = _open.join(message, message.c.id == receipt.c.message).join(member, member.c.id == message.c.author)
_people_ahead = Prepared(
    _by_people.where(receipt.c.event < bindparam("number"), or_(member.c.role != "agent", not_(_in_line)))
)
_people_behind = Prepared(_by_people.where(receipt.c.event > bindparam("number"), member.c.role != "agent", _in_line))
_without_receipt = Prepared(
    select(func.count())
    .select_from(run)
    .outerjoin(receipt, receipt.c.message == run.c.message)
    .where(run.c.member == bindparam("who"), run.c.scope == bindparam("place"), RUN_OPEN, receipt.c.message.is_(None))
)
_proven = Prepared(
    select(func.max(subscription.c.number))
    .join(receiver, receiver.c.subscription == subscription.c.id)
    .where(
        receiver.c.member == bindparam("who"),
        or_(receiver.c.scope == bindparam("place"), receiver.c.scope == ""),
        subscription.c.member == bindparam("who"),
        or_(subscription.c.channel == bindparam("place"), subscription.c.channel.is_(None)),
    )
)


def open_one(
    conn: Connection, *, message: str, workspace: str, channel: str, to: str, event: int, expires_at: float, at: float
) -> None:
    """A request was stored."""
    _insert(
        conn,
        message=message,
        workspace=workspace,
        channel=channel,
        member=to,
        event=event,
        stage=Stage.STORED.value,
        since=at,
        expires_at=expires_at,
        ended=0,
    )


def get(conn: Connection, message: str) -> ReceiptRow | None:
    """The receipt of a request; None for other messages."""
    return _one(conn, wanted=message).one_or_none()


def move(
    conn: Connection,
    message: str,
    stage: Stage,
    *,
    at: float,
    by: str | None = None,
    detail: str | None = None,
    reason: str | None = None,
    job: str | None = None,
    settled_by: str | None = None,
) -> bool:
    """Show a new stage, or a new detail of it, and store the event. False where it changes nothing.

    Args:
        by: the member that shows it: only the one whom the request is for may; None for the hub itself.
    """
    row = get(conn, message)
    if row is None or (by is not None and row.member != by):
        return False
    now = Stage(row.stage)
    if now in ENDS or not (may_follow(now, stage) or (now is stage and row.detail != detail)):
        return False
    since = row.since if now is stage else at
    job = job or row.job
    _move(conn, wanted=message, shown=stage.value, at=since, more=detail, why=reason, of=job, over=int(stage in ENDS))
    data = {
        "message": message,
        "stage": stage.value,
        "since": iso(since),
        "detail": detail,
        "reason": reason,
        "job": job,
        "to": row.member,
        "settledBy": settled_by,
    }
    events.append(conn, row.workspace, "message.stage", data, channel=row.channel, at=at)
    return True


def delivery(conn: Connection, message: str, *, at: float) -> tuple[Json, ReceiptRow] | None:
    """The `delivery` of a request and the row behind it; None for other messages.

    An expiry that has passed and a receipt that the subscription proves are told even before they are stored.
    """
    row = get(conn, message)
    if row is None:
        return None
    stage, since, position = Stage(row.stage), row.since, None
    if stage in WAITING_IN_LINE and row.expires_at is not None and row.expires_at <= at:
        stage, since = Stage.EXPIRED, row.expires_at
    elif stage is Stage.STORED and (proven := _proven(conn, who=row.member, place=row.channel).scalar()) is not None:
        stage = Stage.RECEIVED if proven >= row.event else stage
    if stage in WAITING_IN_LINE:
        position = in_line(conn, row.member, row.channel, event=row.event)
    told = {
        "stage": stage.value,
        "since": iso(since),
        "detail": row.detail,
        "job": row.job,
        "position": position,
        "reason": row.reason,
    }
    return told, row


def in_line(
    conn: Connection, who: str, channel: str, *, event: int | None = None, paused: bool = False, by_agent: bool = False
) -> int:
    """How many are before a request: other requests to the same member that have not ended, and the job in hand.

    Args:
        event: the request's; the next one's unless given.
        paused: the chain of that member's receiver is paused, so that people's requests go before agents'.
        by_agent: an agent asks.
    """
    of = {"who": who, "place": channel}
    in_hand = int(_without_receipt(conn, **of).scalar())
    if event is None:
        return in_hand + int(_all(conn, **of).scalar())
    if not paused:
        return in_hand + int(_ahead(conn, **of, number=event).scalar())
    if not by_agent:
        return in_hand + int(_people_ahead(conn, **of, number=event).scalar())
    overtaking = int(_people_behind(conn, **of, number=event).scalar())
    return in_hand + overtaking + int(_ahead(conn, **of, number=event).scalar())


def received(
    conn: Connection, workspace: str, who: str, channels: Collection[str], *, after: int, through: int, at: float
) -> int:
    """A member has acknowledged events: what its receiver was asked among them is received now.

    Called in the transaction that stores the acknowledgement. Only the subscription that the receiver named with its
    lease proves anything. Returns how many receipts moved; what is beyond `AT_ONCE` is told from the subscription.
    """
    moved = 0
    for place in channels:
        proven = _proven(conn, who=who, place=place).scalar()
        upto = min(through, proven or 0)
        for each in _stored(conn, place=workspace, who=who, where=place, after=after, through=upto).scalars():
            moved += move(conn, each, Stage.RECEIVED, at=at)
    return moved


def any_overdue(conn: Connection, at: float) -> bool:
    """Whether `expire` has something to do."""
    return _overdue(conn, at=at).first() is not None


def expire(conn: Connection, at: float) -> int:
    """End requests whose time has passed and which no run holds; returns how many."""
    return sum(expire_one(conn, each, at=at) for each in _overdue(conn, at=at).scalars())


def expire_one(conn: Connection, message: str, *, at: float) -> bool:
    """End one request whose time has passed, unless a run of it is open."""
    row = get(conn, message)
    if row is None or row.stage not in WAITING_IN_LINE or row.expires_at is None or row.expires_at > at:
        return False
    if _held(conn, wanted=message).first() is not None:
        return False
    return move(conn, message, Stage.EXPIRED, at=at, reason="nobody began it in time")
