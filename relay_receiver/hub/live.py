"""What only counts for a time, and lives in memory by monotonic time: renewing it writes nothing."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from relay_receiver.wire.limits import DECLARATION_SECONDS, LEASE_SECONDS, SILENT_SECONDS, STANDBY_SECONDS

Key = tuple[str, str]
"""Member and scope, or member and channel."""

REPORT_SECONDS = 1.0
"""A receiver's report is stored and told at most once in this time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Lease:
    """A lease as its holder last told of itself; `until` and `kept_at` are monotonic."""

    holder: str
    fence: str
    subscription: str | None
    session: str | None
    runtime: str
    state: str
    detail: str | None
    until: float
    report: dict[str, Any] | None = None
    matter: str = ""
    """What of the report is worth a write."""
    kept: str = ""
    """The matter that was stored and told last."""
    kept_at: float = float("-inf")


@dataclass(kw_only=True, slots=True)
class Live:
    """Leases and declarations that still count. After a start of the hub what is stored gets its whole time again."""

    clock: Callable[[], float] = time.monotonic
    leases: dict[Key, Lease] = field(default_factory=dict)
    declared: dict[Key, float] = field(default_factory=dict)
    """Until when each renewed declaration counts."""
    standbys: dict[Key, float] = field(default_factory=dict)
    """When another holder last asked for a lease that is held."""
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.clock()

    def lease(self, key: Key) -> Lease | None:
        """The lease that counts now."""
        found = self.leases.get(key)
        return found if found is not None and found.until > self.clock() else None

    def stand_by(self, key: Key) -> None:
        """Another holder asks for a lease that is held."""
        self.standbys[key] = self.clock()

    def stood_by(self, key: Key) -> bool:
        """Whether the holder of a lease is silent while another stands by."""
        asked, now = self.standbys.get(key), self.clock()
        silent = self.lease_left(key) < LEASE_SECONDS - SILENT_SECONDS
        return asked is not None and now - asked < STANDBY_SECONDS and silent

    def lease_left(self, key: Key) -> float:
        """Seconds that a stored lease still counts, below zero once it is over."""
        found = self.leases.get(key)
        return (found.until if found is not None else self.started + LEASE_SECONDS) - self.clock()

    def report_due(self, key: Key) -> bool:
        """Whether the report of a lease has something to store, and the last one was stored long enough ago."""
        found = self.leases.get(key)
        return found is not None and found.matter != found.kept and self.clock() >= found.kept_at + REPORT_SECONDS

    def declaration_left(self, key: Key) -> float:
        """Seconds that a stored declaration still counts."""
        return self.declared.get(key, self.started + DECLARATION_SECONDS) - self.clock()

    def renew_declaration(self, key: Key) -> float:
        """Let a declaration count for its whole time from now; returns that time."""
        self.declared[key] = self.clock() + DECLARATION_SECONDS
        return float(DECLARATION_SECONDS)

    def lapsed(self) -> list[Key]:
        """Leases that are over and not told yet."""
        now = self.clock()
        return [key for key, lease in self.leases.items() if lease.until <= now and lease.state != OFFLINE]


OFFLINE = "offline"
"""The state of a receiver whose lease is over."""
