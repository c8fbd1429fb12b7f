"""Where healing begins to read: from the watermark only where the hub's past is the one that the reader knows."""

import asyncio
from typing import Any

import pytest

from relay_receiver.client.healing import heal
from relay_receiver.client.stream import Batch

LATE = "2030-01-01T00:00:00.000Z"


class History:
    """A hub that has these messages, by event number."""

    def __init__(self, messages: dict[int, str]) -> None:
        self._messages = messages

    async def history(
        self, channel: str, *, after: int | None = None, before: int | None = None, limit: int = 50
    ) -> dict[str, Any]:
        found = sorted(each for each in self._messages if (after or 0) < each < (before or 10**9))
        page = found[:limit] if after is not None else found[-limit:]
        messages = [{"id": self._messages[each], "event": each, "createdAt": LATE} for each in page]
        return {"messages": messages, "cursor": f"c{page[-1] if page else after}", "more": len(page) < len(found)}


def healed(hub: dict[int, str], journal: dict[int, str], watermark: int) -> list[str]:
    """The ids that are read after a cursor has expired."""

    async def known(message: str, event: int) -> bool:
        return journal.get(event) == message

    async def read() -> list[str]:
        found: list[str] = []
        items = heal(
            History(hub),  # type: ignore[arg-type]  # all that healing asks of a hub
            channel="c",
            known=known,
            configured_at=0.0,
            watermark=watermark,
            expired=True,
        )
        async for item in items:
            assert isinstance(item, Batch)
            found += [each["data"]["message"]["id"] for each in item.events]
        return found

    return asyncio.run(read())


def test_after_an_expired_cursor_it_is_read_on_from_the_watermark() -> None:
    hub = {1: "a", 3: "b", 9: "c", 12: "d"}
    assert healed(hub, {3: "b", 9: "c"}, watermark=11) == ["d"]


@pytest.mark.parametrize("watermark", [6, 11])
def test_a_restored_hub_that_has_forgotten_the_cursor_hides_nothing_below_the_watermark(watermark: int) -> None:
    hub = {3: "b", 6: "new", 12: "d"}
    assert healed(hub, {3: "b", 6: "lost", 9: "lost too"}, watermark) == ["new", "d"]


def test_a_hub_that_has_nothing_up_to_the_watermark_is_read_from_there() -> None:
    assert healed({12: "d"}, {3: "b"}, watermark=11) == ["d"]
