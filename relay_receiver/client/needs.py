"""Looking at a hub for what needs a person, once or on and on."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from relay_receiver.client import retry
from relay_receiver.client.errors import HubAway, HubError, Unauthorized
from relay_receiver.client.hub import Hub
from relay_receiver.wire.need import Need, of_receiver, of_requests

MOST = 200
"""Requests that one look shows, the newest."""
POLL_SECONDS = 25
LOOK_SECONDS = 60.0
"""A look is made this often also where no event asks for one."""
SPACING_SECONDS = 1.0
"""Between two looks at the least: a busy channel costs no more."""
RETRY_SECONDS = 60.0
"""Between two tries at a hub that is away, at the most."""
TYPES = ("request.created", "request.updated", "receiver.updated", "member.updated")
RESETS = frozenset({"cursor_expired", "diverged"})


async def look(hub: Hub, me: str) -> list[Need]:
    """All that needs this person now: what expires first, then what stands still.

    Raises:
        HubAway: the hub gave no answer.
        HubError: it refuses.
    """
    channels = await hub.channels()
    asked, *members = await asyncio.gather(
        hub.requests(state="open", limit=MOST), *(hub.members(str(each["id"])) for each in channels)
    )
    names = {str(each["id"]): each for each in channels}
    found = of_requests(asked, me, names)
    for channel, those in zip(channels, members, strict=True):
        for member in those:
            found += of_receiver(member, channel)
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What a look saw; `needs` is None while the hub is away, and `away` then says why."""

    needs: list[Need] | None = None
    away: str | None = None


async def follow(
    hub: Hub,
    me: str,
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[Seen]:
    """Look now, and again after each event that may have changed something; for ever, also over a hub that goes away.

    Raises:
        Unauthorized: the credential does not count any more.
        HubError: the hub refuses for good.
    """
    cursor: str | None = None
    failures = 0
    while True:
        try:
            if cursor is None:
                yield Seen(needs=await look(hub, me))
                # Taken before the next look: what happens after that is among the events.
                cursor = str((await hub.updates(cursor=None, types=TYPES, wait=1))["cursor"])
            needs = await look(hub, me)
            failures = 0
            yield Seen(needs=needs)
            due = clock() + LOOK_SECONDS
            await sleep(SPACING_SECONDS)
            while clock() < due:
                answer = await hub.updates(cursor=cursor, types=TYPES, wait=POLL_SECONDS)
                cursor = str(answer["cursor"])
                if answer.get("events"):
                    break
        except Unauthorized:
            raise
        except (HubAway, HubError) as error:
            if getattr(error, "code", "") in RESETS:
                cursor = None
                continue
            if not retry.retryable(error):
                raise
            failures += 1
            yield Seen(away=error.sentence)
            await sleep(
                retry.pause(error, failures, jitter=random.random(), first=0.5, ceiling=RETRY_SECONDS)  # noqa: S311 - spreads load
            )
