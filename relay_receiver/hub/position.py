"""Where a reader of the feed goes on, and what came after it."""

from dataclasses import dataclass

from sqlalchemy import Connection

from relay_receiver.hub import events
from relay_receiver.hub.errors import Refusal, malformed
from relay_receiver.hub.feed import Feed, published
from relay_receiver.hub.reader import Filter, Published
from relay_receiver.hub.store import Store
from relay_receiver.wire.cursor import Cursor

PAGE = 200
"""Events read at a time."""
PAGE_BYTES = 1024 * 1024
"""Memory of a page's events: what is told at once may wait for a reader that has stopped reading."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """What came after a position: the events that a filter takes, and the position behind them."""

    events: list[Published]
    cursor: Cursor
    more: bool


def parse(value: object) -> Cursor:
    """A cursor that a client sent.

    Raises:
        Refusal: 400.
    """
    try:
        return Cursor.parse(value)
    except ValueError:
        raise malformed("The cursor is not one that a hub made.", "bad_cursor") from None


def page_after(store: Store, feed: Feed, workspace: str, cursor: Cursor, wanted: Filter) -> Page:
    """The next page after a position; from memory where it is there, else by one read.

    Raises:
        Refusal: 409 `cursor_expired` or `diverged`.
    """
    recent = feed.stream(workspace).after(cursor)
    if recent is None:
        return store.read_now(_stored, workspace, cursor, wanted)
    some = recent[:PAGE]
    taken = [each for each in some if wanted.takes(each)]
    kept = _within(taken)
    last = kept if len(kept) < len(taken) else some
    position = Cursor.parse(last[-1].cursor) if last else cursor
    return Page(events=kept, cursor=position, more=last is kept or len(recent) > PAGE)


def _within(taken: list[Published]) -> list[Published]:
    """Of the events as many as a page holds, one at least."""
    total = 0
    for count, each in enumerate(taken):
        total += each.size
        if total > PAGE_BYTES and count:
            return taken[:count]
    return taken


def _stored(conn: Connection, workspace: str, cursor: Cursor, wanted: Filter) -> Page:
    if reason := events.check_cursor(conn, workspace, cursor):
        raise Refusal(409, reason, SENTENCES[reason])
    none = wanted.types is not None and not wanted.types
    rows = (
        []
        if none
        else events.rows_after(
            conn, workspace, cursor.number, channels=wanted.channels, types=wanted.types or (), limit=PAGE
        )
    )
    taken = [published(row) for row in rows]
    kept = _within(taken)
    more = len(rows) == PAGE or len(kept) < len(taken)
    # All up to the head was looked at in this one snapshot, so the position is there, whatever the filter left out.
    position = Cursor.parse(kept[-1].cursor) if more else events.head(conn, workspace)
    return Page(events=kept, cursor=position, more=more)


SENTENCES = {
    events.CURSOR_EXPIRED: "The cursor is too old; read the history.",
    events.DIVERGED: "The cursor is not one of this hub's past; read the history.",
}


def is_reset(refusal: Refusal) -> bool:
    """Whether the reader has to read the history before it can go on."""
    return refusal.code in SENTENCES
