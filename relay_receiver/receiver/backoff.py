"""One ladder of tries: how often something failed in a row, and when it is due again."""

import random
from collections.abc import Callable

from relay_receiver.jobs import backoff


class Ladder:
    """Failures in a row of one kind of call, by a clock in seconds."""

    def __init__(self, clock: Callable[[], float], *, ceiling: float = backoff.CEILING) -> None:
        self._clock = clock
        self._ceiling = ceiling
        self._failures = 0
        self._due = 0.0

    def failed(self, *, after: float | None = None) -> float:
        """Note a failure and return the seconds until the next try; `after` is the other side's own wish."""
        self._failures += 1
        own = backoff.delay(self._failures, jitter=random.random(), ceiling=self._ceiling)  # noqa: S311 - spreads load
        wait = max(own, after or 0.0)
        self._due = self._clock() + wait
        return wait

    def succeeded(self) -> None:
        """Start anew."""
        self._failures = 0
        self._due = 0.0

    def remaining(self) -> float:
        """Seconds until the next try, 0 when it is due."""
        return max(0.0, self._due - self._clock())
