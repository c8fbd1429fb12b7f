"""Messages as the hub tells them, one by one, by pages, and as the latest of a channel."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from sqlalchemy import Connection, Row, RowMapping, bindparam, select

from relay_receiver.hub import events
from relay_receiver.hub.members import kind
from relay_receiver.hub.prepared import Prepared
from relay_receiver.hub.tables import member, mention, message, message_attachment, workspace
from relay_receiver.wire.message import HUMAN, iso

PAGE_BYTES = 512 * 1024
"""Text of the messages that one answer holds: it may wait for somebody who has stopped reading."""

Json = dict[str, Any]
MessageRow = Row[*tuple[Any, ...]]

_columns = select(message, member.c.name.label("author_name"), member.c.role.label("author_role")).join(
    member, member.c.id == message.c.author
)
_one = Prepared(_columns.where(message.c.id == bindparam("wanted")))
_by_operation = Prepared(_columns.where(message.c.author == bindparam("who"), message.c.operation == bindparam("said")))


def row_of(conn: Connection, wanted: str) -> MessageRow | None:
    """One message with its author's name and role."""
    return _one(conn, wanted=wanted).one_or_none()


def row_by_operation(conn: Connection, who: str, operation: str) -> MessageRow | None:
    """The message that a member posted under an operation id."""
    return _by_operation(conn, who=who, said=operation).one_or_none()


def view(row: Mapping[str, Any] | RowMapping, mentions: Sequence[str], attachments: Sequence[Json]) -> Json:
    """The message of protocol 1 that a row with its author makes."""
    person = kind(row["author_role"]) == HUMAN
    return {
        "id": row["id"],
        "event": row["event"],
        "channel": row["channel"],
        "authorId": HUMAN if person else row["author"],
        "author": {"id": row["author"], "name": row["author_name"], "kind": kind(row["author_role"])},
        "kind": row["kind"],
        "content": row["content"],
        "to": row["recipient"],
        "mentions": list(mentions),
        "replyTo": row["reply_to"],
        "operationId": row["operation"],
        "outcome": row["outcome"],
        "chain": {"root": row["root"], "hop": row["hop"]},
        "attachments": list(attachments),
        "createdAt": iso(row["created_at"]),
        "expiresAt": None if row["expires_at"] is None else iso(row["expires_at"]),
        "notice": None if row["notice"] is None else {"requestId": row["notice"]},
    }


def views(conn: Connection, rows: Sequence[MessageRow]) -> list[Json]:
    """The messages that some rows make, in their order."""
    found = [row.id for row in rows]
    mentions: dict[str, list[str]] = {}
    attachments: dict[str, list[Json]] = {}
    if found:
        said = select(mention.c.message, mention.c.member).where(mention.c.message.in_(found))
        for row in conn.execute(said.order_by(mention.c.message, mention.c.position)):
            mentions.setdefault(row.message, []).append(row.member)
        files = select(message_attachment).where(message_attachment.c.message.in_(found))
        for row in conn.execute(files.order_by(message_attachment.c.message, message_attachment.c.position)):
            attachments.setdefault(row.message, []).append(
                {"id": row.attachment, "name": row.name, "type": row.type, "size": row.size}
            )
    return [view(row._mapping, mentions.get(row.id, ()), attachments.get(row.id, ())) for row in rows]  # noqa: SLF001 - Core's own API


def latest(conn: Connection, channel: str, count: int, *, most_bytes: int = PAGE_BYTES) -> list[Json]:
    """The last messages of a channel, ascending; fewer where their texts are long."""
    rows, _ = _page(
        conn, _columns.where(message.c.channel == channel).order_by(message.c.event.desc()), count, most_bytes
    )
    return views(conn, rows[::-1])


def _page(conn: Connection, wanted: Any, limit: int, most_bytes: int) -> tuple[list[MessageRow], bool]:  # noqa: ANN401 - a select of Core
    """As many rows as make a page, one at least, and whether another follows; no more than that is read."""
    page: list[MessageRow] = []
    total = 0
    with closing(conn.execute(wanted.limit(limit + 1))) as rows:
        for row in rows:
            total += len(row.content.encode())
            if page and (len(page) == limit or total > most_bytes):
                return page, True
            page.append(row)
    return page, False


def history(conn: Connection, of: str, channel: str, *, after: int | None, before: int | None, limit: int) -> Json:
    """A page of a channel, ascending: forwards from `after`, else backwards from `before`, else from now.

    It has at most `limit` messages, and fewer where their texts are long; `more` says that others follow.

    The cursor is where a stream goes on that has seen the page: behind its last message while more follow, else now.
    """
    wanted = _columns.where(message.c.channel == channel)
    if before is not None:
        wanted = wanted.where(message.c.event < before)
    if after is not None:
        wanted = wanted.where(message.c.event > after)
    forwards = after is not None
    order = message.c.event if forwards else message.c.event.desc()
    rows, more = _page(conn, wanted.order_by(order), limit, PAGE_BYTES)
    page = rows if forwards else rows[::-1]
    cursor = events.cursor_at(conn, of, page[-1].event) if forwards and more else events.head(conn, of)
    pruned = conn.execute(select(workspace.c.messages_pruned).where(workspace.c.id == of)).scalar_one()
    return {"messages": views(conn, page), "cursor": str(cursor), "more": more, "prunedThrough": pruned}
