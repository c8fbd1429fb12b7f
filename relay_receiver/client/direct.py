"""HTTP/1.1 to a hub on this machine, without TLS.

A call over the loopback takes a quarter of the time that it takes with httpx's own transport, and most of a receiver's
time at a job is such calls.
"""

import asyncio

import httptools
import httpx

CONNECT_SECONDS = 5.0
KEPT = 2
"""Idle connections that are kept."""


class Direct(httpx.AsyncBaseTransport):
    """Calls over connections of its own; one call at a time on each.

    Args:
        kept_seconds: how long an idle connection is kept.
        most: bytes of an answer's body; one that is longer comes cut behind them.
    """

    def __init__(self, *, kept_seconds: float, most: int) -> None:
        self._kept_seconds, self._most = kept_seconds, most
        self._idle: list[_Link] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and read its answer whole.

        Raises:
            httpx.ConnectError, httpx.ConnectTimeout: nothing was sent.
            httpx.TransportError: something may have been.
        """
        data = _encode(request)
        link = self._take() or await _connect(request.url, self._most)
        try:
            response = await link.exchange(data)
        except BaseException:
            link.abort()
            raise
        self._give_back(link)
        return response

    async def aclose(self) -> None:
        """Close what is kept."""
        while self._idle:
            self._idle.pop().abort()

    def _take(self) -> "_Link | None":
        now = asyncio.get_running_loop().time()
        while self._idle:
            link = self._idle.pop()
            if link.usable and now - link.idle_since < self._kept_seconds:
                return link
            link.abort()
        return None

    def _give_back(self, link: "_Link") -> None:
        if not link.usable or len(self._idle) >= KEPT:
            link.abort()
            return
        link.idle_since = asyncio.get_running_loop().time()
        self._idle.append(link)


class _Link(asyncio.Protocol):
    """One connection; the parser calls the `on_` methods."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[httpx.Response] | None = None
        self._headers: list[tuple[bytes, bytes]] = []
        self._body = bytearray()
        self.usable = True
        self.idle_since = 0.0

    async def exchange(self, data: bytes) -> httpx.Response:
        if self._transport is None:
            raise httpx.WriteError("the connection is not open")
        self._answer = asyncio.get_running_loop().create_future()
        self._headers, self._body = [], bytearray()
        self._transport.write(data)
        return await self._answer

    def abort(self) -> None:
        self.usable = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.Transport):
            self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.done():
            # Nothing was asked, so nothing that comes can be an answer.
            self.abort()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._fail(httpx.RemoteProtocolError("the answer is not HTTP"))

    def eof_received(self) -> None:
        self.usable = False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self.usable = False
        self._fail(httpx.ReadError("the connection was cut"))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_body(self, body: bytes) -> None:
        self._body += body
        if len(self._body) > self._most:
            self.usable = False
            self._end()

    def on_message_complete(self) -> None:
        if self._parser.get_status_code() < 200:
            self._fail(httpx.RemoteProtocolError("the answer is none"))
            return
        self.usable = self.usable and self._parser.should_keep_alive()
        self._end()

    def _end(self) -> None:
        if self._answer is not None and not self._answer.done():
            status = self._parser.get_status_code()
            self._answer.set_result(httpx.Response(status, headers=self._headers, content=bytes(self._body)))

    def _fail(self, error: httpx.TransportError) -> None:
        self.abort()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)


async def _connect(url: httpx.URL, most: int) -> _Link:
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, link = await asyncio.get_running_loop().create_connection(lambda: _Link(most), url.host, url.port or 80)
    except TimeoutError as error:
        raise httpx.ConnectTimeout("the hub did not take the connection in time") from error
    except OSError as error:
        raise httpx.ConnectError(f"the hub takes no connection: {error.strerror or error}") from error
    return link


def _encode(request: httpx.Request) -> bytes:
    """The request as it goes out, in one piece."""
    lines = [request.method.encode() + b" " + request.url.raw_path + b" HTTP/1.1"]
    for name, value in request.headers.raw:
        if b"\r" in value or b"\n" in value:
            raise httpx.LocalProtocolError("a header has a line break")
        lines.append(name + b": " + value)
    return b"\r\n".join([*lines, b"", b""]) + request.content
