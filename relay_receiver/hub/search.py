"""Search in what a member may read: messages, documents, tasks and requests, the newest first."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table, bindparam, select, text

from relay_receiver.hub import channels, docs, members, search_index
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.errors import Refusal
from relay_receiver.hub.prepared import Prepared
from relay_receiver.hub.store import Store
from relay_receiver.hub.tables import message
from relay_receiver.hub.tables_people import ask, doc, task
from relay_receiver.hub.tables_search import search_word
from relay_receiver.wire.message import iso
from relay_receiver.wire.words import Query, parse, snippet

PAGE = 20
COMPLETIONS = 32
"""Words that the beginning of one is completed to."""
FEW = 3
"""In so few channels a search looks into each; in more, first through the newest of the whole workspace."""
LOOKS, WIDER = 4, 4
"""A search through the workspace looks so often, each time at so many times more rows, before it asks each channel."""
BATCHES_AT_ONCE = 8
"""Batches of late events that a search waits for."""
LATE = "The newest messages are not in the index yet; search again in a moment."
UNAVAILABLE = 503

Json = dict[str, Any]

_complete = Prepared(
    select(search_word.c.word)
    .where(search_word.c.scope == bindparam("of"), search_word.c.word >= bindparam("least"))
    .where(search_word.c.word < bindparam("beyond"))
    .order_by(search_word.c.word)
    .limit(COMPLETIONS + 1)
)
_found = Prepared(
    text(
        "SELECT search_item.number, search_item.channel, search_item.kind, search_item.ref"
        " FROM search CROSS JOIN search_item ON search_item.number = search.rowid"
        " WHERE search MATCH :wanted AND search.rowid < :before AND search_item.kind <> :hidden"
        " ORDER BY search.rowid DESC LIMIT :most"
    )
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """One thing found, and its place in the order."""

    number: int
    channel: str
    kind: str
    ref: str


async def look(
    store: Store, actor: Actor, query: str, channel: str | None = None, *, before: int | None = None, limit: int = PAGE
) -> Json:
    """What `find` finds once the index knows of everything that was committed before the call.

    Raises:
        Refusal: 404, the channel is not one of the caller's.
    """
    late = await _catch_up(store, actor.workspace)
    found = await store.read(find, actor, query, channel, before=before, limit=limit)
    return {**found, "note": found["note"] or LATE} if late else found


async def _catch_up(store: Store, workspace: str) -> bool:
    """Put what was committed into the index, within reason; True where something is left."""
    for _ in range(BATCHES_AT_ONCE):
        if not await store.read(search_index.behind, workspace):
            return False
        try:
            await store.write(search_index.catch_up, workspace)
        except Refusal as refusal:
            if refusal.status != UNAVAILABLE:
                raise
            return True
    return bool(await store.read(search_index.behind, workspace))


def find(
    conn: Connection,
    actor: Actor,
    query: str,
    channel: str | None = None,
    *,
    before: int | None = None,
    limit: int = PAGE,
) -> Json:
    """`{results, next, note}`: what has all the words, the newest first.

    Each result is `{kind, id, channel, title, by, at, snippet: [{text, hit}], ...}` with `event` and `replyTo` for a
    message, `rev` for a document, `state` for a task or request.

    Args:
        query: whatever somebody typed.
        channel: only in this one, else in all of the caller's.
        before: the `next` of the page before.
        limit: results of a page.

    Raises:
        Refusal: 404, the channel is not one of the caller's.
    """
    places = actor.channels if channel is None else frozenset({channels.need(actor, channel)})
    wanted = parse(query)
    if not wanted.phrases or not places:
        return {"results": [], "next": None, "note": None}
    looking = _Looking(conn, actor.workspace, places, wanted, job=actor.job is not None)
    hits = looking.hits(before, limit + 1)
    results = _results(conn, hits[:limit], looking.highlighted)
    after = hits[limit - 1].number if len(hits) > limit else None
    return {"results": results, "next": after, "note": looking.note}


class _Looking:
    """One search: the words that it comes to in each scope, and the rows that have them."""

    def __init__(self, conn: Connection, workspace: str, places: frozenset[str], wanted: Query, *, job: bool) -> None:
        self._hidden = "request" if job else ""
        # A job sees its own requests only, so a search shows it none.
        self._conn, self._workspace, self._places, self._wanted = conn, workspace, places, wanted
        self.highlighted: set[str] = {word for phrase in wanted.phrases for word in phrase}
        self.note: str | None = None

    def hits(self, before: int | None, most: int) -> list[Hit]:
        """At most `most` of what is found, the newest first."""
        start = 2**62 if before is None else before
        if len(self._places) <= FEW:
            return self._in_each(start, most)
        everywhere, found, size = self._matching(self._workspace), [], most
        if everywhere is None:
            return []
        for _ in range(LOOKS):
            rows = _found(self._conn, wanted=everywhere, before=start, most=size, hidden=self._hidden).all()
            found += [Hit(**row._mapping) for row in rows if row.channel in self._places]  # noqa: SLF001 - as Core's rows
            if len(found) >= most or len(rows) < size:
                return found[:most]
            start, size = rows[-1].number, size * WIDER
        return found + self._in_each(start, most - len(found))

    def _in_each(self, before: int, most: int) -> list[Hit]:
        ways = [way for place in sorted(self._places) if (way := self._matching(place)) is not None]
        if not ways:
            return []
        rows = _found(
            self._conn, wanted=" OR ".join(f"({way})" for way in ways), before=before, most=most, hidden=self._hidden
        )
        return [Hit(**row._mapping) for row in rows]  # noqa: SLF001 - as Core's rows

    def _matching(self, scope: str) -> str | None:
        """The expression of the index for one scope; None where nothing in it can match."""
        number = search_index.scope_of(self._conn, scope)
        if number is None:
            return None
        *whole, last = self._wanted.phrases
        said = [_phrase(number, phrase) for phrase in whole]
        if not self._wanted.open_end:
            return " AND ".join([*said, _phrase(number, last)])
        completed = [_phrase(number, (*last[:-1], word)) for word in self._completed(number, last[-1])]
        if not completed:
            return None
        return " AND ".join([*said, f"({' OR '.join(completed)})"])

    def _completed(self, scope: int, beginning: str) -> Sequence[str]:
        beyond = beginning[:-1] + chr(ord(beginning[-1]) + 1)
        found = _complete(self._conn, of=scope, least=beginning, beyond=beyond).scalars()
        if len(found) > COMPLETIONS:
            self.note = (
                f"More than {COMPLETIONS} words begin with {beginning}; only the first of them in the alphabet "
                "were looked for. Type more of the word."
            )
        self.highlighted.update(found[:COMPLETIONS])
        return found[:COMPLETIONS]


def _phrase(scope: int, words: Sequence[str]) -> str:
    """A phrase of the index; folded words hold no quotes."""
    return '"' + " ".join(f"{scope}:{word}" for word in words) + '"'


def _columns(table: Table, body: str, by: str, at: str, *more: str) -> Any:  # noqa: ANN401 - a select of Core
    said = (table.c[body].label("body"), table.c[by].label("by"), table.c[at].label("at"))
    return select(table.c.id, *said, *(table.c[each] for each in more))


_SOURCES: Mapping[str, tuple[Table, Any]] = {
    "message": (message, _columns(message, "content", "author", "created_at", "event", "kind")),
    "doc": (doc, _columns(doc, "content", "updated_by", "updated_at", "title", "rev")),
    "task": (task, _columns(task, "description", "updated_by", "updated_at", "title", "state")),
    "request": (ask, _columns(ask, "description", "author", "created_at", "title", "state")),
}


def _results(conn: Connection, hits: Sequence[Hit], wanted: Collection[str]) -> list[Json]:
    rows: dict[str, Mapping[str, Any]] = {}
    for kind, (table, columns) in _SOURCES.items():
        refs = [hit.ref for hit in hits if hit.kind == kind]
        if refs:
            found = conn.execute(columns.where(table.c.id.in_(refs)))
            rows.update({row.id: row._mapping for row in found})  # noqa: SLF001 - Core's own API
    people = members.names(conn, {row["by"] for row in rows.values()})
    return [_result(hit, rows[hit.ref], people, wanted) for hit in hits]


def _result(hit: Hit, row: Mapping[str, Any], people: Mapping[str, Any], wanted: Collection[str]) -> Json:
    more = {name: row[name] for name in ("event", "rev", "state") if name in row}
    if hit.kind == "message":
        more["messageKind"] = row["kind"]
    return {
        "kind": hit.kind,
        "id": hit.ref,
        "channel": hit.channel,
        "title": row.get("title"),
        "by": docs.person(people, row["by"]),
        "at": iso(row["at"]),
        "snippet": [{"text": part.text, "hit": part.hit} for part in snippet(row["body"], wanted)],
        **more,
    }
