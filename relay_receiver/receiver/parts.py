"""What the tasks of one receiver process share."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from relay_receiver.adapters.base import Adapter
from relay_receiver.adapters.base import Binding as AdapterBinding
from relay_receiver.client.hub import Hub
from relay_receiver.client.profiles import Profile
from relay_receiver.jobs.job import Job
from relay_receiver.journal.binding import ASK, Binding
from relay_receiver.journal.journal import Connection, Journal, JournalUnavailable
from relay_receiver.processes import environment, files, paths
from relay_receiver.receiver.backoff import Ladder
from relay_receiver.receiver.situation import Situation
from relay_receiver.receiver.target import SPOOL
from relay_receiver.receiver.unseen import Unseen

P = ParamSpec("P")
T = TypeVar("T")

JOURNAL_RETRY_CEILING = 30.0
"""Seconds between tries of a write that the journal could not take (locked, full, read-only)."""


def adapter_binding(binding: Binding, folder: Path, in_flight: Job | None) -> AdapterBinding:
    """The binding as an adapter sees it; the values of the named variables are those of this process.

    Args:
        in_flight: the job that a process before this one left at the agent.
    """
    return AdapterBinding(
        settings={
            "argv": list(binding.argv),
            "network": binding.network,
            "tools": binding.tools,
            "ask": binding.approvals == ASK,
        },
        directory=Path(binding.directory),
        environment=environment.build(binding.env),
        spool=files.private_dir(folder / SPOOL),
        runtime=paths.runtime_dir(folder),
        evidence={"started": in_flight is not None and in_flight.started_at is not None},
    )


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
    folder: Path
    """Where the binding's state is."""
    now: Callable[[], float]
    boot: Callable[[], float]
    unseen: Unseen = field(default_factory=Unseen)
    lease_in_doubt: asyncio.Event = field(default_factory=asyncio.Event)
    """Set to have the lease looked at, and what the hub holds open reconciled, at once."""
    asking: asyncio.Event = field(default_factory=asyncio.Event)
    """Set to have what waits for people looked at."""
    noticed: Callable[[], None] = lambda: None
    """Called where something may have changed that people are shown at the hub."""

    @property
    def spool(self) -> Path:
        """Where keepers and job credentials have their files."""
        return self.folder / SPOOL

    def hub_now(self) -> float:
        """The hub's clock, which no step of this machine's moves; this machine's before the hub was heard of."""
        known = self.situation.hub_clock
        return self.now() if known is None else known + self.boot()

    def adapter_binding(self) -> AdapterBinding:
        """The binding as the adapter sees it, with the settings of now."""
        return adapter_binding(self.binding, self.folder, None)

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
