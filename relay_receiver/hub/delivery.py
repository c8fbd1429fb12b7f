"""How far a request has come, why it waits, and on whom: the `delivery` that its requester is shown."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from relay_receiver.hub import ask_views, members, message_views, reasons, receipts
from relay_receiver.hub.store import Store
from relay_receiver.wire.reason import Reason, because
from relay_receiver.wire.stage import Stage

Json = dict[str, Any]


def of(conn: Connection, store: Store, message: str, *, at: float) -> Json | None:
    """The delivery of a request; None for other messages.

    Returns:
        `{stage, since, detail, job, position, reason, nextTry, waitsOn}`: `position` counts what is before it while it
        waits in line; `reason` is the word for why it waits and `detail` the sentence; `waitsOn` are the requests
        to people that the job waits for: `{request, kind, title, approvers, people, expiresAt}` each, `people`
        their names, None for anybody.
    """
    found = receipts.delivery(conn, message, at=at)
    if found is None:
        return None
    told, row = found
    told = {**told, "nextTry": None, "waitsOn": []}
    if told["stage"] == Stage.WAITING:
        waits = _waits_on(conn, message, at=at)
        reason = because(Reason.PERSON, told["detail"] or _said(waits))
        return {**told, "reason": reason.reason, "detail": reason.detail, "waitsOn": waits}
    if told["stage"] not in receipts.WAITING_IN_LINE:
        return told
    who, author = members.get(conn, row.member), message_views.row_of(conn, message)
    by_agent = author is not None and members.kind(author.author_role) == members.AGENT
    reason = reasons.of(
        conn,
        store,
        row.member,
        row.channel,
        role=None if who is None else who.role,
        by_agent=by_agent,
        taken=told["stage"] == Stage.RECEIVED,
    )
    if reasons.paused(conn, store, row.member, row.channel):
        told["position"] = receipts.in_line(
            conn, row.member, row.channel, event=row.event, paused=True, by_agent=by_agent
        )
    # What ended an earlier attempt is no reason for what waits again.
    return {**told, "reason": reason.reason, "detail": reason.detail, "nextTry": reason.next_try}


def _waits_on(conn: Connection, message: str, *, at: float) -> list[Json]:
    """The requests to people that the job of a message waits for."""
    found = ask_views.waiting_on(conn, message, at=at)
    names = members.names(conn, {who for each in found for who in each["approvers"] or ()})
    return [{**each, "people": _names(each["approvers"], names)} for each in found]


def _names(approvers: Sequence[str] | None, known: Mapping[str, Any]) -> list[str] | None:
    return None if approvers is None else [known[who].name for who in approvers if who in known]


def _said(waits: Sequence[Json]) -> str | None:
    """On whom, for what, in words."""
    if not waits:
        return None
    first = waits[0]
    people = first["people"]
    on = "any person of the channel" if people is None else " or ".join(people) or "nobody who is here"
    more = f", and {len(waits) - 1} more" if len(waits) > 1 else ""
    return f"it waits on {on}, for {first['kind']}: {first['title']}{more}"
