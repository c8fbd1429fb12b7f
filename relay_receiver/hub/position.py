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
    position = Cursor.parse(some[-1].cursor) if some else cursor
    return Page(events=[each for each in some if wanted.takes(each)], cursor=position, more=len(recent) > PAGE)


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
    more = len(rows) == PAGE
    # All up to the head was looked at in this one snapshot, so the position is there, whatever the filter left out.
    position = rows[-1].cursor if more else events.head(conn, workspace)
    return Page(events=[published(row) for row in rows], cursor=position, more=more)


SENTENCES = {
    events.CURSOR_EXPIRED: "The cursor is too old; read the history.",
    events.DIVERGED: "The cursor is not one of this hub's past; read the history.",
}


def is_reset(refusal: Refusal) -> bool:
    """Whether the reader has to read the history before it can go on."""
    return refusal.code in SENTENCES
