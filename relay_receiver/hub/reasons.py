"""Why an agent does not begin a request now: what the hub itself can prove, else what its receiver told."""

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, bindparam, or_, select

from relay_receiver.hub import leases, members, runs
from relay_receiver.hub.prepared import Prepared
from relay_receiver.hub.store import Store
from relay_receiver.hub.tables import receiver
from relay_receiver.wire.message import iso
from relay_receiver.wire.reason import Reason, Why, because, why
from relay_receiver.wire.stage import Stage

Json = dict[str, Any]

NO_RECEIVER = "it has no receiver yet"
STOPPED = "its receiver is stopped"
GONE = "it has left the channel"
A_PERSON = "it is a person, who answers when they see it"

_PAUSED = '"paused":true'
"""In a stored report, where anything is paused: inside a text of it the quotes would be escaped."""

_told = Prepared(
    select(receiver.c.released, receiver.c.report)
    .where(receiver.c.member == bindparam("who"), or_(receiver.c.scope == bindparam("place"), receiver.c.scope == ""))
    .order_by(receiver.c.scope.desc())
    .limit(1)
)


def report_of(conn: Connection, store: Store, who: str, channel: str) -> Json:
    """What a member's receiver last told of itself; empty where it never did."""
    now = leases.state_of(store, who, channel) or {}
    told = now.get("report")
    if isinstance(told, Mapping):
        return dict(told)
    row = _told(conn, who=who, place=channel).first()
    kept = json.loads(row.report) if row is not None and row.report else {}
    return kept if isinstance(kept, dict) else {}


def paused(conn: Connection, store: Store, who: str, channel: str) -> bool:
    """Whether the chain of a member's receiver is paused, or was when it was last heard of."""
    if leases.state_of(store, who, channel) is None:
        row = _told(conn, who=who, place=channel).first()
        if row is None or _PAUSED not in (row.report or ""):
            return False  # a report may be large, and most of those that are gone were not paused
    chain = report_of(conn, store, who, channel).get("chain")
    return isinstance(chain, dict) and bool(chain.get("paused"))


def of(
    conn: Connection, store: Store, who: str, channel: str, *, role: str | None, by_agent: bool, taken: bool = False
) -> Why:
    """Why a member does not begin a request in a channel now; nothing where it does.

    Args:
        role: the member's.
        by_agent: an agent asks.
        taken: its receiver has the request already.
    """
    if not members.joined(conn, channel, who):
        return because(Reason.UNAUTHORIZED, GONE)
    if role is not None and members.kind(role) != members.AGENT:
        return because(Reason.PERSON, A_PERSON)
    if leases.state_of(store, who, channel) is None:
        return _away(conn, who, channel)
    if store.live.stood_by((who, channel)):
        return because(Reason.STANDBY)
    return _connected(conn, store, who, channel, by_agent=by_agent, taken=taken)


def _connected(conn: Connection, store: Store, who: str, channel: str, *, by_agent: bool, taken: bool) -> Why:
    now = leases.state_of(store, who, channel) or {}
    report = report_of(conn, store, who, channel)
    found = why(str(now.get("state")), now.get("detail"), report, by_agent=by_agent, taken=taken)
    open_run = runs.open_run(conn, who, channel)
    if open_run is None or found.reason not in {None, Reason.BUSY.value}:
        return found
    waits = open_run.stage == Stage.WAITING
    doing = "it is at another job, which waits on a person" if waits else "it is at another job"
    return because(Reason.BUSY, f"{doing}, since {iso(open_run.began_at)}")


def _away(conn: Connection, who: str, channel: str) -> Why:
    row = _told(conn, who=who, place=channel).first()
    if row is None:
        return because(Reason.OFFLINE, NO_RECEIVER)
    return because(Reason.OFFLINE, STOPPED if row.released else None)
