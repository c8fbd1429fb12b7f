"""Rates: how much of what one token or address may do in a time."""

import ipaddress
import time
from collections.abc import Callable
from dataclasses import dataclass

from relay_receiver.hub.errors import Refusal
from relay_receiver.wire import limits

KEYS = 20_000
"""Callers remembered before those with nothing used up are forgotten."""


@dataclass(slots=True)
class _Level:
    left: float
    at: float


class Bucket:
    """So many calls at once, refilled evenly; one level for each caller.

    Args:
        what: what is limited, for the sentence.
        burst: calls at once.
        per_second: calls that come back each second.
        clock: monotonic seconds.
    """

    def __init__(
        self, what: str, *, burst: int, per_second: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._what, self._burst, self._per_second, self._clock = what, burst, per_second, clock
        self._levels: dict[object, _Level] = {}

    def take(self, caller: object) -> None:
        """Count one call.

        Raises:
            Refusal: 429 with the seconds until the next one.
        """
        level = self._level(caller)
        if level.left < 1:
            wait = (1 - level.left) / self._per_second
            raise Refusal(429, "rate_limited", f"There are too many {self._what}; wait a little.", retry_after=wait)
        level.left -= 1

    def give_back(self, caller: object) -> None:
        """Count one call less."""
        level = self._level(caller)
        level.left = min(self._burst, level.left + 1)

    def _level(self, caller: object) -> _Level:
        now = self._clock()
        level = self._levels.get(caller)
        if level is None:
            if len(self._levels) >= KEYS:
                self._forget(now)
            level = self._levels[caller] = _Level(self._burst, now)
            return level
        level.left = min(self._burst, level.left + (now - level.at) * self._per_second)
        level.at = now
        return level

    def _forget(self, now: float) -> None:
        """Forget who has a full level again; whoever is limited stays so."""
        self._levels = {
            caller: level
            for caller, level in self._levels.items()
            if level.left + (now - level.at) * self._per_second < self._burst
        }


class Rates:
    """The rates of PROTOCOL."""

    def __init__(self, factor: float = 1.0, clock: Callable[[], float] = time.monotonic) -> None:
        def bucket(what: str, burst: int, seconds: float) -> Bucket:
            return Bucket(what, burst=int(burst * factor), per_second=burst * factor / seconds, clock=clock)

        self.writes = bucket("writes", limits.WRITES_PER_MINUTE, 60)
        self.runs = bucket("calls", limits.RUN_CALLS_PER_SECOND, 1)
        self.enrolments = bucket("tries", limits.ENROLMENTS_PER_MINUTE, 60)
        self.sign_ins = bucket("tries", limits.SIGN_INS_PER_MINUTE, 60)


def address_of(host: str | None) -> str:
    """The address that counts as one caller: an IPv6 network of 64 bits is one."""
    try:
        address = ipaddress.ip_address(host or "")
    except ValueError:
        return host or ""
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)
