"""A hub that does what a test says, on a real socket of this machine: for the faults that a good hub never shows."""

import asyncio
import contextlib
import json
import secrets
import struct
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Any, Self

from relay_receiver.testing.port import Port
from relay_receiver.testing.web import CLOSE, Answer, Call, Reset, Stall, Wire, read, write

__all__ = ["Answer", "Call", "FakeHub", "Reset", "Stall"]

Fault = Answer | Reset | Stall

PATIENCE = 60.0
"""Seconds after which what is waited for counts as never coming."""
Handler = Callable[[Call], Answer]


class FakeHub:
    """An async context manager. Events, history, long poll and sockets work; other routes are given with `on`.

    Attributes:
        calls: every request, in order.
        frames: every frame that a client sent on a socket.
        polls, sockets: how many are live now.
        most: the most transports that were ever live at once.
        upgrades: statuses that refuse the next upgrades; None lets one through.
        hold_cursors: sends events without the cursor that closes them.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.frames: list[dict[str, Any]] = []
        self.faults: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self.upgrades: deque[Answer | None] = deque()
        self.refuse_sockets: Answer | None = None
        self.hold_cursors = False
        self.events: list[dict[str, Any]] = []
        self.head = 0
        self.pruned = 0
        self.polls = 0
        self.most = 0
        self.changed = asyncio.Condition()
        self._tags: dict[int, str] = {}
        self._forgotten = 0
        self._messages: list[dict[str, Any]] = []
        self._routes: dict[tuple[str, str], Handler] = {
            ("POST", "/messages"): self._post,
            ("PATCH", "/subscriptions/"): _fine,
        }
        self._posted: dict[str, dict[str, Any]] = {}
        self._sockets: set[Wire] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._port = Port()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._port.number}"

    @property
    def sockets(self) -> int:
        """How many sockets are greeted and open."""
        return len(self._sockets)

    async def __aenter__(self) -> Self:
        await self.listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.refuse()
        self._port.close()

    async def listen(self) -> None:
        """Take connections, on the same port as before."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port.number)

    async def refuse(self) -> None:
        """Take no more connections and reset those there are."""
        if self._server is not None:
            self._server.close()
        self._server = None
        for writer in list(self._writers):
            writer.transport.abort()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving)

    def on(self, method: str, path: str, handler: Handler) -> None:
        """Answer a route; a path with a slash at its end takes all below it."""
        self._routes[method, path] = handler

    def fail(self, route: str, *faults: Fault) -> None:
        """The next requests of a route such as `GET /state` meet these."""
        self.faults[route].extend(faults)

    def message(self, content: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of a message
        """A message in the channel `c1`, stored and told."""
        stored = {
            "id": f"m{secrets.token_hex(4)}",
            "channel": "c1",
            "authorId": "bob",
            "author": {"id": "bob", "name": "Bob", "kind": "agent"},
            "kind": "message",
            "content": content,
            "to": None,
            "mentions": [],
            "replyTo": None,
            "createdAt": "2027-01-15T08:00:00.000Z",
            **more,
        }
        stored["event"] = self.head + 1
        self._messages.append(stored)
        self.tell("message.created", {"message": stored})
        return stored

    def tell(self, type_: str, data: Mapping[str, Any]) -> int:
        """An event, numbered and sent to whoever listens."""
        self.head += 1
        self._tags[self.head] = secrets.token_hex(4)
        self.events.append({"type": type_, "id": self.head, "at": "2027-01-15T08:00:00.000Z", "data": dict(data)})
        self._notify()
        return self.head

    def cursor(self, number: int | None = None) -> str:
        """The cursor of an event; of the head by default."""
        number = self.head if number is None else number
        return f"{number}.{self._tags[number]}" if number in self._tags else str(number)

    def restore(self, head: int) -> None:
        """Go back to a backup: what came after `head` never was."""
        self.head = head
        self.events = [each for each in self.events if each["id"] <= head]
        self._messages = [each for each in self._messages if each["event"] <= head]
        self._tags = {number: tag for number, tag in self._tags.items() if number <= head}

    def forget(self, through: int) -> None:
        """Keep no events up to there; the history stays."""
        self._forgotten = through
        self.events = [each for each in self.events if each["id"] > through]

    def prune(self, through: int) -> None:
        """Keep no history up to there."""
        self.pruned = through
        self._messages = [each for each in self._messages if each["event"] > through]

    def drop(self, code: int | None = None) -> None:
        """End every socket: with a close code, or by a reset."""
        for wire in list(self._sockets):
            if code is not None:
                wire.send(CLOSE, struct.pack("!H", code))
            else:
                wire.abort()
        self._sockets.clear()

    def send(self, frame: object) -> None:
        """Send a frame, whatever it is, on every socket."""
        for wire in self._sockets:
            wire.text(frame)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so; looked at after each request, frame and event."""
        async with asyncio.timeout(PATIENCE), self.changed:
            await self.changed.wait_for(condition)

    def _notify(self) -> None:
        self._waking = asyncio.ensure_future(self._wake())

    async def _wake(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    def _reset_reason(self, cursor: str) -> str | None:
        number = int(cursor.partition(".")[0])
        if number > self.head or ("." in cursor and number > self._forgotten and cursor != self.cursor(number)):
            return "diverged"
        return "cursor_expired" if number < self._forgotten else None

    def _after(self, number: int, *, channel: str | None, types: list[str]) -> list[dict[str, Any]]:
        return [
            each
            for each in self.events
            if each["id"] > number
            and (not types or each["type"] in types)
            and channel in {None, _channel_of(each, channel)}
        ]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        task = asyncio.current_task()
        if task is not None:
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)
        try:
            while (call := await read(reader)) is not None:
                self.calls.append(call)
                self._notify()
                if call.path == "/ws":
                    await self._socket(call, reader, writer)
                    return
                if not await self._respond(call, writer):
                    return
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client went, or the hub: `refuse` is the only one who cancels
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _respond(self, call: Call, writer: asyncio.StreamWriter) -> bool:
        waiting = self.faults.get(f"{call.method} {call.path}")
        fault = waiting.popleft() if waiting else None
        if isinstance(fault, Stall):
            await asyncio.Event().wait()
        if isinstance(fault, Answer):
            answer = fault
        elif isinstance(fault, Reset):
            if fault.applied:
                await self._answer(call)
            writer.transport.abort()
            return False
        else:
            answer = await self._answer(call)
        write(writer, answer)
        await writer.drain()
        return True

    async def _answer(self, call: Call) -> Answer:
        if (call.method, call.path) == ("GET", "/updates"):
            return await self._updates(call)
        if (call.method, call.path) == ("GET", "/messages"):
            return self._history(call)
        for (method, path), handler in self._routes.items():
            if method == call.method and (path == call.path or (path.endswith("/") and call.path.startswith(path))):
                return handler(call)
        if call.method == "GET" and call.path.startswith("/messages/"):
            found = [each for each in self._messages if each["id"] == call.path.rpartition("/")[2]]
            return (
                Answer(json=found[0])
                if found
                else Answer(status=404, json={"error": "No such message.", "code": "not_found"})
            )
        return Answer(status=404, json={"error": "There is nothing here.", "code": "not_found"})

    async def _updates(self, call: Call) -> Answer:
        cursor = call.params.get("cursor")
        if cursor is None:
            return Answer(json={"cursor": self.cursor(), "events": []})
        if reason := self._reset_reason(cursor):
            return Answer(status=409, json={"error": "Heal first.", "code": reason})
        channel, types = call.params.get("channel"), [each for each in call.params.get("types", "").split(",") if each]
        number = int(cursor.partition(".")[0])
        self.polls += 1
        self.most = max(self.most, self.polls + self.sockets)
        try:
            async with asyncio.timeout(int(call.params.get("wait", "25"))), self.changed:
                await self.changed.wait_for(lambda: self._after(number, channel=channel, types=types))
        except TimeoutError:
            return Answer(json={"cursor": cursor, "events": []})
        finally:
            self.polls -= 1
        return Answer(json={"cursor": self.cursor(), "events": self._after(number, channel=channel, types=types)})

    def _history(self, call: Call) -> Answer:
        limit = int(call.params.get("limit", "50"))
        found = [each for each in self._messages if each["channel"] == call.params["channel"]]
        if (after := call.params.get("after")) is not None:
            found = [each for each in found if each["event"] > int(after)]
            page, more = found[:limit], len(found) > limit
        else:
            before = int(call.params.get("before", "0")) or self.head + 1
            found = [each for each in found if each["event"] < before]
            page, more = found[-limit:], len(found) > limit
        at = page[-1]["event"] if page and more else self.head
        return Answer(json={"messages": page, "cursor": self.cursor(at), "more": more, "prunedThrough": self.pruned})

    def _post(self, call: Call) -> Answer:
        said = call.json
        operation = said["operationId"]
        if operation not in self._posted:
            self._posted[operation] = self.message(**said)
        return Answer(json=self._posted[operation])

    async def _socket(self, call: Call, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        refusal = self.upgrades.popleft() if self.upgrades else self.refuse_sockets
        if refusal is not None:
            write(writer, refusal)
            await writer.drain()
            return
        wire = Wire(reader, writer)
        wire.accept(call.headers["sec-websocket-key"])
        hello = json.loads(await wire.receive() or b"{}")
        self.frames.append(hello)
        cursor = hello.get("resume") or self.cursor()
        if reason := self._reset_reason(cursor):
            wire.text({"t": "reset", "reason": reason})
            await wire.receive()
            return
        wire.text({"t": "ready", "cursor": cursor})
        self._sockets.add(wire)
        self.most = max(self.most, self.polls + self.sockets)
        self._notify()
        pump = asyncio.ensure_future(self._pump(wire, int(cursor.partition(".")[0]), hello))
        try:
            while (data := await wire.receive()) is not None:
                self.frames.append(json.loads(data))
                self._notify()
        finally:
            self._sockets.discard(wire)
            pump.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await pump

    def _passed(self, number: int) -> Callable[[], bool]:
        return lambda: self.head > number

    async def _pump(self, wire: Wire, number: int, hello: Mapping[str, Any]) -> None:
        while True:
            async with self.changed:
                await self.changed.wait_for(self._passed(number))
            for event in self._after(number, channel=hello.get("channel"), types=hello.get("types") or []):
                wire.text({"t": "event", "event": event})
            number = self.head
            if not self.hold_cursors:
                wire.text({"t": "cursor", "cursor": self.cursor()})


def _channel_of(event: Mapping[str, Any], default: str | None) -> str | None:
    """The channel that an event is in; the default where it names none."""
    data = event["data"]
    said = data.get("message") or data.get("request")
    found = said.get("channel", default) if isinstance(said, dict) else data.get("channel", default)
    return None if found is None else str(found)


def _fine(_: Call) -> Answer:
    return Answer(json={})
