"""What the tasks of one receiver process share."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from relay_receiver.adapters.base import Adapter
from relay_receiver.client.hub import Hub
from relay_receiver.client.profiles import Profile
from relay_receiver.journal.binding import Binding
from relay_receiver.journal.journal import Connection, Journal, JournalUnavailable
from relay_receiver.receiver.backoff import Ladder
from relay_receiver.receiver.situation import Situation

P = ParamSpec("P")
T = TypeVar("T")

JOURNAL_RETRY_CEILING = 30.0
"""Seconds between tries of a write that the journal could not take (locked, full, read-only)."""


@dataclass(kw_only=True)
class Parts:
    """One binding at work. `now` is wall time and `boot` counts from boot, sleep included; both in seconds."""

    profile: Profile
    binding: Binding
    journal: Journal
    hub: Hub
    adapter: Adapter
    situation: Situation
    log: logging.Logger
    spool: Path
    now: Callable[[], float]
    boot: Callable[[], float]

    async def write(self, fn: Callable[Concatenate[Connection, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """A journal write that is repeated, as that same write, until the journal takes it."""
        ladder = Ladder(self.boot, ceiling=JOURNAL_RETRY_CEILING)
        while True:
            try:
                done = await self.journal.write(fn, *args, **kwargs)
            except JournalUnavailable as error:
                self.situation.last_error = error.sentence
                wait = ladder.failed()
                self.log.warning("journal unavailable", extra={"why": error.sentence, "retry_in": round(wait, 1)})
                await asyncio.sleep(wait)
            else:
                return done
