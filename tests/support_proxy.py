"""A proxy in front of a real hub, in a thread of its own, that goes wrong where it is told.

Every HTTP request (and every upgrade to a WebSocket) is one `Call` with a number; `rule` says what happens to it.
"""

import asyncio
import contextlib
import json
import struct
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from socket import SO_LINGER, SOL_SOCKET
from typing import Any, Self

from support_time import WITHIN

from relay_receiver.testing.port import Port


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request of a client."""

    number: int
    method: str
    path: str
    body: bytes

    @property
    def said(self) -> dict[str, Any]:
        """Its JSON body."""
        return dict(json.loads(self.body or b"{}"))

    @property
    def name(self) -> str:
        """What it is for, short: `POST /receiver/run begin`."""
        action = self.said.get("action") if self.path.startswith("/api/v1/receiver") and self.body else None
        return " ".join(filter(None, (self.method, self.path.removeprefix("/api/v1").split("?")[0], action)))


@dataclass(frozen=True)
class Answer:
    """The proxy answers itself, and the hub hears nothing."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b'{"error": "something on the way", "code": "on_the_way"}'


class Reset:
    """The connection is reset before the hub heard anything."""


class Lost:
    """The hub does it; its answer never comes, and the connection is reset."""


class Stale:
    """The answer to an earlier call of that name is given again, and the hub hears nothing."""


class Silent:
    """The hub hears nothing, nobody answers, and the connection stays open: half-open."""


@dataclass(frozen=True)
class Slow:
    """The answer's body comes in pieces; `gate` is awaited before each."""

    piece: int = 7
    gate: Callable[[], Awaitable[None]] = lambda: asyncio.sleep(0)


@dataclass(frozen=True)
class CutSocket:
    """The upgraded connection is reset instead of delivering the first frame of the hub that `at` picks."""

    at: Callable[[dict[str, Any]], bool]


Fault = Answer | Reset | Lost | Stale | Silent | Slow | CutSocket
Rule = Callable[[Call], Fault | None]


def nth(number: int, fault: Fault) -> Rule:
    """The fault at one call."""
    return lambda call: fault if call.number == number else None


def one_by_one(name: str, faults: Iterable[Fault | None]) -> Rule:
    """The faults at the calls of that name, in order; None lets a call pass."""
    left = iter(faults)
    return lambda call: next(left, None) if call.name == name else None


def together(*rules: Rule) -> Rule:
    """The first fault that any of the rules has."""
    return lambda call: next(filter(None, (rule(call) for rule in rules)), None)


def first(name: str, fault: Fault, *, times: int = 1) -> Rule:
    """The fault at the first calls of that name."""
    left = [times]

    def rule(call: Call) -> Fault | None:
        if left[0] and call.name == name:
            left[0] -= 1
            return fault
        return None

    return rule


@dataclass
class Proxy:
    """Stands between its users and `port`; a context manager."""

    port: int
    rule: Rule = lambda _: None
    calls: list[Call] = field(default_factory=list)
    hit: list[Call] = field(default_factory=list)
    """The calls that went wrong."""
    url: str = ""

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._open: set[asyncio.StreamWriter] = set()
        self._answers: dict[str, bytes] = {}
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._listening = Port()
        self.url = f"http://127.0.0.1:{self._listening.number}"
        self._do(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._shut())
        self._do(self._rest())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._listening.close()

    def arm(self, rule: Rule) -> None:
        """From now on, with numbers from 1 again."""
        self._loop.call_soon_threadsafe(self._arm, rule)
        self._do(asyncio.sleep(0))

    def down(self) -> None:
        """An outage begins: connections are reset, new ones refused."""
        self._do(self._shut())

    def up(self) -> None:
        """It is over."""
        self._do(self._listen())

    def cut(self) -> None:
        """Reset what is open; new connections are taken."""
        self._loop.call_soon_threadsafe(self._abort)
        self._do(asyncio.sleep(0))

    @contextlib.contextmanager
    def outage(self) -> Iterator[None]:
        """An outage for the length of the block."""
        self.down()
        try:
            yield
        finally:
            self.up()

    def named(self, name: str) -> list[Call]:
        """The calls of that name since the last `arm`."""
        return [call for call in self.calls if call.name == name]

    def outage_of(self, seconds: float) -> Fault:
        """From inside a rule: reset this call, and be gone for so long."""
        self._loop.create_task(self._gone(seconds))
        return Reset()

    def _do(self, work: Awaitable[Any]) -> None:
        async def whole() -> None:
            await work

        asyncio.run_coroutine_threadsafe(whole(), self._loop).result(WITHIN)

    def _arm(self, rule: Rule) -> None:
        self.rule = rule
        self.calls, self.hit = [], []

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._listening.number)

    async def _shut(self) -> None:
        self._server.close()
        self._abort()

    async def _gone(self, seconds: float) -> None:
        await self._shut()
        await asyncio.sleep(seconds)
        await self._listen()

    async def _rest(self) -> None:
        mine = asyncio.all_tasks() - {asyncio.current_task()}
        for task in mine:
            task.cancel()
        await asyncio.gather(*mine, return_exceptions=True)

    def _abort(self) -> None:
        for writer in list(self._open):
            _reset(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        hub: asyncio.StreamWriter | None = None
        try:
            answers, hub = await asyncio.open_connection("127.0.0.1", self.port)
            while await self._one(reader, writer, answers, hub):
                pass
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()
            if hub is not None:
                hub.close()

    async def _one(  # noqa: PLR0911 - one return a fault
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        answers: asyncio.StreamReader,
        hub: asyncio.StreamWriter,
    ) -> bool:
        """One call; whether another may follow on this connection."""
        head, body = await _message(reader)
        method, path = head.split(b" ", 2)[:2]
        call = Call(number=len(self.calls) + 1, method=method.decode(), path=path.decode(), body=body)
        self.calls.append(call)
        fault = self.rule(call)
        if fault is not None:
            self.hit.append(call)
        match fault:
            case Reset():
                _reset(writer)
                return False
            case Silent():
                await reader.read()
                return False
            case Stale():
                writer.write(self._answers[call.name])
                await writer.drain()
                return True
            case Answer(status=status, headers=headers, body=said):
                lines = [f"HTTP/1.1 {status} Said", "Content-Type: application/json", f"Content-Length: {len(said)}"]
                lines += [f"{name}: {value}" for name, value in headers]
                writer.write("\r\n".join([*lines, "", ""]).encode() + said)
                await writer.drain()
                return True
        hub.write(head + body)
        head, body = await _message(answers)
        if isinstance(fault, Lost):
            _reset(writer)
            return False
        if isinstance(fault, Slow):
            writer.write(head)
            for start in range(0, len(body), fault.piece):
                await fault.gate()
                writer.write(body[start : start + fault.piece])
                await writer.drain()
            return True
        self._answers[call.name] = head + body
        writer.write(head + body)
        await writer.drain()
        if head.startswith(b"HTTP/1.1 101"):
            await self._upgraded(reader, writer, answers, hub, fault)
            return False
        return True

    async def _upgraded(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        answers: asyncio.StreamReader,
        hub: asyncio.StreamWriter,
        fault: Fault | None,
    ) -> None:
        async def up() -> None:
            while data := await reader.read(65536):
                hub.write(data)

        async def down() -> None:
            while True:
                frame, said = await _frame(answers)
                if isinstance(fault, CutSocket) and said is not None and fault.at(said):
                    _reset(writer)
                    return
                writer.write(frame)
                await writer.drain()

        ways = [asyncio.ensure_future(up()), asyncio.ensure_future(down())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)


def _reset(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, AttributeError):
        writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """One HTTP message whose body has a length."""
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return head, await reader.readexactly(int(value))
        assert name.strip().lower() != b"transfer-encoding", "chunked bodies are not for this proxy"
    return head, b""


async def _frame(reader: asyncio.StreamReader) -> tuple[bytes, dict[str, Any] | None]:
    """One WebSocket frame of a server, and what it says where it is text."""
    head = await reader.readexactly(2)
    length = head[1] & 0x7F
    if length >= 126:
        more = await reader.readexactly(2 if length == 126 else 8)
        head, length = head + more, int.from_bytes(more, "big")
    data = await reader.readexactly(length)
    return head + data, json.loads(data) if head[0] & 0x0F == 1 else None
