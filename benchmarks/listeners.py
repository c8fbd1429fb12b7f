"""Sockets of many receivers in one process, each noting when it is told something."""

import asyncio
import base64
import json
import os
import time


class Listener(asyncio.Protocol):
    def __init__(self, upgrade: bytes, hello: bytes) -> None:
        self._upgrade, self._hello = upgrade, hello
        self._transport: asyncio.Transport | None = None
        self._told = b""
        self._sought = b""
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.heard: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    def expect(self, sought: bytes) -> None:
        """From now on wait for a frame that holds this."""
        self._sought, self._told = sought, b""
        self.heard = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._upgrade)

    def data_received(self, data: bytes) -> None:
        self._told += data
        if not self.ready.done():
            if self._hello and b"\r\n\r\n" in self._told and self._transport is not None:
                self._transport.write(self._hello)
                self._hello = b""
            if b'"ready"' in self._told:
                self.ready.set_result(None)
        elif self._sought and self._sought in self._told and not self.heard.done():
            self.heard.set_result(time.perf_counter())

    def connection_lost(self, exc: Exception | None) -> None:
        for waiting in (self.ready, self.heard):
            if not waiting.done():
                waiting.set_exception(exc or ConnectionError(self._told.decode("utf-8", "replace")))
                waiting.exception()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def upgrade(port: int, token: str) -> bytes:
    """The upgrade to a socket of the hub."""
    key = base64.b64encode(os.urandom(16)).decode()
    return (
        f"GET /api/v1/ws HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\n"
        f"connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: {key}\r\n\r\n"
    ).encode()


def hello(channel: str) -> bytes:
    """The greeting, as a frame; a mask of zeros leaves it readable, and is a mask."""
    said = json.dumps({"t": "hello", "resume": None, "channel": channel, "types": ["message.created"]}).encode()
    return bytes((0x81, 0x80 | 126)) + len(said).to_bytes(2, "big") + bytes(4) + said


async def greeted(port: int, token: str, channel: str) -> Listener:
    """A socket of the hub that was told ready."""
    loop = asyncio.get_running_loop()
    _, made = await loop.create_connection(lambda: Listener(upgrade(port, token), hello(channel)), "127.0.0.1", port)
    await made.ready
    return made


async def bare(port: int) -> Listener:
    """A bare connection."""
    _, made = await asyncio.get_running_loop().create_connection(lambda: Listener(b"", b""), "127.0.0.1", port)
    made.ready.set_result(None)
    return made
