"""Receiver leases: who may run an agent's jobs in a channel. Stored are holder, fence, subscription and report."""

import json
import time
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, Row, bindparam, insert, or_, select, update

from relay_receiver.hub import events, ids, reports, runs
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.errors import Refusal, forbidden
from relay_receiver.hub.live import OFFLINE, Key, Lease
from relay_receiver.hub.prepared import Prepared
from relay_receiver.hub.store import Store
from relay_receiver.hub.tables import channel_member, receiver
from relay_receiver.wire.limits import LEASE_SECONDS

Json = dict[str, Any]
LeaseRow = Row[*tuple[Any, ...]]

NOT_YET = ""
"""In place of the fence of a lease whose commit is under way."""

_row = Prepared(select(receiver).where(receiver.c.member == bindparam("who"), receiver.c.scope == bindparam("place")))
_of_channel = Prepared(
    select(receiver.c.member, receiver.c.scope, receiver.c.report)
    .join(channel_member, channel_member.c.member == receiver.c.member)
    .where(
        channel_member.c.channel == bindparam("place"),
        or_(receiver.c.scope == bindparam("place"), receiver.c.scope == ""),
    )
    .order_by(receiver.c.scope)
)
_keep = Prepared(
    update(receiver)
    .where(receiver.c.member == bindparam("who"), receiver.c.scope == bindparam("place"))
    .values(report=bindparam("told"))
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """What a holder tells when it takes or renews its lease."""

    scope: str
    holder: str
    subscription: str | None
    session: str | None
    runtime: str
    state: str
    detail: str | None
    report: Json | None = None


def need_agent(actor: Actor) -> None:
    """Refuse people and jobs: only an agent's own membership can be a receiver."""
    actor.need_member()
    if actor.role != "agent":
        raise forbidden("Only an agent can be a receiver; connect one with an invite.", "agent_needed")


async def take(store: Store, actor: Actor, wish: Wish) -> Json:
    """Take or renew a lease; a renewal in which nothing is new writes nothing.

    Raises:
        Refusal: 409 `lease_held`, another holder has it.
    """
    live, key = store.live, (actor.id, wish.scope)
    held = live.lease(key)
    if wish.subscription is None and held is not None and held.holder == wish.holder:
        wish = replace(wish, subscription=held.subscription)
    if held is not None and held.fence and (held.holder, held.subscription) == (wish.holder, wish.subscription):
        _hold(store, key, wish, held.fence)
        # A new state is told at once, and the report that explains it stored with it; a report alone may have to wait.
        if _seen(held) != (wish.state, wish.detail) or live.report_due(key):
            await _tell_anew(store, actor.workspace, key)
        fence = held.fence
    else:
        fence = await store.write(_take, store, actor, wish, at=time.time())
        _hold(store, key, replace(wish, subscription=live.leases[key].subscription), fence)
        _kept(store, key, live.leases[key].matter)
    row = await store.read(runs.open_run, actor.id, wish.scope)
    return {
        "fence": int(fence),
        "expires": round((time.time() + live.lease_left(key)) * 1000),
        "requestId": None if row is None else row.request,
        "run": None if row is None else runs.view(row),
    }


def _take(conn: Connection, store: Store, actor: Actor, wish: Wish, *, at: float) -> str:
    live, key = store.live, (actor.id, wish.scope)
    row = _row(conn, who=actor.id, place=wish.scope).one_or_none()
    if row is not None and not row.released and row.holder != wish.holder and (left := live.lease_left(key)) > 0:
        live.stand_by(key)
        raise Refusal(
            409,
            "lease_held",
            "Another receiver of this agent has this channel.",
            retry_after=left,
            expires=round((at + left) * 1000),
        )
    fence = row.fence if row is not None and row.holder == wish.holder else str(ids.fence())
    if wish.subscription is None and row is not None and row.holder == wish.holder:
        wish = replace(wish, subscription=row.subscription)
    # A report is of its holder: another one does not take it over.
    report = reports.dumps(wish.report) if wish.report is not None else None
    if report is None and row is not None and row.holder == wish.holder:
        report = row.report
    values = {
        "holder": wish.holder,
        "fence": fence,
        "subscription": wish.subscription,
        "released": 0,
        "report": report,
    }
    here = (receiver.c.member == actor.id, receiver.c.scope == wish.scope)
    if row is None:
        conn.execute(insert(receiver).values(member=actor.id, scope=wish.scope, workspace=actor.workspace, **values))
    elif row.released or (row.fence, row.subscription, row.report) != (fence, wish.subscription, report):
        conn.execute(update(receiver).where(*here).values(**values))
    before = live.lease(key)
    news = before is None or _seen(before) != (wish.state, wish.detail)
    if news or (before is not None and before.matter != reports.matter(wish.report)):
        _tell(conn, actor.workspace, key, state=wish.state, detail=wish.detail, report=wish.report, at=at)
    # Nobody else may get in before the commit is known; without a fence it is not yet a lease that can be renewed.
    _hold(store, key, wish, NOT_YET)
    return str(fence)


def _hold(store: Store, key: Key, wish: Wish, fence: str) -> None:
    before = store.live.leases.get(key)
    same = before is not None and before.holder == wish.holder
    report = before.report if before is not None and same and wish.report is None else wish.report
    store.live.leases[key] = Lease(
        holder=wish.holder,
        fence=fence,
        subscription=wish.subscription,
        session=wish.session,
        runtime=wish.runtime,
        state=wish.state,
        detail=wish.detail,
        until=store.live.clock() + LEASE_SECONDS,
        report=report,
        matter=reports.matter(report),
        kept=before.kept if before is not None and same else "",
        kept_at=before.kept_at if before is not None else float("-inf"),
    )


def _kept(store: Store, key: Key, matter: str) -> None:
    found = store.live.leases.get(key)
    if found is not None:
        store.live.leases[key] = replace(found, kept=matter, kept_at=store.live.clock())


async def _tell_anew(store: Store, workspace: str, key: Key) -> None:
    """Tell what has changed of a receiver, and store its report."""
    told = store.live.leases[key]
    await store.write(_changed, workspace, key, told, at=time.time())
    _kept(store, key, told.matter)


def _changed(conn: Connection, workspace: str, key: Key, told: Lease, *, at: float) -> None:
    _keep_report(conn, key, told)
    _tell(conn, workspace, key, state=told.state, detail=told.detail, report=told.report, at=at)


def _keep_report(conn: Connection, key: Key, told: Lease) -> None:
    if told.report is not None and told.matter != told.kept:
        _keep(conn, who=key[0], place=key[1], told=reports.dumps(told.report))


def _seen(lease: Lease) -> tuple[str, str | None]:
    return lease.state, lease.detail


def _tell(
    conn: Connection,
    workspace: str,
    key: Key,
    *,
    state: str,
    detail: str | None,
    report: Json | None,
    at: float,
) -> None:
    who, scope = key
    data: Json = {"agent": who, "channel": scope or None, "state": state, "detail": detail}
    data["report"] = reports.for_everybody(report)
    events.append(conn, workspace, "receiver.updated", data, channel=scope or None, at=at)


async def release(store: Store, actor: Actor, scope: str, holder: str) -> bool:
    """Give a lease back; an open run stays open. False where this holder has none, which is no error."""
    return await store.write(_release, store, actor, scope, holder, at=time.time())


def _release(conn: Connection, store: Store, actor: Actor, scope: str, holder: str, *, at: float) -> bool:
    key = (actor.id, scope)
    row = _row(conn, who=actor.id, place=scope).one_or_none()
    if row is None or row.released or row.holder != holder:
        return False
    conn.execute(update(receiver).where(receiver.c.member == actor.id, receiver.c.scope == scope).values(released=1))
    gone = store.live.leases.pop(key, None)
    if gone is not None:
        _keep_report(conn, key, gone)
        _tell(conn, actor.workspace, key, state=OFFLINE, detail=None, report=gone.report, at=at)
    return True


def view(conn: Connection, store: Store, who: str, scope: str) -> Json | None:
    """The lease of an agent as `GET /receiver` tells it; None where nobody has it and no run is open."""
    row = _row(conn, who=who, place=scope).one_or_none()
    open_run = runs.open_run(conn, who, scope)
    if row is None or (row.released and open_run is None):
        return None
    live = store.live.leases.get((who, scope))
    counts = not row.released and store.live.lease_left((who, scope)) > 0
    return {
        "channel": scope or None,
        "holderId": None if row.released else row.holder,
        "fence": int(row.fence),
        "expires": round((time.time() + (0 if row.released else store.live.lease_left((who, scope)))) * 1000),
        "requestId": None if open_run is None else open_run.request,
        "run": None if open_run is None else runs.view(open_run),
        "state": live.state if live is not None and counts else OFFLINE,
        "detail": live.detail if live is not None and counts else None,
        "runtime": live.runtime if live is not None else None,
        "sessionId": live.session if live is not None else None,
        "subscription": row.subscription,
    }


def state_of(store: Store, who: str, channel: str) -> Json | None:
    """How a member's receiver in a channel is: `{state, detail, report}`; None where none runs."""
    found = store.live.lease((who, channel)) or store.live.lease((who, runs.NO_SCOPE))
    return None if found is None else {"state": found.state, "detail": found.detail, "report": found.report}


def of_channel(conn: Connection, store: Store, channel: str, *, person: bool) -> dict[str, Json]:
    """The receivers of a channel by member: `{state, detail, report}` each; of those that are gone the last report.

    Args:
        person: a person is shown whole reports; others what is no agent's own words.
    """
    found: dict[str, Json] = {}
    for who, _, stored in _of_channel(conn, place=channel):
        running = state_of(store, who, channel)
        seen = running or {"state": OFFLINE, "detail": None, "report": reports.loads(stored)}
        found[who] = {**seen, "report": reports.shown_to(seen["report"], person=person)}
    return found


def last_report(conn: Connection, who: str, channel: str) -> Json | None:
    """What a member's receiver in a channel last reported, as it is stored.

    Raises:
        Refusal: 409 `no_receiver`, there never was one.
    """
    row = _row(conn, who=who, place=channel).one_or_none() or _row(conn, who=who, place=runs.NO_SCOPE).one_or_none()
    if row is None:
        raise Refusal(409, "no_receiver", "This agent never had a receiver in this channel.")
    return reports.loads(row.report)


async def tell_changed(store: Store) -> None:
    """Store and tell the reports that changed too soon after the last ones; nothing is written where none did."""
    live = store.live
    for key in [each for each in live.leases if live.report_due(each)]:
        row = await store.read(_stored, key)
        if row is not None and live.report_due(key):
            await _tell_anew(store, row.workspace, key)


def _stored(conn: Connection, key: Key) -> LeaseRow | None:
    return _row(conn, who=key[0], place=key[1]).one_or_none()


async def tell_lapsed(store: Store) -> None:
    """Tell of leases that ran out since the last look; nothing is written where there are none."""
    live = store.live
    for key in live.lapsed():
        lease = live.leases[key]
        live.leases[key] = replace(lease, state=OFFLINE, detail=None)
        await store.write(_tell_of, key, at=time.time())


def _tell_of(conn: Connection, key: Key, *, at: float) -> None:
    row = _row(conn, who=key[0], place=key[1]).one_or_none()
    if row is not None:
        _tell(conn, row.workspace, key, state=OFFLINE, detail=None, report=reports.loads(row.report), at=at)


def text_of(detail: object) -> str | None:
    """A detail as text, whatever JSON a client gave."""
    if detail is None or isinstance(detail, str):
        return detail
    return json.dumps(detail, ensure_ascii=False)
