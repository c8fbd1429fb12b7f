"""One reader of the feed: what it may see, and what waits for it."""

import asyncio
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

QUEUE_BYTES = 1024 * 1024
"""Memory of the events that may wait for one reader."""


class Published:
    """An event as it goes out; its JSON is made once for all readers."""

    def __init__(self, *, number: int, cursor: str, type: str, channel: str | None, text: str) -> None:  # noqa: A002 - as on the wire
        self.number = number
        self.cursor = cursor
        """That of a reader who has this event and all before it."""
        self.type = type
        self.channel = channel
        self.text = text
        """The event as JSON."""
        self.size = sys.getsizeof(text)
        """What it takes in memory."""

    @cached_property
    def frame(self) -> str:
        """The frame that carries it on a socket."""
        return f'{{"t":"event","event":{self.text}}}'


@dataclass(frozen=True, kw_only=True, slots=True)
class Filter:
    """Which events of its workspace a reader gets; those of no channel concern everybody."""

    channels: frozenset[str]
    types: frozenset[str] | None
    """None for all."""

    def takes(self, event: Published) -> bool:
        """Whether the reader gets this event."""
        if event.channel is not None and event.channel not in self.channels:
            return False
        return self.types is None or event.type in self.types


class Reader:
    """Events that wait for one reader, at most `bound` of them, in at most `QUEUE_BYTES`; one is always taken.

    Args:
        on_end: called once when the feed gives this reader up, with a close code and a reason.
    """

    __slots__ = ("_bound", "_bytes", "_on_end", "ended", "filter", "pending", "ready", "workspace")

    def __init__(
        self,
        workspace: str,
        wanted: Filter,
        *,
        bound: int,
        on_end: Callable[[int, str], None] | None = None,
    ) -> None:
        self.workspace = workspace
        self.filter = wanted
        self.pending: deque[Published] = deque()
        self.ready = asyncio.Event()
        self.ended = False
        self._bound, self._bytes = bound, 0
        self._on_end = on_end

    def push(self, event: Published) -> None:
        """Add an event if this reader gets it; a reader that is too slow is given up."""
        if self.ended or not self.filter.takes(event):
            return
        if len(self.pending) >= self._bound or (self.pending and self._bytes + event.size > QUEUE_BYTES):
            self.end(TOO_SLOW, "too slow a reader; come back with the last cursor")
            return
        self.pending.append(event)
        self._bytes += event.size
        self.ready.set()

    def take(self) -> list[Published]:
        """What waits, in order; afterwards nothing does."""
        events = list(self.pending)
        self.pending.clear()
        self._bytes = 0
        if not self.ended:
            self.ready.clear()
        return events

    def end(self, code: int, reason: str) -> None:
        """Give this reader up. Nothing is added any more; what waits for it is dropped."""
        if self.ended:
            return
        self.ended = True
        self.pending.clear()
        self.ready.set()
        if self._on_end is not None:
            self._on_end(code, reason)


DISPLACED = 4000
CREDENTIAL_ENDED = 4001
BROKEN_FRAMING = 4002
GOING_AWAY = 4003
TOO_SLOW = 4004
