"""HTTP/1.1 and the frames of RFC 6455 from the server's side, as much as a scripted hub needs."""

import asyncio
import base64
import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

BASE = "/api/v1"
CLOSE = 8
_TEXT, _PING, _PONG = 1, 9, 10
_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One request as it arrived."""

    method: str
    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401 - JSON
        """Its body."""
        return json.loads(self.body) if self.body else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a request gets; as a fault it stands in for the real answer and nothing is applied."""

    status: int = 200
    json: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    """In place of `json`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reset:
    """The connection is reset. `applied`: after the request was done, so that only its answer is lost."""

    applied: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Stall:
    """Nothing comes, for ever."""


class Wire:
    """One upgraded connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def accept(self, key: str) -> None:
        """Answer the upgrade."""
        digest = base64.b64encode(hashlib.sha1((key + _GUID).encode()).digest())  # noqa: S324 - RFC 6455 says so
        self._writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + digest + b"\r\n\r\n"
        )

    def text(self, frame: object) -> None:
        """Send a text frame with JSON."""
        self.send(_TEXT, json.dumps(frame).encode())

    def send(self, opcode: int, data: bytes) -> None:
        """Send a frame."""
        size = bytes([len(data)]) if len(data) < 126 else b"\x7e" + struct.pack("!H", len(data))
        if len(data) >= 1 << 16:
            size = b"\x7f" + struct.pack("!Q", len(data))
        self._writer.write(bytes([0x80 | opcode]) + size + data)

    def abort(self) -> None:
        """Reset the connection."""
        self._writer.transport.abort()

    async def receive(self) -> bytes | None:
        """The next text; None at the end."""
        while True:
            opcode, size = await self._reader.readexactly(2)
            length = size & 0x7F
            if length >= 126:
                length = int.from_bytes(await self._reader.readexactly(2 if length == 126 else 8), "big")
            mask = await self._reader.readexactly(4)
            data = bytes(byte ^ mask[at % 4] for at, byte in enumerate(await self._reader.readexactly(length)))
            opcode &= 0x0F
            if opcode == _TEXT:
                return data
            if opcode == CLOSE:
                self.send(CLOSE, data[:2])
                await self._writer.drain()
                return None
            if opcode == _PING:
                self.send(_PONG, data)


async def read(reader: asyncio.StreamReader) -> Call | None:
    """The next request; None at the end of the connection."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, OSError):
        return None
    first, *lines = head.rstrip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    parts = urlsplit(target)
    return Call(
        method=method,
        path=unquote(parts.path.removeprefix(BASE)),
        params=dict(parse_qsl(parts.query)),
        headers=headers,
        body=body,
    )


def write(writer: asyncio.StreamWriter, answer: Answer) -> None:
    """Send an answer."""
    body = answer.body if answer.body is not None else json.dumps(answer.json).encode()
    head = {"Content-Type": "application/json", "Content-Length": str(len(body)), **answer.headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    writer.write(f"HTTP/1.1 {answer.status} Scripted\r\n{lines}\r\n".encode() + body)
