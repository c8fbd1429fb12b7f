"""Which calls are made again, and when."""

import email.utils
from collections.abc import Callable

from relay_receiver.client.errors import HubAway, HubError
from relay_receiver.jobs import backoff

TRIES = 4
"""Of one call, where it may be repeated at all; the callers' own ladders come after that."""
FIRST = 0.2
CEILING = 2.0
PATIENCE = 5.0
"""Seconds: a hub that asks for more is told to the caller instead of being waited for."""

_LATER = frozenset({408, 425, 429, 500, 502, 503, 504})
_NOT_DONE = frozenset({425, 429})


def retryable(error: BaseException) -> bool:
    """Whether the same call may succeed later: the hub is away, busy or broken, not unwilling."""
    if isinstance(error, HubError):
        return error.status in _LATER
    return isinstance(error, HubAway)


def repeatable(error: BaseException, *, idempotent: bool) -> bool:
    """Whether this call may be sent again: it is idempotent, or certainly was not done."""
    if not retryable(error):
        return False
    not_done = not error.sent if isinstance(error, HubAway) else getattr(error, "status", 0) in _NOT_DONE
    return idempotent or not_done


def pause(
    error: BaseException, failures: int, *, jitter: float, first: float = FIRST, ceiling: float = CEILING
) -> float:
    """Seconds to wait after `failures` failures in a row, never less than the hub asked for."""
    own = backoff.delay(failures, jitter=jitter, first=first, ceiling=ceiling)
    return max(own, getattr(error, "retry_after", None) or 0.0)


def retry_after(value: str | None, now: Callable[[], float]) -> float | None:
    """The seconds that a `Retry-After` header asks for: a number, or a date; None where it says nothing usable."""
    if not value:
        return None
    try:
        return max(0.0, float(int(value)))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - now())
    except (ValueError, OverflowError):
        return None
