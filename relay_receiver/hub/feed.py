"""The feed: what was committed goes, in that order, to everybody who reads and may see it."""

from collections import deque
from collections.abc import Iterable

from relay_receiver.hub.events import EventRow
from relay_receiver.hub.reader import GOING_AWAY, Filter, Published, Reader
from relay_receiver.wire.cursor import Cursor

RING_BYTES = 8 * 1024 * 1024
"""Memory of a workspace's latest events that are kept there, beside their number."""


class Stream:
    """One workspace: its latest events, and who reads them now."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._bytes = 0
        self._latest: deque[Published] = deque()
        self._readers: dict[str, set[Reader]] = {}
        self.all: set[Reader] = set()

    @property
    def head(self) -> Published | None:
        """The last event published here, if any was since the hub started."""
        return self._latest[-1] if self._latest else None

    def publish(self, event: Published) -> None:
        """Keep an event and hand it out."""
        self._latest.append(event)
        self._bytes += event.size
        while len(self._latest) > self._most or (self._bytes > RING_BYTES and len(self._latest) > 1):
            self._bytes -= self._latest.popleft().size
        readers = self.all if event.channel is None else self._readers.get(event.channel, ())
        for reader in tuple(readers):
            reader.push(event)

    def after(self, cursor: Cursor) -> list[Published] | None:
        """All events after a position that is in memory; None where it is not, or is not known to be this one."""
        if not self._latest or cursor.number < self._latest[0].number or cursor.tag is None:
            return None
        back = self._latest[-1].number - cursor.number
        if back < 0 or self._latest[-1 - back].cursor != str(cursor):
            return None
        return [self._latest[index] for index in range(len(self._latest) - back, len(self._latest))]

    def add(self, reader: Reader) -> None:
        """From now on hand events to this reader."""
        self.all.add(reader)
        for channel in reader.filter.channels:
            self._readers.setdefault(channel, set()).add(reader)

    def remove(self, reader: Reader) -> None:
        """Hand it nothing more."""
        self.all.discard(reader)
        for channel in reader.filter.channels:
            if readers := self._readers.get(channel):
                readers.discard(reader)
                if not readers:
                    del self._readers[channel]


class Feed:
    """All workspaces of this hub process. Lives on the event loop."""

    def __init__(self, *, ring_events: int, queue_events: int) -> None:
        self._ring_events = ring_events
        self._queue_events = queue_events
        self._streams: dict[str, Stream] = {}

    def publish(self, rows: Iterable[EventRow]) -> None:
        """Hand out what was just committed; called after each commit, in commit order."""
        for row in rows:
            self.stream(row.workspace).publish(published(row))

    def stream(self, workspace: str) -> Stream:
        """That of one workspace."""
        found = self._streams.get(workspace)
        if found is None:
            found = self._streams[workspace] = Stream(most=self._ring_events)
        return found

    def open(self, reader: Reader) -> None:
        """From now on hand events to this reader, until `close`."""
        self.stream(reader.workspace).add(reader)

    def close(self, reader: Reader) -> None:
        """Hand it nothing more; twice is fine."""
        self.stream(reader.workspace).remove(reader)

    def narrow(self, reader: Reader, wanted: Filter) -> None:
        """Change what a reader gets."""
        stream = self.stream(reader.workspace)
        stream.remove(reader)
        reader.filter = wanted
        stream.add(reader)

    def end_all(self) -> None:
        """Tell every reader that the hub goes away."""
        for stream in self._streams.values():
            for reader in tuple(stream.all):
                reader.end(GOING_AWAY, "the hub is going away")

    @property
    def queue_events(self) -> int:
        """How many events may wait for one reader."""
        return self._queue_events


def published(row: EventRow) -> Published:
    """A stored event as it goes out."""
    return Published(number=row.number, cursor=str(row.cursor), type=row.type, channel=row.channel, text=row.to_json())
