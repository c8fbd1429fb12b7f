"""Bodies within bounds: refused by what they announce, counted while they arrive, never waited for without end."""

import asyncio
from collections.abc import Awaitable, Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from relay_receiver.hub.errors import Refusal, malformed
from relay_receiver.hub.options import HubOptions
from relay_receiver.wire import limits

Most = Callable[[str], int]
"""How many bytes a body sent to a path may have."""

BASE = "/api/v1"
ATTACHMENTS = f"{BASE}/attachments"
DRAINED = 4 * 1024 * 1024
"""Bytes of a refused body that are read and dropped, so that its sender gets to read the answer."""


def most_bytes(path: str) -> int:
    """The limit of a path of the API."""
    return limits.ATTACHMENT_BYTES if path == ATTACHMENTS else limits.BODY_BYTES


class Bodies:
    """Refuses bodies over their limit, with 413."""

    def __init__(self, app: ASGIApp, options: HubOptions, most: Most = most_bytes) -> None:
        self._app, self._most = app, most
        self._seconds = options.body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let it through with a counting `receive`, or raise a refusal."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most = self._most(scope["path"])
        patient = _within(receive, self._seconds * (10 if most > limits.BODY_BYTES else 1))
        announced = Headers(scope=scope).get("content-length")
        if announced is not None:
            if not (announced.isascii() and announced.isdigit()):
                raise malformed("Content-Length is not a number.")
            if len(announced) > 12 or int(announced) > most:
                await _drain(patient)
                raise _too_large(most)
        await self._app(scope, _counting(patient, most), send)


def _within(receive: Receive, seconds: float) -> Receive:
    """`receive`, of which all until the body's end must come within `seconds` of the first call."""
    loop = asyncio.get_running_loop()
    end: float | None = None
    complete = False

    async def timed() -> Message:
        nonlocal complete, end
        if complete:
            return await receive()
        end = loop.time() + seconds if end is None else end
        try:
            async with asyncio.timeout_at(end):
                message = await receive()
        except TimeoutError:
            raise Refusal(408, "too_slow", "The body did not arrive in time.") from None
        complete = not message.get("more_body", False)
        return message

    return timed


def _counting(receive: Receive, most: int) -> Callable[[], Awaitable[Message]]:
    count = 0

    async def counted() -> Message:
        nonlocal count
        message = await receive()
        count += len(message.get("body", b""))
        if count > most:
            await _drain(receive)
            raise _too_large(most)
        return message

    return counted


async def _drain(receive: Receive) -> None:
    dropped = 0
    while dropped < DRAINED:
        message = await receive()
        dropped += len(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body", False):
            return


def _too_large(most: int) -> Refusal:
    return Refusal(413, "too_large", f"The body is larger than {most} bytes.", limit=most)
