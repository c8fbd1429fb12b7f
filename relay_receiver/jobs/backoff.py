"""How long to wait before the next try. Pure: the caller brings the randomness."""

FIRST = 1.0
"""Seconds before the second try."""
CEILING = 300.0
"""Seconds between tries at the most."""


def delay(failures: int, *, jitter: float = 0.5, first: float = FIRST, ceiling: float = CEILING) -> float:
    """Seconds to wait after `failures` failures in a row (at least 1).

    Args:
        jitter: a uniform random number in [0, 1); spreads the delay over its upper half.
        first: seconds before the second try.
        ceiling: seconds at the most.
    """
    base = min(ceiling, first * 2.0 ** min(max(failures, 1) - 1, 16))
    return base * (0.5 + jitter / 2)
