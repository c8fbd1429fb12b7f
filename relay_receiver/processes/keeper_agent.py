"""The keeper of an agent on stdio: a spool of numbered lines, and one receiver at a time that reads on from a number.

Standard library only.
"""

import errno
import os
import selectors
import socket
import subprocess
import time

from relay_receiver.processes import keeper_files as files
from relay_receiver.processes.keeper import ROOM_SECONDS, Keeper
from relay_receiver.processes.keeper_connection import CHUNK, Connection, Json
from relay_receiver.processes.keeper_lines import Lines

ORPHAN_SECONDS = 24 * 3600.0
"""An agent to which no receiver was attached for this long is ended."""
ORPHAN_GRACE_SECONDS = 10.0


class AgentKeeper(Keeper):
    """Passes lines both ways, each in the spool before it counts."""

    def __init__(self, order: Json, born_with: socket.socket) -> None:
        super().__init__(order, born_with)
        self.lines: Lines
        self.partial = bytearray()
        self._sends: list[tuple[Connection, int, int, bytes]] = []
        """Lines to the agent that are not in the spool yet: from whom, their id there, their number."""
        self._outbox = bytearray()
        self._alone_since: float | None = None
        self._paused = False

    def begin(self) -> bool:
        """Start the agent with an empty spool; never beside one of the same name that still lives, nor for nobody."""
        if self.receivers.connections[0].take() is None:
            return False
        try:
            _see_nobody_at(self.order["socket"])
            files.remove(self.path("end"))
            self.record = files.create(self.path("keeper"), exclusive=False)
            files.write_all(self.record, self.family.identity())
            self.lines = Lines(self.path("lines"))
            self.receivers.listen()
            self.start()
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self.refuse(error)
            return False
        self._identity = self.started()
        self.receivers.connections[0].offset = 0
        return True

    # From the agent.

    def on_stdout(self) -> None:
        """Take lines of the agent."""
        if self.child is None or self.child.stdout is None:
            return
        data = self.take(self.child.stdout)
        if self.overflow:
            return
        self.partial += data
        if len(self.partial) > self.bound:
            self.partial.clear()
            self.overflowed()
            return
        if b"\n" in data:
            *whole, rest = bytes(self.partial).split(b"\n")
            self.partial = bytearray(rest)
            for line in whole:
                self._append("out", line)
            self._write()

    def _append(self, direction: str, line: bytes) -> int:
        if self.lines.size + len(line) > self.bound:
            self.overflowed()
            return self.lines.number
        return self.lines.append(direction, line)

    def _write(self) -> None:
        """Have on the file what waits; what follows from that. While the disk is full, the agent waits too."""
        full = not self.lines.write()
        stdout = self.child.stdout if self.child is not None else None
        if full and not self._paused and stdout is not None:
            self.pause(stdout)
        elif self._paused and not full and stdout is not None and not stdout.closed:
            self.hear(stdout, self.on_stdout)
        self._paused = full
        if full:
            return
        for connection, name, number, line in self._sends:
            connection.say({"t": "sent", "id": name, "n": number})
            self._outbox += line + b"\n"
        self._sends.clear()
        self._feed()

    # To the agent.

    def _feed(self) -> None:
        """Write to the agent what it takes."""
        stream = self.child.stdin if self.child is not None else None
        if stream is None or stream.closed:
            self._outbox.clear()
            return
        try:
            while self._outbox:
                done = os.write(stream.fileno(), self._outbox[:CHUNK])
                del self._outbox[:done]
        except BlockingIOError:
            if stream not in self.selector.get_map():
                self.selector.register(stream, selectors.EVENT_WRITE, self._feed)
            return
        except OSError:
            self._outbox.clear()
        self.pause(stream)

    def _say_eof(self) -> None:
        stream = self.child.stdin if self.child is not None else None
        if stream is not None and not stream.closed:
            self.forget(stream)

    # Receivers.

    def on_order(self, connection: Connection, order: Json) -> None:
        """Attach, send, cut, end."""
        match order["op"]:
            case "attach":
                self._attach(connection, int(order["after"]))
            case "send" if self.end is None:
                line = str(order["line"]).encode("utf-8", "surrogateescape")
                self._sends.append((connection, int(order["id"]), self._append("in", line), line))
                self._write()
            case "cut":
                self._cut(int(order["through"]))
            case "end":
                self._say_eof()
                self.stop_later(float(order["grace"]))
            case _:
                super().on_order(connection, order)

    def _attach(self, connection: Connection, after: int) -> None:
        """Let this receiver read on after a number; one that was attached before is told and dropped."""
        for other in list(self.receivers.connections):
            if other is not connection and other.offset is not None:
                other.say({"t": "displaced"})
                other.give()
                self.receivers.drop(other)
        connection.offset, connection.after = 0, after
        connection.say({"t": "attached", "identity": self._identity, "last": self.lines.number})

    def fill(self, connection: Connection) -> None:
        """Queue the next lines for an attached receiver; they are read from the file, never kept. The end is last."""
        if connection.offset is None:
            return
        records, connection.offset, connection.after = self.lines.read(connection.offset, connection.after)
        connection.outgoing += records
        if self.written and not records:
            connection.say({"t": "ended"})
            connection.offset = None

    def _cut(self, through: int) -> None:
        if self.lines.cut(through):
            for connection in self.receivers.connections:
                if connection.offset is not None:
                    connection.offset = 0
                    connection.after = max(connection.after, through)

    # Its life.

    def wait(self) -> float | None:
        """Seconds until there is something to do without an event; ends an agent that nobody wants any more."""
        if any(connection.offset is not None for connection in self.receivers.connections):
            self._alone_since = None
        else:
            self._alone_since = self._alone_since or time.monotonic()
            if time.monotonic() > self._alone_since + ORPHAN_SECONDS:
                self._alone_since = None
                self._say_eof()
                self.stop_later(ORPHAN_GRACE_SECONDS)
        if self._paused:
            self._write()
        least = super().wait()
        latest = ROOM_SECONDS if self._paused else ORPHAN_SECONDS
        return latest if least is None else min(least, latest)

    def finish(self) -> list[bytes | bytearray]:
        """Take the last lines; one without its newline is one too."""
        if self.child is not None:
            self.drain(self.child.stdout, self.on_stdout)
            self.drain(self.child.stderr, self.on_stderr)
        if self.partial:
            self._append("out", bytes(self.partial))
            self.partial.clear()
        return self.ending(last=self.lines.number)

    def before_end(self) -> None:
        """The last lines come first.

        Raises:
            OSError: there is no room for them now.
        """
        if not self.lines.write():
            raise OSError(errno.ENOSPC, "there is no room for the last lines")

    def ended(self) -> None:
        """Attached receivers are told behind the last line."""


def _see_nobody_at(path: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        if probe.connect_ex(path) == 0:
            raise OSError(errno.EBUSY, "an agent of before still lives")
