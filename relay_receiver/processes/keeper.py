"""The keeper: holds one child and its process group, and outlives the receiver that asked for it.

Forked by the launcher into a session of its own. It talks lines with its receiver: over the connection it was born
with, and over a unix socket on which a later receiver attaches. What differs between the two kinds of child is in
`keeper_command` and `keeper_agent`. Standard library only.
"""

import contextlib
import errno
import fcntl
import json
import os
import selectors
import signal
import socket
import struct
import termios
import time
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

from relay_receiver.processes import keeper_faults as faults
from relay_receiver.processes import keeper_files as files
from relay_receiver.processes.keeper_connection import CHUNK, Connection, Json
from relay_receiver.processes.keeper_family import Family
from relay_receiver.processes.keeper_receivers import Receivers

if TYPE_CHECKING:
    import subprocess

STDERR_BYTES = 64 * 1024
"""The last of stderr that is kept."""
LAST_WORDS_SECONDS = 5.0
"""How long a keeper whose child has ended goes on to tell a receiver of it."""
LEFTOVER_SECONDS = 2.0
"""Grace of what a finished child left running, between TERM and KILL."""
GIVE_UP_SECONDS = 10.0
"""After so long a process that KILL does not end is left behind."""
ROOM_SECONDS = 0.5
"""Between tries to write to a disk that is full."""
LOOK_SECONDS = 0.02
"""Between looks at what is being ended."""

Pipe = IO[bytes]


class Keeper:
    """What both kinds of child have in common: the processes, the end, and whoever is connected."""

    def __init__(self, order: Json, born_with: socket.socket) -> None:
        self.order = order
        self.key: str = order["key"]
        self.spool: str = order["spool"]
        self.bound = int(order["output"])
        self.family = Family(order["nonce"], order["boot"])
        self.child: subprocess.Popen[bytes] | None = None
        self.stderr = bytearray()
        self.overflow = False
        self.selector = selectors.DefaultSelector()
        self.receivers = Receivers(self.selector, order["socket"], on_order=self.on_order, fill=self.fill)
        self.receivers.add(born_with)
        self.record = -1
        """The file that says who keeper and child are."""
        self._signals: list[tuple[float, int]] = []
        """What is to be sent to the child's processes, and when."""
        self._stopping = False
        self._killed_at: float | None = None
        self.end: list[bytes | bytearray] | None = None
        """The end of the child as it is to be written, from when it is known on."""
        self.written = False
        """Its end is on the disk."""
        self._write_at = 0.0

    def path(self, what: str) -> str:
        """A file of this child in the spool."""
        return f"{self.spool}/{self.key}.{what}"

    # The child.

    def start(self) -> None:
        """Start the child.

        Raises:
            OSError, ValueError, subprocess.SubprocessError: it certainly did not start.
        """
        order = self.order
        faults.hit("keeper.spawn.before")
        self.child = self.family.start(order["argv"], environment=order["environment"], directory=order["directory"])

    def started(self) -> str:
        """The child has started: hear its pipes, and tell who it is. What fails from here on refuses nothing."""
        faults.hit("keeper.spawn.after")
        if self.child is not None:
            for stream, take in ((self.child.stdout, self.on_stdout), (self.child.stderr, self.on_stderr)):
                if stream is not None:
                    os.set_blocking(stream.fileno(), False)
                    self.hear(stream, take)
            if self.child.stdin is not None:
                os.set_blocking(self.child.stdin.fileno(), False)
        identity = self.family.identity()
        with contextlib.suppress(OSError):  # it is found by the nonce in the first line
            files.write_all(self.record, identity)
        faults.hit("keeper.started.before")
        told = identity.decode().strip()
        self.receivers.tell({"t": "started", "identity": told})
        return told

    def hear(self, stream: Pipe, take: Callable[[], None]) -> None:
        """Have `take` called when the pipe has something."""
        self.selector.register(stream, selectors.EVENT_READ, take)

    def forget(self, stream: Pipe) -> None:
        """Stop looking at a pipe, and close it."""
        self.pause(stream)
        stream.close()

    def pause(self, stream: Pipe) -> None:
        """Stop looking at a pipe for now."""
        with contextlib.suppress(KeyError, ValueError):
            self.selector.unregister(stream)

    def on_stdout(self) -> None:
        """Take what the child says."""
        raise NotImplementedError

    def on_stderr(self) -> None:
        """Keep the last of what the child logs."""
        if self.child is not None and self.child.stderr is not None:
            self.stderr += self.take(self.child.stderr)
            del self.stderr[:-STDERR_BYTES]

    def take(self, stream: Pipe) -> bytes:
        """What a pipe of the child has; it is closed at its end."""
        data = files.read_some(stream.fileno(), CHUNK)
        if data == b"":
            self.forget(stream)
        return data or b""

    def drain(self, stream: Pipe | None, take: Callable[[], None]) -> None:
        """Take what an ended child left in a pipe; what a grandchild goes on to write is not waited for."""
        left = _waiting(stream)
        while stream is not None and left > 0 and not stream.closed:
            take()
            left -= CHUNK

    def stop(self, grace: float) -> None:
        """TERM now, KILL after the grace."""
        self._stopping = True
        self.family.signal(signal.SIGTERM)
        self._signal_later((time.monotonic() + grace, signal.SIGKILL))

    def stop_later(self, seconds: float) -> None:
        """TERM after so many seconds, KILL after a grace."""
        at = time.monotonic() + seconds
        self._stopping = True
        self._signal_later((at, signal.SIGTERM), (at + LEFTOVER_SECONDS, signal.SIGKILL))

    def overflowed(self) -> None:
        """The child has said more than it may: end it."""
        if not self.overflow:
            self.overflow = True
            self.family.signal(signal.SIGKILL)

    def _signal_later(self, *signals: tuple[float, int]) -> None:
        if not self._signals or signals[-1][0] < self._signals[-1][0]:
            self._signals = list(signals)

    # Receivers.

    def on_order(self, connection: Connection, order: Json) -> None:  # noqa: ARG002 - an agent's keeper answers it
        """Do what a receiver wants."""
        if order["op"] == "kill":
            self.stop(float(order["grace"]))

    def fill(self, connection: Connection) -> None:
        """Queue more for a receiver that has read what was queued."""

    def refuse(self, error: Exception, code: str = "") -> None:
        """Tell that nothing was started, and why."""
        reason = str(error)
        if isinstance(error, OSError) and error.strerror:
            reason = error.strerror + (f": {os.fsdecode(error.filename)}" if error.filename else "")
        code = code or errno.errorcode.get(getattr(error, "errno", None) or 0, "error")
        self.receivers.tell({"t": "refused", "code": code, "reason": reason})

    # Its life.

    def run(self) -> None:
        """Serve until the child and what it left have ended, and that is told. A fault of its own ends the child."""
        try:
            self._serve()
        except BaseException:
            self.family.signal(signal.SIGKILL)
            raise

    def _serve(self) -> None:
        self._wake_on_signals()
        if self.begin():
            while not self._tick():
                self._turn(self.wait())
        until = time.monotonic() + LAST_WORDS_SECONDS
        while self.receivers.flush() and time.monotonic() < until:
            self._turn(until - time.monotonic())

    def _wake_on_signals(self) -> None:
        """A signal of the terminal or of a shutdown ends nothing here; the end of a process is looked at at once."""
        reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) if hasattr(os, "pipe2") else _pipe()
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        self.selector.register(reader, selectors.EVENT_READ, lambda: files.read_some(reader, CHUNK))
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)

    def begin(self) -> bool:
        """Start the child; False where nothing was started."""
        raise NotImplementedError

    def wait(self) -> float | None:
        """Seconds until there is something to do without an event."""
        times = [at for at, _ in self._signals[:1]]
        if self.end is not None and not self.written:
            times.append(self._write_at)
        if self.family.code is not None:
            times.append(time.monotonic() + LOOK_SECONDS)
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _turn(self, timeout: float | None) -> None:
        """Take one round of events."""
        self.receivers.flush()
        for key, _ in self.selector.select(timeout):
            now = self.selector.get_map().get(key.fd)
            if now is not None and now.fileobj is key.fileobj:
                now.data()

    def _tick(self) -> bool:
        """Look at what time and the operating system have brought; True once there is nothing more to do."""
        self._send_due_signals()
        if not self.family.reap():
            return False
        if self.end is None and (not self._stopping or self._nothing_left()):
            self.end = self.finish()
        if self.end is not None and not self.written:
            self._write_end(self.end)
        return self.written and self._nothing_left()

    def _send_due_signals(self) -> None:
        now = time.monotonic()
        while self._signals and self._signals[0][0] <= now:
            _, number = self._signals.pop(0)
            self.family.signal(number)
            if number == signal.SIGKILL:
                self._killed_at = self._killed_at or now
                self._signals = [(now + LOOK_SECONDS, signal.SIGKILL)]

    def _nothing_left(self) -> bool:
        """End what the child left running: TERM, grace, KILL. True once it has ended, or cannot be ended."""
        if not self.family.others():
            self._signals.clear()
            return True
        if not self._signals:
            self.family.signal(signal.SIGTERM)
            self._signal_later((time.monotonic() + LEFTOVER_SECONDS, signal.SIGKILL))
        return self._killed_at is not None and time.monotonic() > self._killed_at + GIVE_UP_SECONDS

    def finish(self) -> list[bytes | bytearray]:
        """The child has ended: take its last words; the parts of the end file."""
        raise NotImplementedError

    def ending(self, stdout: bytes | bytearray = b"", **more: Any) -> list[bytes | bytearray]:  # noqa: ANN401 - JSON
        """The end as it is written: a line of JSON, then as many bytes of stdout and stderr as it says."""
        code = self.family.code or 0
        head = {
            "exit": code if code >= 0 else None,
            "signal": -code if code < 0 else None,
            "overflow": self.overflow,
            "leftovers": self.family.lives(),
            "at": time.time(),
            "stdout": len(stdout),
            "stderr": len(self.stderr),
            **more,
        }
        return [json.dumps(head).encode() + b"\n", stdout, self.stderr]

    def _write_end(self, parts: list[bytes | bytearray]) -> None:
        """Write the end down, then tell it. It is never given up, however long the disk is full."""
        if time.monotonic() < self._write_at:
            return
        try:
            self.before_end()
            faults.hit("keeper.end.before")
            files.write_whole(self.path("end"), parts)
            faults.hit("keeper.end.after")
        except OSError:
            self._write_at = time.monotonic() + ROOM_SECONDS
            return
        self.written = True
        self.receivers.stop_listening()
        self.ended()

    def before_end(self) -> None:
        """Write what must be there before the end is.

        Raises:
            OSError: there is no room for it now.
        """

    def ended(self) -> None:
        """The end is on the disk: tell it."""
        self.receivers.tell({"t": "ended"})


def _waiting(stream: Pipe | None) -> int:
    if stream is None or stream.closed:
        return 0
    room = fcntl.ioctl(stream.fileno(), termios.FIONREAD, struct.pack("i", 0))
    return int(struct.unpack("i", room)[0])


def _pipe() -> tuple[int, int]:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    return reader, writer
