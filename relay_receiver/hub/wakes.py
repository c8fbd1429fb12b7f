"""Whom a message wakes, before it is sent and after: the receivers decide, and this tells what they will."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from relay_receiver.hub import leases, members, messages, reasons, receipts
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.store import Store
from relay_receiver.jobs.wake import Wake, wakes
from relay_receiver.wire.reason import Reason, because

Json = dict[str, Any]


def of(conn: Connection, store: Store, actor: Actor, draft: messages.Draft) -> list[Json]:
    """Whom a message would wake if it were sent now, and each other member that it is addressed to.

    Returns:
        `{id, name, kind, wake, wakes, runs, state, detail, reason, nextTry, position}` each: `wake` is the setting of
        its receiver, `runs` whether that is connected, `reason` (with `detail`, one sentence) why it would not be
        worked on at once, `position` how many requests would be before it; those that are not woken come last.

    Raises:
        Refusal: those with which the message itself would be refused.
    """
    said = messages.addressed(conn, actor, draft)
    meant = {each for each in (said.to, *said.mentions) if each is not None}
    found = []
    for row in members.roster(conn, draft.channel):
        if row.id == actor.id:
            continue
        agent = members.kind(row.role) == members.AGENT
        setting = wake_of(reasons.report_of(conn, store, row.id, draft.channel)) if agent else Wake.MANUAL
        woken = wakes(
            setting,
            me=row.id,
            author=actor.id,
            kind=draft.kind,
            to=said.to,
            mentions=said.mentions,
            notice=draft.notice is not None,
        )
        if woken or row.id in meant:
            found.append(_told(conn, store, actor, draft, row, setting=setting if agent else None, woken=woken))
    return sorted(found, key=lambda each: (not each["wakes"], each["name"].casefold(), each["id"]))


def _told(
    conn: Connection,
    store: Store,
    actor: Actor,
    draft: messages.Draft,
    row: Any,  # noqa: ANN401 - a row of the roster
    *,
    setting: Wake | None,
    woken: bool,
) -> Json:
    now = leases.state_of(store, row.id, draft.channel)
    by_agent = members.kind(actor.role) == members.AGENT
    reason = reasons.of(conn, store, row.id, draft.channel, role=row.role, by_agent=by_agent)
    if setting is not None and not woken:
        reason = because(Reason.MANUAL if setting is Wake.MANUAL else Reason.NOT_MENTIONED)
    return {
        "id": row.id,
        "name": row.name,
        "kind": members.kind(row.role),
        "wake": None if setting is None else setting.value,
        "wakes": woken,
        "runs": now is not None,
        "state": None if now is None else now["state"],
        "detail": reason.detail,
        "reason": reason.reason,
        "nextTry": reason.next_try,
        "position": receipts.in_line(conn, row.id, draft.channel) if woken else None,
    }


def wake_of(report: Mapping[str, Any]) -> Wake:
    """The wake setting that a receiver told; the usual one where it told none."""
    told = report.get("wake")
    return Wake(told) if told in {each.value for each in Wake} else Wake.ADDRESSED


def after(store: Store, stored: Mapping[str, Any]) -> list[Json]:
    """Whom a message that was stored wakes: `{id, name, receiver}` each, `receiver` its state or None.

    Those with the setting `all` are told where their receivers are connected.
    """
    author = stored["author"]["id"]
    ids = [] if stored["notice"] is not None else [each for each in _candidates(store, stored) if each != author]
    # Most messages wake nobody: they cost no read.
    return store.read_now(_named, store, ids, stored["channel"]) if ids else []


def _named(conn: Connection, store: Store, ids: Sequence[str], channel: str) -> list[Json]:
    found = members.names(conn, ids)
    return [
        {"id": each, "name": found[each].name, "receiver": (leases.state_of(store, each, channel) or {}).get("state")}
        for each in dict.fromkeys(ids)
        if each in found and found[each].role == members.AGENT
    ]


def _candidates(store: Store, stored: Mapping[str, Any]) -> Sequence[str]:
    if stored["kind"] == "request":
        return [] if stored["to"] is None else [stored["to"]]
    if stored["kind"] != "message":
        return []
    # The writer's thread may add a lease meanwhile.
    held = list(store.live.leases.items())
    here = [
        (key, lease) for key, lease in held if key[1] == stored["channel"] and wake_of(lease.report or {}) is Wake.ALL
    ]
    return [*stored["mentions"], *(key[0] for key, _ in here if store.live.lease(key) is not None)]
