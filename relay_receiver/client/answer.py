"""Waiting for people to answer a request: held calls, one after the other, until it is no longer open."""

import asyncio
import math
import random
from collections.abc import Awaitable, Callable

from relay_receiver.client import retry
from relay_receiver.client.errors import HubAway, HubError, Unauthorized
from relay_receiver.client.hub import Hub, Json

HELD_SECONDS = 25
"""One call is held so long, within what a hub allows."""
FIRST_LOOK_SECONDS = 10.0
"""How long the first answer of the hub may take where less than that was to be waited."""
_RETRY_CEILING = 15.0


async def answered(
    hub: Hub,
    request: str,
    timeout: float,  # noqa: ASYNC109 - it ends with an answer of its own, not with an exception
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Json:
    """Wait until a request is no longer open, at most `timeout` seconds; returns it, whatever its state is by then.

    Raises:
        HubAway: the hub was never reached.
        HubError: the hub refuses to tell; `Unauthorized` once the job that asks has ended.
    """
    waiting = _Waiting(hub, request, sleep)
    try:
        async with asyncio.timeout(max(timeout, FIRST_LOOK_SECONDS)):
            await waiting.run(timeout)
    except TimeoutError:
        if waiting.found is None:
            raise waiting.trouble or HubAway("The hub did not answer in time.", sent=True) from None
    if waiting.found is None:
        raise waiting.trouble or HubAway("The hub did not answer in time.", sent=True)
    return waiting.found


class _Waiting:
    def __init__(self, hub: Hub, request: str, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._hub, self._request, self._sleep = hub, request, sleep
        self.found: Json | None = None
        self.trouble: HubAway | HubError | None = None

    async def run(self, seconds: float) -> None:
        """Ask until it is no longer open or the time is up; the hub is asked once at least."""
        loop = asyncio.get_running_loop()
        until, failures = loop.time() + seconds, 0
        while True:
            left = until - loop.time()
            try:
                self.found = await self._hub.request(self._request, wait=max(0, min(HELD_SECONDS, math.floor(left))))
            except Unauthorized:
                raise
            except (HubAway, HubError) as error:
                if not retry.retryable(error):
                    raise
                self.trouble = error
                failures += 1
                await self._sleep(
                    retry.pause(error, failures, jitter=random.random(), first=0.5, ceiling=_RETRY_CEILING)  # noqa: S311 - spreads load
                )
                if loop.time() >= until:
                    return
                continue
            failures = 0
            if self.found["state"] != "open":
                return
            left = until - loop.time()
            if left <= 0:
                return
            if left < 1:
                # Less than a call can be held: one last look at the end.
                await self._sleep(left)
