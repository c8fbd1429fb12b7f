"""What waits for a reader that has stopped reading is bounded in bytes, and nothing is lost by it."""

import asyncio
from typing import Any

import pytest
from support_hubstore import Desk

from relay_receiver.hub import events, message_views, position
from relay_receiver.hub.feed import Feed
from relay_receiver.hub.reader import QUEUE_BYTES, TOO_SLOW, Filter, Published, Reader
from relay_receiver.wire.cursor import Cursor
from relay_receiver.wire.limits import CONTENT_BYTES

LONG = "x" * CONTENT_BYTES


def _event(number: int, text: str) -> Published:
    return Published(number=number, cursor=f"{number}.tag", type="message.created", channel="c", text=text)


def test_a_reader_is_given_up_once_too_much_waits_for_it() -> None:
    async def go() -> list[tuple[int, str]]:
        ended: list[tuple[int, str]] = []
        wanted = Filter(channels=frozenset({"c"}), types=None)
        reader = Reader("w", wanted, bound=1000, on_end=lambda *said: ended.append(said))
        reader.push(_event(1, "x" * (2 * QUEUE_BYTES)))
        assert not ended
        assert len(reader.take()) == 1
        for number in range(2, 20):
            reader.push(_event(number, "x" * (QUEUE_BYTES // 5)))
            assert len(reader.take()) == 1
        for number in range(20, 30):
            reader.push(_event(number, "x" * (QUEUE_BYTES // 5)))
        assert not reader.pending
        return ended

    ((code, _),) = asyncio.run(go())
    assert code == TOO_SLOW


@pytest.mark.parametrize("remembered", [False, True])
def test_pages_of_events_are_bounded_and_follow_each_other(hub: Desk, remembered: bool) -> None:  # noqa: FBT001 - a parameter of the test
    feed = Feed(ring_events=1000, queue_events=1000)
    made = [hub.post("owner", LONG)["event"] for _ in range(40)]
    if remembered:
        feed.publish(hub.store.read_now(_rows, hub.workspace))
    wanted = Filter(channels=frozenset({hub.lab}), types=frozenset({"message.created"}))
    cursor, seen, pages = hub.store.read_now(_cursor_before, hub.workspace, made[0]), [], 0
    while True:
        page = position.page_after(hub.store, feed, hub.workspace, cursor, wanted)
        assert sum(each.size for each in page.events) <= position.PAGE_BYTES
        seen += [each.number for each in page.events]
        cursor, pages = page.cursor, pages + 1
        if not page.more:
            break
    assert seen == made
    assert pages > 2


def _rows(conn: Any, of: str) -> Any:
    return events.rows_after(conn, of, 0, limit=1000)


def _cursor_before(conn: Any, of: str, number: int) -> Cursor:
    return events.cursor_at(conn, of, number - 1)


def test_pages_of_messages_are_bounded_and_follow_each_other(hub: Desk) -> None:
    made = [hub.post("owner", LONG)["event"] for _ in range(20)]

    def page(**where: Any) -> Any:
        said = {"after": None, "before": None, **where}
        return hub.store.read_now(message_views.history, hub.workspace, hub.lab, limit=200, **said)

    forwards: list[int] = []
    while True:
        found = page(after=forwards[-1] if forwards else 0)
        assert sum(len(each["content"]) for each in found["messages"]) <= message_views.PAGE_BYTES
        forwards += [each["event"] for each in found["messages"]]
        if not found["more"]:
            break
    assert forwards == made
    backwards: list[int] = []
    while True:
        found = page(before=backwards[0] if backwards else None)
        backwards = [each["event"] for each in found["messages"]] + backwards
        if not found["more"]:
            break
    assert backwards == made
    assert len(hub.store.read_now(message_views.latest, hub.lab, 50)) == 8
    assert len(hub.store.read_now(message_views.latest, hub.lab, 50, most_bytes=1)) == 1
