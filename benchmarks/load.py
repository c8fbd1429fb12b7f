"""A client that costs little: prepared requests over kept connections, each sent when the one before is answered."""

import asyncio
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

WARM = 20
"""Requests of each connection that are not counted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    per_second: float
    median_ms: float
    p99_ms: float


def post(path: str, body: bytes, token: str) -> bytes:
    """One POST as bytes."""
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def run(port: int, connections: Sequence[Sequence[bytes]]) -> Load:
    """Send every connection's requests, all connections at once."""
    return asyncio.run(_run(port, connections))


async def _run(port: int, connections: Sequence[Sequence[bytes]]) -> Load:
    loop = asyncio.get_running_loop()
    callers = [_Caller(iter(requests)) for requests in connections]
    for caller in callers:
        await loop.create_connection(lambda made=caller: made, "127.0.0.1", port)  # type: ignore[misc]  # a default binds it
    for caller in callers:
        caller.begin()
    await asyncio.gather(*(caller.done for caller in callers))
    for caller in callers:
        caller.close()
    counted = [pair for caller in callers for pair in caller.times[WARM:]]
    began, ended = min(first for first, _ in counted), max(last for _, last in counted)
    spent = sorted((last - first) * 1000 for first, last in counted)
    return Load(
        per_second=len(counted) / (ended - began),
        median_ms=statistics.median(spent),
        p99_ms=spent[int(len(spent) * 0.99)],
    )


class _Caller(asyncio.Protocol):
    def __init__(self, requests: Iterator[bytes]) -> None:
        self._requests = requests
        self._buffer = b""
        self._sent = 0.0
        self._transport: asyncio.WriteTransport
        self.times: list[tuple[float, float]] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def begin(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self.done.set_result(None)
            return
        self._sent = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        if len(body) < size:
            return
        if not head.startswith(b"HTTP/1.1 2"):
            self.done.set_exception(RuntimeError(f"refused: {body.decode()}"))
            return
        self._buffer = b""
        self.times.append((self._sent, time.perf_counter()))
        self.begin()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(exc or ConnectionError("the server closed the connection"))

    def close(self) -> None:
        self._transport.close()
