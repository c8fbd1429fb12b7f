"""Reading from the history what the stream cannot give any more (P9)."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from relay_receiver.client.errors import HubError
from relay_receiver.client.hub import Hub, Json
from relay_receiver.client.stream import Batch, Gap
from relay_receiver.wire.message import seconds

PAGE = 50
"""Messages a page: as much as is held in memory at a time."""

Known = Callable[[str, int], Awaitable[bool]]
"""Whether the reader has this message, under this id and this event number."""


async def heal(
    hub: Hub, *, channel: str, known: Known | None, configured_at: float, watermark: int, expired: bool = False
) -> AsyncIterator[Batch | Gap]:
    """Pages from the last message that reader and hub agree on, up to the head.

    The history is read from the head backwards to a message that the reader knows under the same id and number, else
    to the moment of configure, else to where the hub has no more; there a gap is told. Then it is read forwards.
    The cursor of the last page is where the stream goes on.

    Args:
        known: None for a reader that keeps nothing.
        configured_at: seconds since the epoch, by the hub's clock; what is as old or older is not this reader's (any
            more).
        watermark: the last event that the reader has seen.
        expired: the cursor was too old for the hub to tell whether it is of its past. Where that is so, it is read on
            from `watermark`.
    """
    if expired and watermark > 0 and await _same_past(hub, channel, known, watermark):
        # What the hub has told up to there needs no looking for, and no clock to tell it.
        after, pruned = watermark, None
    else:
        after, pruned = await _meeting_point(hub, channel, known, configured_at)
    if pruned is not None:
        if pruned > 0:
            yield Gap(first=min(watermark + 1, pruned), last=pruned)
        watermark = after
    meets: int | None = after
    while True:
        page = await hub.history(channel, after=after, limit=PAGE)
        messages = _messages(page)
        if pruned is None and (lost := int(page.get("prunedThrough") or 0)) > after:
            yield Gap(first=after + 1, last=lost)
        if not isinstance(page.get("cursor"), str):
            raise _strange()
        after = watermark = messages[-1]["event"] if messages else after
        events = [_event(each) for each in messages]
        yield Batch(events=events, cursor=page["cursor"], watermark=watermark, healed=True, meets=meets)
        meets = None
        if not messages or not page.get("more"):
            return


async def _same_past(hub: Hub, channel: str, known: Known | None, watermark: int) -> bool:
    """Whether the hub's newest message up to `watermark` is one that the reader has seen there.

    A hub that was restored, and has forgotten its older events since, calls a cursor of its other past too old.
    """
    messages = _messages(await hub.history(channel, before=watermark + 1, limit=1))
    return known is None or not messages or await known(messages[-1]["id"], messages[-1]["event"])


async def _meeting_point(hub: Hub, channel: str, known: Known | None, configured_at: float) -> tuple[int, int | None]:
    """The event number to read on from; and up to which the hub pruned, where that is why the way back ended."""
    before: int | None = None
    while True:
        page = await hub.history(channel, before=before, limit=PAGE)
        messages = _messages(page)
        for each in reversed(messages):
            if known is not None and await known(each["id"], each["event"]):
                return each["event"], None
            if _older(each, configured_at):
                return each["event"], None
        if not messages or not page.get("more"):
            pruned = int(page.get("prunedThrough") or 0)
            return pruned, pruned
        before = messages[0]["event"]


def _messages(page: Json) -> list[Any]:
    found = page.get("messages") or ()
    for each in found:
        if not (isinstance(each, dict) and isinstance(each.get("id"), str) and isinstance(each.get("event"), int)):
            raise _strange()
    return list(found)


def _older(message: Json, moment: float) -> bool:
    try:
        return seconds(message["createdAt"]) <= moment
    except (KeyError, TypeError, ValueError):
        return False


def _event(message: Json) -> Json:
    """A message of the history as the event that once told it."""
    return {
        "type": "message.created",
        "id": message["event"],
        "at": message.get("createdAt"),
        "data": {"message": message},
    }


def _strange() -> HubError:
    return HubError("The hub's history cannot be read.", status=200, code="not_a_hub")
