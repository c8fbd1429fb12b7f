"""What a feed yields, and how a transport under it ends."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

WEBSOCKET = "websocket"
LONGPOLL = "longpoll"
OFFLINE = "offline"

EXPIRED = "cursor_expired"
DIVERGED = "diverged"
RESETS = frozenset({EXPIRED, DIVERGED})


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """Events up to `cursor`, in order; none where only the position moved on."""

    events: list[dict[str, Any]]
    cursor: str
    watermark: int
    """The number of the last event seen."""
    healed: bool = False
    """Read from the history after a reset: some of it may be known already, by message id."""
    meets: int | None = None
    """In the first such batch: the last event that hub and reader agree on. What the reader had past it may be lost."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Transport:
    """What is live from now on (`websocket`, `longpoll` or `offline`), and why not the better one."""

    name: str
    why: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gap:
    """Events `first` to `last`, both included, that the hub has no more and this reader may have missed."""

    first: int
    last: int


class Cut(Exception):  # noqa: N818 - it is how a connection ends, foreseen
    """The socket is not there (any more). What was not closed by a cursor is dropped.

    Attributes:
        why: one clause for a person.
        never: sockets are not served here at all.
        retry_after: seconds, where the hub said when to come back.
    """

    def __init__(self, why: str, *, never: bool = False, retry_after: float | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.never = never
        self.retry_after = retry_after


class Reset(Exception):  # noqa: N818 - it is an answer of the hub, foreseen
    """The resume point does not count any more: heal first. `reason` is one of `RESETS`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def last_event(events: list[dict[str, Any]], before: int) -> int:
    """The number of the last event, or `before` where there is none."""
    numbers = [number for each in events if isinstance(number := each.get("id"), int)]
    return numbers[-1] if numbers else before


def is_event(value: object) -> bool:
    """Whether a frame or an answer holds an event that can be read at all."""
    return isinstance(value, Mapping) and isinstance(value.get("type"), str)
