"""A clock that a test moves."""

import asyncio

from relay_receiver.client.clock import Clock


class FakeClock:
    """Stands still until told; a sleep moves it on and takes no time."""

    def __init__(self, *, wall: float = 1_800_000_000.0) -> None:
        self.wall = wall
        self.monotonic = 1000.0
        self.slept: list[float] = []
        """Every sleep that was asked for, in order."""

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.wall += seconds
        self.monotonic += seconds

    async def sleep(self, seconds: float) -> None:
        """Pass this time at once; others get their turn."""
        self.slept.append(seconds)
        self.advance(seconds)
        await asyncio.sleep(0)

    def clock(self, *, jitter: float = 0.5) -> Clock:
        """It, as the feed takes it."""
        return Clock(wall=lambda: self.wall, monotonic=lambda: self.monotonic, sleep=self.sleep, jitter=lambda: jitter)
