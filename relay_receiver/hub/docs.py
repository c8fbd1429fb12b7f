"""Shared Markdown documents of a channel: every change is a revision, and none is lost to another one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, RowMapping, and_, insert, or_, select, update

from relay_receiver.hub import channels, events, ids, members
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.errors import Refusal, invalid, not_found
from relay_receiver.hub.tables_people import doc, doc_revision
from relay_receiver.wire.message import iso

CONTENT_BYTES = 256 * 1024
PAGE = 100
"""Documents or revisions that one answer lists, unless asked for fewer."""

UPDATED = "doc.updated"

Json = dict[str, Any]
DocRow = Row[*tuple[Any, ...]]

_SEEN = [column for column in doc.c if column.name != "content"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """A document to make. `operation` makes it once, however often it is asked for."""

    channel: str
    title: str
    content: str
    operation: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """What becomes of a document that was read at `rev`; None leaves a field as it is."""

    rev: int
    title: str | None = None
    content: str | None = None
    archived: bool | None = None

    def values(self) -> Json:
        """The columns that it sets."""
        archived = None if self.archived is None else int(self.archived)
        said = {"title": self.title, "content": self.content, "archived": archived}
        return {name: value for name, value in said.items() if value is not None}


def create(conn: Connection, actor: Actor, draft: Draft, *, at: float) -> Json:
    """Make a document and return it with its content.

    Raises:
        Refusal: 403 for a job, 404 the channel, 409 `operation_reused`.
    """
    actor.need_member()
    if (before := _repeated(conn, actor, draft)) is not None:
        return before
    channels.need(actor, draft.channel)
    made = ids.new("d")
    conn.execute(
        insert(doc).values(
            id=made,
            workspace=actor.workspace,
            channel=draft.channel,
            title=draft.title,
            content=draft.content,
            created_by=actor.id,
            created_at=at,
            updated_by=actor.id,
            updated_at=at,
            operation=draft.operation,
        )
    )
    return _revised(conn, actor, made, at=at)


def _repeated(conn: Connection, actor: Actor, draft: Draft) -> Json | None:
    """The document that was made under this operation id before, as it is now."""
    if draft.operation is None:
        return None
    row = conn.execute(select(doc).where(doc.c.created_by == actor.id, doc.c.operation == draft.operation)).first()
    if row is None:
        return None
    first = conn.execute(select(doc_revision).where(doc_revision.c.doc == row.id, doc_revision.c.rev == 1)).one()
    if (row.channel, first.title, first.content) != (draft.channel, draft.title, draft.content):
        raise Refusal(409, "operation_reused", "This operation id was used for another document.", doc=row.id)
    if row.channel not in actor.channels:
        raise not_found("document")
    return _told(conn, row)


def change(conn: Connection, actor: Actor, wanted: str, wish: Change, *, at: float) -> Json:
    """Make the next revision of a document; what it says already is no change, and no conflict.

    Raises:
        Refusal: 403 for a job, 404, 422 nothing to change; 409 `stale_rev`, somebody changed it since, with the
            document as it is now in `current`.
    """
    actor.need_member()
    row = _need(conn, actor, wanted)
    values = wish.values()
    if not values:
        raise invalid("content", "Nothing to change: give `title`, `content` or `archived`.")
    if wish.rev > row.rev:
        raise invalid("rev", f"`rev` is ahead of the document, which is at revision {row.rev}.")
    if all(row._mapping[name] == value for name, value in values.items()):  # noqa: SLF001 - Core's own API
        return _told(conn, row)
    if wish.rev != row.rev:
        if _made(conn, actor, wanted, wish):
            return _told(conn, row)
        raise stale("document", _told(conn, row))
    conn.execute(
        update(doc).where(doc.c.id == wanted).values(**values, rev=wish.rev + 1, updated_by=actor.id, updated_at=at)
    )
    return _revised(conn, actor, wanted, at=at)


def _made(conn: Connection, actor: Actor, wanted: str, wish: Change) -> bool:
    """Whether the change was made before, by the same one: its answer was lost, and others came after it."""
    here = (doc_revision.c.doc == wanted, doc_revision.c.rev == wish.rev + 1, doc_revision.c.by == actor.id)
    then = conn.execute(select(doc_revision.c.title, doc_revision.c.content).where(*here)).one_or_none()
    said = {name: value for name, value in (("title", wish.title), ("content", wish.content)) if value is not None}
    return then is not None and bool(said) and all(then._mapping[name] == value for name, value in said.items())  # noqa: SLF001 - Core's own API


def stale(what: str, current: Json) -> Refusal:
    """409: it was changed since it was read; `current` is what it is now."""
    who, rev = current["updatedBy"]["name"], current["rev"]
    return Refusal(
        409,
        "stale_rev",
        f"The {what} was changed since you read it: it is at revision {rev} now, by {who}. Nothing was changed.",
        rev=rev,
        current=current,
    )


def _revised(conn: Connection, actor: Actor, wanted: str, *, at: float) -> Json:
    """Keep the revision that a document has come to, and tell of it."""
    row = _row(conn, wanted)
    assert row is not None  # noqa: S101 - it was written in this transaction
    conn.execute(
        insert(doc_revision).values(doc=row.id, rev=row.rev, title=row.title, content=row.content, by=actor.id, at=at)
    )
    data = {"doc": {"id": row.id, "channel": row.channel, "rev": row.rev, "title": row.title}}
    events.append(conn, actor.workspace, UPDATED, data, channel=row.channel, at=at)
    return _told(conn, row)


def get(conn: Connection, actor: Actor, wanted: str, rev: int | None = None) -> Json:
    """One document with its content, as it is or as it was at `rev`; `latest` is its newest revision.

    Raises:
        Refusal: 404.
    """
    row = _need(conn, actor, wanted)
    if rev is None or rev == row.rev:
        return _told(conn, row)
    then = conn.execute(select(doc_revision).where(doc_revision.c.doc == wanted, doc_revision.c.rev == rev)).first()
    if then is None:
        raise not_found("revision")
    past = {"rev": rev, "title": then.title, "content": then.content, "updated_by": then.by, "updated_at": then.at}
    seen = {**row._mapping, **past}  # noqa: SLF001 - Core's own API
    return {**_view(seen, members.names(conn, {row.created_by, then.by})), "content": then.content, "latest": row.rev}


def list_docs(
    conn: Connection,
    actor: Actor,
    channel: str | None = None,
    *,
    archived: bool = False,
    before: str | None = None,
    limit: int = PAGE,
) -> Json:
    """`{docs, more}`: documents of the caller's channels without their content, the last changed first.

    Args:
        channel: only of this one.
        archived: those put away, instead of the others.
        before: the id of a document; only those that come after it in this order.

    Raises:
        Refusal: 404, the channel or `before`.
    """
    places = actor.channels if channel is None else {channels.need(actor, channel)}
    wanted = select(*_SEEN).where(doc.c.channel.in_(places), doc.c.archived == int(archived))
    if before is not None:
        last = _need(conn, actor, before)
        same = and_(doc.c.updated_at == last.updated_at, doc.c.id < last.id)
        wanted = wanted.where(or_(doc.c.updated_at < last.updated_at, same))
    rows = conn.execute(wanted.order_by(doc.c.updated_at.desc(), doc.c.id.desc()).limit(limit + 1)).all()
    return {"docs": _views(conn, rows[:limit]), "more": len(rows) > limit}


def revisions(conn: Connection, actor: Actor, wanted: str, *, before: int | None = None, limit: int = PAGE) -> Json:
    """`{revisions: [{rev, title, by, at, bytes}], more}`, the newest first.

    Args:
        before: only those older than this one.

    Raises:
        Refusal: 404.
    """
    _need(conn, actor, wanted)
    said = select(doc_revision).where(doc_revision.c.doc == wanted)
    if before is not None:
        said = said.where(doc_revision.c.rev < before)
    rows = conn.execute(said.order_by(doc_revision.c.rev.desc()).limit(limit + 1)).all()
    people = members.names(conn, {row.by for row in rows})
    told = [
        {
            "rev": row.rev,
            "title": row.title,
            "by": person(people, row.by),
            "at": iso(row.at),
            "bytes": len(row.content.encode()),
        }
        for row in rows[:limit]
    ]
    return {"revisions": told, "more": len(rows) > limit}


def _row(conn: Connection, wanted: str) -> DocRow | None:
    return conn.execute(select(doc).where(doc.c.id == wanted)).one_or_none()


def _need(conn: Connection, actor: Actor, wanted: str) -> DocRow:
    row = _row(conn, wanted)
    if row is None or row.channel not in actor.channels:
        raise not_found("document")
    return row


def _told(conn: Connection, row: DocRow) -> Json:
    return {**_views(conn, [row])[0], "content": row.content, "latest": row.rev}


def _views(conn: Connection, rows: Sequence[DocRow]) -> list[Json]:
    people = members.names(conn, {who for row in rows for who in (row.created_by, row.updated_by)})
    return [_view(row._mapping, people) for row in rows]  # noqa: SLF001 - Core's own API


def _view(row: Mapping[str, Any] | RowMapping, people: Mapping[str, Any]) -> Json:
    return {
        "id": row["id"],
        "channel": row["channel"],
        "rev": row["rev"],
        "title": row["title"],
        "archived": bool(row["archived"]),
        "createdBy": person(people, row["created_by"]),
        "createdAt": iso(row["created_at"]),
        "updatedBy": person(people, row["updated_by"]),
        "updatedAt": iso(row["updated_at"]),
    }


def person(people: Mapping[str, Any], who: str) -> Json:
    """Who did it, as `{id, name, kind}`."""
    found = people[who]
    return {"id": who, "name": found.name, "kind": members.kind(found.role)}
