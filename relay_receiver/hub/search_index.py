"""Keeps the index of words up with the events: in batches, behind the posts, so that these cost what they did."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from relay_receiver.hub import docs, tasks
from relay_receiver.hub.prepared import Prepared
from relay_receiver.hub.tables import channel, event, message, message_attachment, workspace
from relay_receiver.hub.tables_people import ask, doc, task
from relay_receiver.hub.tables_search import CHANGEABLE, search_item, search_place, search_scope
from relay_receiver.wire.words import words

BATCH_EVENTS = 128
BATCH_CHARS = 256 * 1024
"""What one write puts into the index at the most: it keeps others waiting for some milliseconds."""
REQUEST_CREATED = "request.created"
_CHANGES = {docs.UPDATED: "doc", tasks.UPDATED: "task", REQUEST_CREATED: "request"}
_TABLES = {"doc": (doc, "content"), "task": (task, "description"), "request": (ask, "description")}

_place = Prepared(select(search_place.c.number).where(search_place.c.workspace == bindparam("of")))
_head = Prepared(select(workspace.c.head).where(workspace.c.id == bindparam("of")))
_scope = Prepared(select(search_scope.c.number).where(search_scope.c.ref == bindparam("wanted")))


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """Something to be found: its words are those of `text`."""

    event: int
    channel: str
    kind: str
    ref: str
    text: str


def behind(conn: Connection, of: str) -> int:
    """How many events of a workspace the index does not know yet."""
    return int(_head(conn, of=of).scalar_one()) - (_place(conn, of=of).scalar() or 0)


def catch_up(conn: Connection, of: str) -> int:
    """Put the next events of a workspace into the index; returns how many are left.

    It is repeated safely: what is indexed and up to where are committed together.
    """
    known = _place(conn, of=of).scalar()
    after, head = known or 0, int(_head(conn, of=of).scalar_one())
    end = min(head, after + BATCH_EVENTS)
    items, chars = [], 0
    for item in sorted([*_messages(conn, of, after, end), *_changed(conn, of, after, end)], key=lambda one: one.event):
        items.append(item)
        chars += len(item.text)
        if chars >= BATCH_CHARS:
            end = item.event
            break
    _put(conn, of, items)
    if known is None:
        conn.execute(insert(search_place).values(workspace=of, number=end))
    elif end > known:
        conn.execute(update(search_place).where(search_place.c.workspace == of).values(number=end))
    return head - end


def _messages(conn: Connection, of: str, after: int, through: int) -> Iterator[Item]:
    rows = conn.execute(
        select(message.c.id, message.c.event, message.c.channel, message.c.content)
        .join(channel, channel.c.id == message.c.channel)
        .where(channel.c.workspace == of, message.c.event > after, message.c.event <= through)
    ).all()
    if not rows:
        return
    files: dict[str, list[str]] = {}
    said = select(message_attachment.c.message, message_attachment.c.name)
    for each in conn.execute(said.where(message_attachment.c.message.in_([row.id for row in rows]))):
        files.setdefault(each.message, []).append(each.name)
    for row in rows:
        text = "\n".join([row.content, *files.get(row.id, ())])
        yield Item(event=row.event, channel=row.channel, kind="message", ref=row.id, text=text)


def _changed(conn: Connection, of: str, after: int, through: int) -> Iterator[Item]:
    """Documents, tasks and requests that the events tell of, as they are now."""
    rows = conn.execute(
        select(event.c.number, event.c.type, event.c.payload).where(
            event.c.workspace == of, event.c.number > after, event.c.number <= through, event.c.type.in_(_CHANGES)
        )
    )
    last = {(_CHANGES[row.type], str(json.loads(row.payload)[_CHANGES[row.type]]["id"])): row.number for row in rows}
    for (kind, ref), number in last.items():
        table, body = _TABLES[kind]
        said = conn.execute(
            select(table.c.channel, table.c.title, table.c[body].label("body")).where(table.c.id == ref)
        ).one()
        yield Item(event=number, channel=said.channel, kind=kind, ref=ref, text=f"{said.title}\n{said.body}")


def _put(conn: Connection, of: str, items: Iterable[Item]) -> None:
    driver: Any = conn.connection.driver_connection
    number = conn.execute(select(func.max(search_item.c.number))).scalar() or 0
    everywhere = _scope_of(conn, of)
    scopes: dict[str, int] = {}
    rows, index = [], []
    known: dict[int, set[str]] = {}
    for item in items:
        here = scopes.get(item.channel) or scopes.setdefault(item.channel, _scope_of(conn, item.channel))
        said = words(item.text)
        kept = None
        if item.kind != "message":
            kept = " ".join(said)
            _forget(conn, item, here, everywhere)
        number += 1
        rows.append((number, item.channel, item.kind, item.ref, kept))
        index.append((number, _terms(here, said), _terms(everywhere, said)))
        known.setdefault(here, set()).update(said)
    known[everywhere] = set().union(*known.values())
    pairs = [(scope, word) for scope, some in known.items() for word in sorted(some)]
    driver.executemany("INSERT INTO search_item (number, channel, kind, ref, words) VALUES (?, ?, ?, ?, ?)", rows)
    driver.executemany("INSERT INTO search (rowid, here, everywhere) VALUES (?, ?, ?)", index)
    driver.executemany("INSERT OR IGNORE INTO search_word (scope, word) VALUES (?, ?)", pairs)


def _terms(scope: int, said: list[str]) -> str:
    return " ".join([f"{scope}:{word}" for word in said])


def _forget(conn: Connection, item: Item, here: int, everywhere: int) -> None:
    """Take what an item said before out of the index."""
    where = (CHANGEABLE, search_item.c.kind == item.kind, search_item.c.ref == item.ref)
    row = conn.execute(select(search_item.c.number, search_item.c.words).where(*where)).one_or_none()
    if row is None:
        return
    said = row.words.split()
    driver: Any = conn.connection.driver_connection
    driver.execute(
        "INSERT INTO search (search, rowid, here, everywhere) VALUES ('delete', ?, ?, ?)",
        (row.number, _terms(here, said), _terms(everywhere, said)),
    )
    conn.execute(delete(search_item).where(search_item.c.number == row.number))


def _scope_of(conn: Connection, ref: str) -> int:
    found = scope_of(conn, ref)
    if found is None:
        found = conn.execute(insert(search_scope).values(ref=ref).returning(search_scope.c.number)).scalar_one()
    return found


def scope_of(conn: Connection, ref: str) -> int | None:
    """The number of a channel or workspace in the index; None where nothing of it is there yet."""
    found: int | None = _scope(conn, wanted=ref).scalar()
    return found
