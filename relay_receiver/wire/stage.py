"""What a requester is shown of a request, and in which order."""

from enum import StrEnum


class Stage(StrEnum):
    """The stages of a request. Each is shown only once it is proven."""

    STORED = "stored"
    RECEIVED = "received"
    STARTING = "starting"
    RUNNING = "running"
    WAITING = "waiting"
    UNKNOWN = "unknown"
    ANSWERED = "answered"
    QUIET = "quiet"
    FAILED = "failed"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    CANCELLED = "cancelled"


ENDS = frozenset(
    {Stage.ANSWERED, Stage.QUIET, Stage.FAILED, Stage.EXPIRED, Stage.WITHDRAWN, Stage.CANCELLED},
)
"""The first of these stands. `unknown` ends a wait too, but may still become any other."""

GOOD_ENDS = frozenset({Stage.ANSWERED, Stage.QUIET})


def stage_of_result(outcome: str | None) -> Stage:
    """The stage that a result message sets on the request that it replies to."""
    return {
        "failed": Stage.FAILED,
        "quiet": Stage.QUIET,
        "cancelled": Stage.CANCELLED,
    }.get(outcome or "", Stage.ANSWERED)


def may_follow(current: Stage, new: Stage) -> bool:
    """Whether `new` may be shown after `current`: the first end stands, `unknown` may become any other."""
    return current not in ENDS and current is not new
