"""The feed: a channel's events in order, over whichever transport is live, each batch closed by a cursor."""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import Any

from relay_receiver.client import retry
from relay_receiver.client.clock import REAL, Clock
from relay_receiver.client.errors import Displaced, HubAway, HubError, Unauthorized
from relay_receiver.client.healing import Known, heal
from relay_receiver.client.hub import Hub
from relay_receiver.client.ladder import Ladder
from relay_receiver.client.longpoll import LongPoll
from relay_receiver.client.stream import EXPIRED, LONGPOLL, OFFLINE, WEBSOCKET, Batch, Cut, Gap, Reset, Transport
from relay_receiver.client.websocket import Socket
from relay_receiver.jobs import backoff

__all__ = ["Batch", "Displaced", "Feed", "Gap", "Transport", "Unauthorized"]

FIRST = 1.0
CEILING = 30.0
"""Seconds between tries while the hub is away."""

Item = Batch | Transport | Gap


class Feed:
    """Events from `cursor` on; the socket where it works, the long poll under it, never both at a time.

    Args:
        channel: whose events; None for all of this member's.
        types: which events.
        cursor: where to go on; None starts at now.
        holder: of the lease, with its `fence`: a newer connection of the same holder displaces this one.
        known: whether the reader has a message under this id and event number.
        configured_at: seconds since the epoch, by the hub's clock: what is as old or older is never healed. Asked for
            at each healing where it is a function; by default now.
        watermark: the number of the last event that the reader has seen.
    """

    def __init__(
        self,
        hub: Hub,
        *,
        channel: str,
        types: Sequence[str],
        cursor: str | None,
        holder: str | None = None,
        fence: Any = None,  # noqa: ANN401 - opaque
        known: Known | None = None,
        configured_at: float | Callable[[], float] | None = None,
        watermark: int = 0,
        clock: Clock = REAL,
    ) -> None:
        self._hub, self._channel, self._types = hub, channel, tuple(types)
        self._holder, self._fence = holder, fence
        self._known = known
        since = clock.wall() if configured_at is None else configured_at
        self._configured_at = since if callable(since) else lambda: since
        self._clock = clock
        self._ladder = Ladder(clock)
        self._poll = LongPoll(hub, channel=channel, types=self._types)
        self._socket: Socket | None = None
        self._failures = 0
        self._resets = 0
        self._why_no_socket = ""
        self._told: dict[str, str] = {}
        self.cursor = cursor
        """The position in hand: that of the last batch."""
        self.watermark = watermark
        self.transport = Transport(name=OFFLINE, why="not connected yet")

    async def items(self) -> AsyncIterator[Item]:
        """Batches, changes of the transport, and gaps, for ever.

        What goes wrong at the hub or on the way is waited out and shown as `Transport`.

        Raises:
            Unauthorized: the credential does not count (any more).
            Displaced: a newer connection of the same holder took over.
        """
        while True:
            source = self._by_socket() if self._ladder.left() <= 0 else self._by_poll()
            try:
                async with contextlib.aclosing(source):
                    async for item in source:
                        yield item
            except Reset as reset:
                async with contextlib.aclosing(self._heal(reset.reason)) as healing:
                    async for item in healing:
                        yield item

    async def acknowledge(self, subscription: str, cursor: str) -> None:
        """Tell the hub that all up to `cursor` is stored here: by a frame where a socket is up, else by a call."""
        socket = self._socket
        if socket is not None and await socket.acknowledge(subscription, cursor):
            self._told[subscription] = cursor
            return
        await self._hub.acknowledge(subscription, cursor)
        self._told.pop(subscription, None)

    async def close(self) -> None:
        """Close what is open."""
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()

    async def _by_socket(self) -> AsyncGenerator[Item]:
        try:
            socket = await Socket.open(
                self._hub.rest,
                cursor=self.cursor,
                channel=self._channel,
                types=self._types,
                holder=self._holder,
                fence=self._fence,
            )
        except Cut as cut:
            self._fell(cut)
            return
        self._socket = socket
        try:
            self._ladder.up()
            self._failures = 0
            for told in self._now(WEBSOCKET, ""):
                yield told
            if self.cursor is None:
                yield self._took(Batch(events=[], cursor=socket.cursor, watermark=self.watermark))
            await self._tell_again()
            async for batch in socket.batches(self.watermark):
                self._resets = 0
                if batch.events or batch.cursor != self.cursor:
                    yield self._took(batch)
        except Cut as cut:
            self._fell(cut)
        finally:
            self._socket = None
            await socket.close()

    async def _by_poll(self) -> AsyncGenerator[Item]:
        if not self._failures:
            for told in self._now(LONGPOLL, self._why_no_socket):
                yield told
        began = self._clock.monotonic()
        try:
            batch = await self._poll.once(
                self.cursor, self.watermark, most=1.0 if self._failures else self._ladder.left()
            )
        except Unauthorized:
            raise
        except (HubAway, HubError) as error:
            for told in self._away(error):
                yield told
            asked = getattr(error, "retry_after", None) is not None
            await self._clock.sleep(self._wait(error) if asked else min(self._wait(error), self._ladder.left()))
            return
        self._failures = self._resets = 0
        for told in self._now(LONGPOLL, self._why_no_socket):
            yield told
        await self._tell_again()
        if batch.events or batch.cursor != self.cursor:
            yield self._took(batch)
        elif self._clock.monotonic() - began < LongPoll.SOON:
            # Held for no time at all, and nothing in it: something on the way answers in the hub's place.
            await self._clock.sleep(FIRST)

    async def _heal(self, reason: str) -> AsyncGenerator[Item]:
        self._resets += 1
        if self._resets > 1:
            await self._clock.sleep(backoff.delay(self._resets - 1, jitter=self._clock.jitter()))
        while True:
            try:
                async for item in heal(
                    self._hub,
                    channel=self._channel,
                    known=self._known,
                    configured_at=self._configured_at(),
                    watermark=self.watermark,
                    expired=reason == EXPIRED,
                ):
                    yield self._took(item) if isinstance(item, Batch) else item
            except Unauthorized:
                raise
            except (HubAway, HubError) as error:
                for told in self._away(error, f", while healing ({reason})"):
                    yield told
                await self._clock.sleep(self._wait(error))
            else:
                self._failures = 0
                if self.cursor is not None:
                    # Told also where nothing follows: healing is over.
                    yield Batch(events=[], cursor=self.cursor, watermark=self.watermark)
                return

    def _away(self, error: HubAway | HubError, doing: str = "") -> list[Transport]:
        self._failures += 1
        return self._now(OFFLINE, error.sentence.rstrip(".") + doing)

    def _wait(self, error: HubAway | HubError) -> float:
        return retry.pause(error, self._failures, jitter=self._clock.jitter(), first=FIRST, ceiling=CEILING)

    def _took(self, batch: Batch) -> Batch:
        self.cursor, self.watermark = batch.cursor, batch.watermark
        return batch

    def _fell(self, cut: Cut) -> None:
        self._why_no_socket = cut.why
        self._ladder.down(retry_after=cut.retry_after, never=cut.never)

    def _now(self, name: str, why: str) -> list[Transport]:
        """The change of transport to tell, where it is one."""
        told, self.transport = self.transport, Transport(name=name, why=why)
        return [] if told == self.transport else [self.transport]

    async def _tell_again(self) -> None:
        """Acknowledgements that went into a socket which was cut: they may never have arrived."""
        for subscription, cursor in list(self._told.items()):
            try:
                await self.acknowledge(subscription, cursor)
            except (HubAway, HubError) as error:
                if not retry.retryable(error):
                    del self._told[subscription]
