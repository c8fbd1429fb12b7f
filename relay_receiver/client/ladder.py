"""When the socket is tried again."""

import math

from relay_receiver.client.clock import Clock

STEPS = (3.0, 15.0, 60.0, 300.0, 600.0)
HEALTHY_SECONDS = 60.0
"""A connection that lived this long starts the ladder anew."""
_SPREAD = 0.2


class Ladder:
    """Counts failures of the socket; the first try is at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._step = 0
        self._due = -math.inf
        self._up_since: float | None = None

    def up(self) -> None:
        """The socket is connected."""
        self._up_since = self._clock.monotonic()

    def down(self, *, retry_after: float | None = None, never: bool = False) -> None:
        """It did not connect, or dropped."""
        now = self._clock.monotonic()
        if self._up_since is not None and now - self._up_since >= HEALTHY_SECONDS:
            self._step = 0
        self._up_since = None
        wait = STEPS[self._step] * (1 - _SPREAD + 2 * _SPREAD * self._clock.jitter())
        self._due = math.inf if never else now + max(wait, retry_after or 0.0)
        self._step = min(self._step + 1, len(STEPS) - 1)

    def left(self) -> float:
        """Seconds until the next try; 0 where it is due."""
        return max(0.0, self._due - self._clock.monotonic())
