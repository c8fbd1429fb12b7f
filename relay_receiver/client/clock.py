"""Time and chance as parameters, so that a test or a simulation brings its own."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Clock:
    """The real ones by default."""

    wall: Callable[[], float] = time.time
    """Seconds since the epoch."""
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.random
    """Uniform in [0, 1)."""


REAL = Clock()
