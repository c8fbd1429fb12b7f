"""What happens in the demo's channel, as it happens: the person's own feed."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from relay_receiver.client.feed import Batch, Feed, Transport
from relay_receiver.client.hub import Hub
from relay_receiver.client.profiles import Profile
from relay_receiver.client.rest import Rest
from relay_receiver.wire.errors import RelayError

T = TypeVar("T")
Event = dict[str, Any]


class Channel:
    """The messages and stages of one channel since it was followed, oldest first."""

    def __init__(self, tell: Callable[[Event], None]) -> None:
        self.events: list[Event] = []
        self._tell = tell
        self._changed = asyncio.Condition()
        self._live = asyncio.Event()

    async def follow(self, person: Profile, channel: str) -> None:
        """Follow until cancelled."""
        async with Rest(person.url, person.token()) as rest:
            feed = Feed(Hub(rest), channel=channel, types=("message.created", "message.stage"), cursor=None)
            try:
                async for item in feed.items():
                    if isinstance(item, Transport):
                        self._live.set()
                    elif isinstance(item, Batch):
                        await self._take(item.events)
            finally:
                await feed.close()

    async def live(self) -> None:
        """Wait until it is connected."""
        await self._live.wait()

    async def until(self, find: Callable[[Sequence[Event]], T | None], *, what: str, seconds: float) -> T:
        """Wait until `find` finds something among the events.

        Raises:
            RelayError: it did not come about in time.
        """
        found: list[T] = []

        def look() -> bool:
            seen = find(self.events)
            if seen is not None:
                found.append(seen)
            return seen is not None

        try:
            async with asyncio.timeout(seconds), self._changed:
                await self._changed.wait_for(look)
        except TimeoutError:
            raise RelayError(f"{what} did not come about within {seconds:g} s.", code="timed_out") from None
        return found[-1]

    async def _take(self, events: Sequence[Event]) -> None:
        async with self._changed:
            for event in events:
                self.events.append(event)
                self._tell(event)
            self._changed.notify_all()


def messages(events: Sequence[Event]) -> list[dict[str, Any]]:
    """The messages among events."""
    return [event["data"]["message"] for event in events if event["type"] == "message.created"]


def results(events: Sequence[Event], asked: str) -> list[dict[str, Any]]:
    """The results of a message."""
    return [said for said in messages(events) if said["kind"] == "result" and said["replyTo"] == asked]


def stages(events: Sequence[Event], asked: str) -> list[dict[str, Any]]:
    """The stages of a request, in order."""
    return [event["data"] for event in events if event["type"] == "message.stage" and event["data"]["message"] == asked]
