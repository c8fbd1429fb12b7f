"""The keeper: holds one child and its process group, and outlives the receiver that asked for it.

Forked by the launcher into a session of its own. It talks JSON lines with its receiver: over the connection it was
born with, and over a unix socket on which a later receiver attaches. Two kinds of child:

- `command`: one job. The claim file is created exclusively, and is on the disk, before the program starts: whoever
  has it first, keeper or recovering receiver, decides whether this attempt ever starts. The end is one atomic file.
- `agent`: a program that speaks lines on stdio. Every line of both directions is appended, numbered, to the spool.
  The page cache is enough for it: it survives the death of every process, and a power cut takes the agent along.

Standard library only.
"""

import contextlib
import errno
import json
import os
import selectors
import signal
import socket
import subprocess
import time
from typing import Any

CHUNK = 256 * 1024
STDERR_BYTES = 64 * 1024
"""The last of stderr that is kept."""
LAST_WORDS_SECONDS = 5.0
"""How long a keeper whose child has ended goes on to tell an attached receiver of it."""
ORPHAN_SECONDS = 24 * 3600.0
"""An agent to which no receiver was attached for this long is ended."""
LEFTOVER_SECONDS = 2.0
"""Grace of what a finished child left running, between TERM and KILL."""
ROOM_SECONDS = 0.5
"""Between tries to write to a disk that is full."""

Json = dict[str, Any]


class Connection:
    """One receiver, as it reads and writes lines of JSON."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.socket = sock
        self.incoming = bytearray()
        self.outgoing = bytearray()
        self.offset: int | None = None
        """Where in the spool its reading is; None for one that is not attached."""
        self.after = 0

    def say(self, message: Json) -> None:
        """Queue one line."""
        self.outgoing += json.dumps(message).encode() + b"\n"


class Keeper:
    """What both kinds of child have in common: the process, its group, and whoever is connected."""

    def __init__(self, order: Json, born_with: socket.socket) -> None:
        self.order = order
        self.key: str = order["key"]
        self.spool: str = order["spool"]
        self.selector = selectors.DefaultSelector()
        self.connections: list[Connection] = []
        self.child: subprocess.Popen[bytes] | None = None
        self.stderr = bytearray()
        self.kill_at: float | None = None
        self.overflow = False
        self.end: Json | None = None
        self.reader, self.writer = os.pipe()
        self.listener: socket.socket | None = None
        self.add(born_with)

    def path(self, what: str) -> str:
        """A file of this child in the spool."""
        return f"{self.spool}/{self.key}.{what}"

    # The child.

    def start(self) -> None:
        """Start the child in a process group of its own.

        Raises:
            OSError: it certainly did not start.
        """
        order = self.order
        self.child = subprocess.Popen(
            order["argv"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**order["environment"], "RELAY_NONCE": order["nonce"]},
            cwd=order["directory"],
            process_group=0,
            bufsize=0,
        )
        for stream in (self.child.stdin, self.child.stdout, self.child.stderr):
            os.set_blocking(stream.fileno(), False)  # type: ignore[union-attr]
        self.selector.register(self.child.stdout, selectors.EVENT_READ, self.on_stdout)  # type: ignore[arg-type]  # a pipe
        self.selector.register(self.child.stderr, selectors.EVENT_READ, self.on_stderr)  # type: ignore[arg-type]  # a pipe

    def note_identity(self) -> str:
        """Write down who keeper and child are; read only in this boot, so it need not reach the disk."""
        told = json.dumps(
            {
                "pid": os.getpid(),
                "started": _started(os.getpid()),
                "boot": self.order["boot"],
                "nonce": self.order["nonce"],
                "child": self.child.pid if self.child else None,
                "childStarted": _started(self.child.pid) if self.child else None,
            }
        )
        _write(self.path("keeper"), told.encode(), durable=False)
        return told

    def on_stdout(self) -> None:
        """Take what the child says."""
        raise NotImplementedError

    def on_stderr(self) -> None:
        """Keep the last of what the child logs."""
        stream = self.child.stderr if self.child else None
        if stream is None:
            return
        data = _read(stream.fileno())
        if data == b"":
            self.forget(stream)
            return
        self.stderr += data or b""
        del self.stderr[:-STDERR_BYTES]

    def forget(self, stream: Any) -> None:  # noqa: ANN401 - a pipe
        """Stop looking at a pipe."""
        with contextlib.suppress(KeyError, ValueError):
            self.selector.unregister(stream)
        stream.close()

    def signal_group(self, number: int) -> None:
        """Signal the child's group."""
        if self.child is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.child.pid, number)

    def stop_child(self, grace: float) -> None:
        """TERM now, KILL after the grace."""
        if self.end is None and self.kill_at is None:
            self.signal_group(signal.SIGTERM)
            self.kill_at = time.monotonic() + grace

    # Receivers.

    def listen(self) -> None:
        """Let later receivers attach."""
        path = self.order["socket"]
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            self.listener.bind(path)
        finally:
            os.umask(before)
        self.listener.listen(8)
        self.listener.setblocking(False)
        self.selector.register(self.listener, selectors.EVENT_READ, self.on_connect)

    def on_connect(self) -> None:
        """A receiver comes."""
        with contextlib.suppress(OSError):
            if self.listener is not None:
                self.add(self.listener.accept()[0])

    def add(self, sock: socket.socket) -> None:
        """Serve one more receiver."""
        connection = Connection(sock)
        self.connections.append(connection)
        self.selector.register(sock, selectors.EVENT_READ, lambda: self.on_receiver(connection))

    def drop(self, connection: Connection) -> None:
        """A receiver goes."""
        if connection in self.connections:
            self.connections.remove(connection)
            self.selector.unregister(connection.socket)
            connection.socket.close()

    def on_receiver(self, connection: Connection) -> None:
        """Take what a receiver says, line by line, and give it what is queued for it."""
        data = _receive(connection.socket)
        if data == b"":
            self.drop(connection)
            return
        connection.incoming += data or b""
        while (cut := connection.incoming.find(b"\n")) >= 0:
            line = bytes(connection.incoming[:cut])
            del connection.incoming[: cut + 1]
            with contextlib.suppress(ValueError, KeyError, TypeError):
                self.on_order(connection, json.loads(line))

    def on_order(self, connection: Connection, order: Json) -> None:  # noqa: ARG002 - an agent's keeper answers it
        """Do what a receiver wants."""
        if order["op"] == "kill":
            self.stop_child(float(order["grace"]))

    def tell(self, message: Json) -> None:
        """Say something to every receiver."""
        for connection in self.connections:
            connection.say(message)

    def fill(self, connection: Connection) -> None:
        """Queue more for a receiver that has read what was queued."""

    def flush(self) -> None:
        """Write what is queued, as far as receivers take it; look for more room where it did not fit."""
        for connection in list(self.connections):
            try:
                while True:
                    if not connection.outgoing:
                        self.fill(connection)
                    if not connection.outgoing:
                        break
                    sent = connection.socket.send(connection.outgoing[:CHUNK])
                    del connection.outgoing[:sent]
            except BlockingIOError:
                pass
            except OSError:
                self.drop(connection)
                continue
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.outgoing else 0)
            key = self.selector.get_key(connection.socket)
            if key.events != events:
                self.selector.modify(connection.socket, events, key.data)

    # Its life.

    def run(self) -> None:
        """Serve until the child has ended and that is told."""
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for descriptor in (self.reader, self.writer):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(self.writer, warn_on_full_buffer=False)
        self.selector.register(self.reader, selectors.EVENT_READ, lambda: _read(self.reader))
        if not self.begin():
            self.last_words()
            return
        while self.end is None:
            self.turn(self.wait())
        self.last_words()
        self.end_leftovers()
        with contextlib.suppress(OSError):
            os.unlink(self.order["socket"])

    def begin(self) -> bool:
        """Claim, listen and start; False where nothing was started."""
        raise NotImplementedError

    def wait(self) -> float | None:
        """Seconds until a limit is due."""
        return None if self.kill_at is None else max(0.0, self.kill_at - time.monotonic())

    def turn(self, timeout: float | None) -> None:
        """Take one round of events."""
        self.flush()
        for key, events in self.selector.select(timeout):
            if events & selectors.EVENT_READ and key.fileobj in self.selector.get_map():
                key.data()
        if self.kill_at is not None and time.monotonic() >= self.kill_at:
            self.signal_group(signal.SIGKILL)
            self.kill_at = time.monotonic() + 1.0
        if self.end is None and self.child is not None and self.child.poll() is not None:
            self.finish()

    def finish(self) -> None:
        """The child has ended: write its end down, then tell it."""
        raise NotImplementedError

    def ending(self, **more: Any) -> Json:  # noqa: ANN401 - JSON
        """The end as it is written down."""
        code = self.child.returncode if self.child else None
        return {
            "exit": code if code is not None and code >= 0 else None,
            "signal": -code if code is not None and code < 0 else None,
            "overflow": self.overflow,
            "stderr": _text(bytes(self.stderr)),
            "leftovers": self.group_lives(),
            "at": time.time(),
            **more,
        }

    def group_lives(self) -> bool:
        """Whether the child left something in its group."""
        if self.child is None:
            return False
        try:
            os.killpg(self.child.pid, 0)
        except OSError as error:
            return error.errno == errno.EPERM
        return True

    def last_words(self) -> None:
        """Let the receivers read what is queued for them."""
        until = time.monotonic() + LAST_WORDS_SECONDS
        while True:
            self.flush()
            if not any(connection.outgoing for connection in self.connections):
                return
            left = until - time.monotonic()
            if left <= 0:
                return
            for key, events in self.selector.select(left):
                if events & selectors.EVENT_READ and key.fileobj in self.selector.get_map():
                    key.data()

    def end_leftovers(self) -> None:
        """End what the child left running, in its group or elsewhere: TERM, grace, KILL."""
        if self.order.get("leave"):
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            others = _carrying(self.order["nonce"])
            if not others and not self.group_lives():
                return
            self.signal_group(number)
            for pid in others:
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
            until = time.monotonic() + LEFTOVER_SECONDS
            while time.monotonic() < until and (self.group_lives() or _carrying(self.order["nonce"])):
                time.sleep(0.02)


class CommandKeeper(Keeper):
    """One job of a command: a claim, a process, an end."""

    def __init__(self, order: Json, born_with: socket.socket) -> None:
        super().__init__(order, born_with)
        self.stdin = bytearray(order["stdin"].encode())
        self.stdout = bytearray()

    def begin(self) -> bool:
        """Claim the attempt, then start it."""
        try:
            claim = os.open(self.path("claim"), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            os.close(claim)
            _fsync_dir(self.spool)
            self.listen()
        except FileExistsError:
            self.tell({"t": "refused", "code": "claimed", "reason": "this attempt was given up before it started"})
            return False
        except OSError as error:
            self.refuse(error)
            return False
        try:
            self.start()
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self.refuse(error)
            return False
        self.tell({"t": "started", "identity": self.note_identity()})
        if self.child is not None and self.child.stdin is not None:
            self.selector.register(self.child.stdin, selectors.EVENT_WRITE, self.on_stdin)
        return True

    def refuse(self, error: Exception) -> None:
        """It certainly did not start: written down for a receiver that comes later, and told."""
        number = getattr(error, "errno", None)
        told = {"t": "refused", "code": errno.errorcode.get(number or 0, "error"), "reason": str(error)}
        with contextlib.suppress(OSError):
            _write(self.path("end"), json.dumps({"refused": told}).encode(), durable=True)
        self.tell(told)

    def on_stdin(self) -> None:
        """Give the child its input, then EOF."""
        stream = self.child.stdin if self.child else None
        if stream is None or stream.closed:
            return
        try:
            sent = os.write(stream.fileno(), self.stdin[:CHUNK])
            del self.stdin[:sent]
        except BlockingIOError:
            return
        except OSError:
            self.stdin.clear()
        if not self.stdin:
            self.forget(stream)

    def turn(self, timeout: float | None) -> None:
        """Take one round of events; the pipe to the child is written to rather than read."""
        stream = self.child.stdin if self.child else None
        if stream is not None and not stream.closed:
            self.on_stdin()
        super().turn(timeout)

    def on_stdout(self) -> None:
        """Take the child's answer, up to its bound."""
        stream = self.child.stdout if self.child else None
        if stream is None:
            return
        data = _read(stream.fileno())
        if data == b"":
            self.forget(stream)
            return
        room = int(self.order["output"]) - len(self.stdout)
        self.stdout += (data or b"")[:room]
        if data and len(data) > room and not self.overflow:
            self.overflow = True
            self.signal_group(signal.SIGKILL)

    def finish(self) -> None:
        """Take what is still in the pipes; a grandchild that holds them open delays nothing."""
        for stream, take in ((self.child.stdout, self.on_stdout), (self.child.stderr, self.on_stderr)):  # type: ignore[union-attr]  # it has ended, so it is there
            while stream is not None and not stream.closed and not self.overflow and _ready(stream.fileno()):
                take()
        end = self.ending(stdout=_text(bytes(self.stdout)))
        _until_written(self.path("end"), json.dumps(end).encode())
        self.end = end
        self.tell({"t": "ended"})


class AgentKeeper(Keeper):
    """An agent that speaks lines: a spool of numbered lines, and one receiver at a time that reads on from a number."""

    def __init__(self, order: Json, born_with: socket.socket) -> None:
        super().__init__(order, born_with)
        self.number = 0
        self.partial = bytearray()
        self.outbox = bytearray()
        self.size = 0
        self.lines = -1
        self.alone_since = time.monotonic()

    def begin(self) -> bool:
        """Start the agent with an empty spool."""
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path("end"))
            self.lines = os.open(
                self.path("lines"), os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600
            )
            self.listen()
            self.start()
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            number = getattr(error, "errno", None)
            self.tell({"t": "refused", "code": errno.errorcode.get(number or 0, "error"), "reason": str(error)})
            return False
        self.connections[0].offset = 0
        self.tell({"t": "started", "identity": self.note_identity()})
        return True

    def append(self, direction: str, line: bytes) -> None:
        """Number a line of either direction and put it into the spool."""
        self.number += 1
        record = b"%d %s %s\n" % (self.number, direction.encode(), line)
        while True:
            try:
                view = memoryview(record)
                while view:
                    view = view[os.write(self.lines, view) :]
                break
            except OSError:
                time.sleep(ROOM_SECONDS)
        self.size += len(record)
        if self.size > int(self.order["output"]) and not self.overflow:
            self.overflow = True
            self.signal_group(signal.SIGKILL)

    def on_stdout(self) -> None:
        """Take lines of the agent."""
        stream = self.child.stdout if self.child else None
        if stream is None:
            return
        data = _read(stream.fileno())
        if data == b"":
            self.forget(stream)
            return
        self.partial += data or b""
        if len(self.partial) > int(self.order["output"]):
            self.overflow = True
            self.partial.clear()
            self.signal_group(signal.SIGKILL)
            return
        if b"\n" in (data or b""):
            *whole, rest = bytes(self.partial).split(b"\n")
            self.partial = bytearray(rest)
            for line in whole:
                self.append("out", line)

    def on_order(self, connection: Connection, order: Json) -> None:
        """Attach, send, cut, end."""
        match order["op"]:
            case "attach":
                self.attach(connection, int(order["after"]))
            case "send":
                line = _bytes(order["line"])
                self.append("in", line)
                self.outbox += line + b"\n"
                connection.say({"t": "sent", "id": order.get("id"), "n": self.number})
                self.feed_child()
            case "cut":
                self.cut(int(order["through"]))
            case "end":
                self.close_stdin()
                self.kill_at = self.kill_at or time.monotonic() + float(order["grace"])
            case _:
                super().on_order(connection, order)

    def attach(self, connection: Connection, after: int) -> None:
        """Let this receiver read on after a number; one that was attached before is told and dropped."""
        for other in list(self.connections):
            if other is not connection and other.offset is not None:
                other.say({"t": "displaced"})
                with contextlib.suppress(OSError):
                    other.socket.send(other.outgoing)
                self.drop(other)
        connection.offset, connection.after = 0, after
        told = {"t": "attached", "identity": _contents(self.path("keeper")), "last": self.number}
        connection.say(told)

    def fill(self, connection: Connection) -> None:
        """Queue the next lines of the spool for an attached receiver; they are read from the file, never kept."""
        if connection.offset is None or self.lines < 0:
            return
        data = os.pread(self.lines, CHUNK, connection.offset)
        while data and b"\n" not in data:
            more = os.pread(self.lines, CHUNK, connection.offset + len(data))
            if not more:
                return
            data += more
        whole = data[: data.rfind(b"\n") + 1]
        connection.offset += len(whole)
        for record in whole[:-1].split(b"\n") if whole else ():
            number, direction, line = record.split(b" ", 2)
            if int(number) > connection.after:
                connection.after = int(number)
                connection.say({"t": "line", "n": int(number), "d": direction.decode(), "line": _text(line)})

    def cut(self, through: int) -> None:
        """Drop lines up to a number: their turn is recorded elsewhere."""
        kept = bytearray()
        with open(self.path("lines"), "rb") as old:
            for record in old:
                if int(record.split(b" ", 1)[0]) > through:
                    kept += record
        beside = self.path("lines.new")
        new = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        with contextlib.suppress(OSError):
            os.write(new, kept)
        os.replace(beside, self.path("lines"))
        os.close(self.lines)
        self.lines, self.size = new, len(kept)
        for connection in self.connections:
            if connection.offset is not None:
                connection.after = max(connection.after, through)
                connection.offset = 0

    def feed_child(self) -> None:
        """Write to the agent what fits."""
        stream = self.child.stdin if self.child else None
        if stream is None or stream.closed:
            self.outbox.clear()
            return
        try:
            while self.outbox:
                sent = os.write(stream.fileno(), self.outbox[:CHUNK])
                del self.outbox[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self.outbox.clear()

    def close_stdin(self) -> None:
        """Say EOF to the agent."""
        stream = self.child.stdin if self.child else None
        if stream is not None and not stream.closed:
            stream.close()

    def turn(self, timeout: float | None) -> None:
        """Take one round of events, and end an agent that nobody wants any more."""
        attached = any(connection.offset is not None for connection in self.connections)
        if attached:
            self.alone_since = time.monotonic()
        elif time.monotonic() - self.alone_since > ORPHAN_SECONDS:
            self.close_stdin()
            self.stop_child(10.0)
        if self.outbox:
            self.feed_child()
        super().turn(min(timeout if timeout is not None else 3600.0, 0.05 if self.outbox else 3600.0))

    def finish(self) -> None:
        """Take the last lines, write the end down, tell it after them."""
        stream = self.child.stdout if self.child else None
        while stream is not None and not stream.closed and not self.overflow and _ready(stream.fileno()):
            self.on_stdout()
        if self.partial:
            self.append("out", bytes(self.partial))
            self.partial.clear()
        end = self.ending(last=self.number)
        _until_written(self.path("end"), json.dumps(end).encode())
        self.flush()
        self.end = end
        for connection in self.connections:
            while connection.offset is not None:
                before = len(connection.outgoing)
                self.fill(connection)
                if len(connection.outgoing) == before:
                    break
        self.tell({"t": "ended", "end": end})


def main(order: Json, born_with: socket.socket) -> None:
    """Keep one child, in a session of its own."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    kind = CommandKeeper if order["kind"] == "command" else AgentKeeper
    kind(order, born_with).run()


def _started(pid: int) -> float | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rsplit(b")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return None


def _carrying(nonce: str) -> list[int]:
    """Living processes that carry the nonce in their environment."""
    wanted = f"RELAY_NONCE={nonce}".encode()
    found = []
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != os.getpid():
                with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                    if wanted in file.read().split(b"\0"):
                        found.append(int(name))
    return found


def _read(descriptor: int) -> bytes | None:
    """What is there: bytes, b"" at the end, None when there is nothing just now."""
    try:
        return os.read(descriptor, CHUNK)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _receive(sock: socket.socket) -> bytes | None:
    try:
        return sock.recv(CHUNK)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _ready(descriptor: int) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        return bool(selector.select(0))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _contents(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return "{}"


def _fsync_dir(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(path: str, data: bytes, *, durable: bool) -> None:
    beside = f"{path}.new"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(beside, path)
    if durable:
        _fsync_dir(os.path.dirname(path))


def _until_written(path: str, data: bytes) -> None:
    """Write it durably, however long the disk is full: the end of a job is never given up."""
    while True:
        try:
            _write(path, data, durable=True)
        except OSError:
            time.sleep(ROOM_SECONDS)
        else:
            return
