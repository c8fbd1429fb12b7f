"""How far a request has come, why it waits, and on whom: the `delivery` that its requester is shown."""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, select

from relay_receiver.hub import members, message_views, reasons, receipts
from relay_receiver.hub.prepared import Prepared
from relay_receiver.hub.store import Store
from relay_receiver.hub.tables_people import ASK_OPEN, ask
from relay_receiver.wire.message import iso
from relay_receiver.wire.reason import Reason, because
from relay_receiver.wire.stage import Stage

Json = dict[str, Any]

_asked = Prepared(
    select(ask.c.id, ask.c.kind, ask.c.title, ask.c.approvers, ask.c.expires_at)
    .where(ask.c.workspace == bindparam("place"), ASK_OPEN, ask.c.message == bindparam("wanted"))
    .order_by(ask.c.expires_at)
    .limit(20)
)


def of(conn: Connection, store: Store, message: str, *, at: float) -> Json | None:
    """The delivery of a request; None for other messages.

    Returns:
        `{stage, since, detail, job, position, reason, nextTry, waitsOn}`: `position` counts what is before it while it
        waits in line; `reason` is the word for why it waits and `detail` the sentence; `waitsOn` are the requests to
        people that the job waits for: `{id, kind, title, people, expiresAt}` each, `people` None for anybody.
    """
    found = receipts.delivery(conn, message, at=at)
    if found is None:
        return None
    told, row = found
    told = {**told, "nextTry": None, "waitsOn": []}
    if told["stage"] == Stage.WAITING:
        waits = _waits_on(conn, row.workspace, message)
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
    if bool((reasons.report_of(conn, store, row.member, row.channel).get("chain") or {}).get("paused")):
        told["position"] = receipts.in_line(
            conn, row.member, row.channel, event=row.event, paused=True, by_agent=by_agent
        )
    return {**told, "reason": reason.reason, "detail": reason.detail, "nextTry": reason.next_try}


def _waits_on(conn: Connection, workspace: str, message: str) -> list[Json]:
    """The requests to people that the job of a message waits for."""
    rows = _asked(conn, place=workspace, wanted=message).all()
    approvers = [json.loads(row.approvers) if row.approvers else None for row in rows]
    names = members.names(conn, {who for each in approvers for who in each or ()})
    return [
        {
            "id": row.id,
            "kind": row.kind,
            "title": row.title,
            "people": None if among is None else [names[who].name for who in among if who in names],
            "expiresAt": iso(row.expires_at),
        }
        for row, among in zip(rows, approvers, strict=True)
    ]


def _said(waits: Sequence[Json]) -> str | None:
    """On whom, for what, in words."""
    if not waits:
        return None
    first = waits[0]
    people = first["people"]
    on = "any person of the channel" if people is None else " or ".join(people) or "nobody who is here"
    more = f", and {len(waits) - 1} more" if len(waits) > 1 else ""
    return f"it waits on {on}, for {first['kind']}: {first['title']}{more}"
