"""uvicorn's socket protocol, with an end that does not wait for a reader who reads nothing."""

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

CUT = "relay.cut"
"""The ASGI extension: a function (code, reason, seconds) that ends the socket at once."""
Cut = Callable[[int, str, float], None]

REFUSED = "websocket.http.response.body"
"""What ends the answer to a handshake that is refused."""

BUFFER_BYTES = 64 * 1024
"""Unsent bytes of one socket after which its reader's queue fills instead."""


class SocketProtocol(WebSocketsSansIOProtocol):
    """A WebSocket of the hub."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Bound what is held for a peer that does not read."""
        super().connection_made(transport)
        self.transport.set_write_buffer_limits(high=BUFFER_BYTES)

    def start_keepalive(self) -> None:
        """The handshake is over: forget it, since an idle socket is mostly what it remembers."""
        del self.request, self.response
        self.scope["headers"] = []
        super().start_keepalive()

    async def run_asgi(self) -> None:
        """Offer the extension to the application."""
        self.scope["extensions"][CUT] = {"cut": self.cut}
        await super().run_asgi()

    async def send(self, message: Any) -> None:  # noqa: ANN401 - as above
        """Send, or find that the socket was cut meanwhile."""
        await self.writable.wait()
        if self.close_sent:
            raise ClientDisconnected
        await super().send(message)
        if message["type"] == REFUSED and not message.get("more_body"):
            # The handshake ended with our answer; uvicorn would log an error for each socket that is refused.
            self.handshake_complete = True

    def cut(self, code: int, reason: str, seconds: float) -> None:
        """Write the close frame behind what is already on its way, and hang up after so many seconds at most."""
        if self.close_sent or self.disconnected or not self.handshake_complete or self.transport.is_closing():
            return
        self.conn.send_close(code, reason)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.stop_keepalive()
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        self.writable.set()
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        self.close_timer = self.loop.call_later(seconds, self.transport.abort)
