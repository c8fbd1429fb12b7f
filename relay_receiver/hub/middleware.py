"""The outermost layers: every end is one answer, and only who is meant to reaches the hub."""

import logging
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from time import time
from urllib.parse import unquote_to_bytes, urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from relay_receiver.hub.answer import send_refusal
from relay_receiver.hub.errors import Refusal, malformed
from relay_receiver.hub.options import HubOptions, host_name, is_own_name

log = logging.getLogger("relay.hub")

_SENTENCES = {
    404: ("not_found", "There is nothing under this address."),
    405: ("method_not_allowed", "This address does not know that method."),
}


Tell = Callable[[Refusal, Scope, Receive, Send], Awaitable[None]]


class Answers:
    """Turns whatever goes wrong inside into one answer, JSON unless `tell` has another form, and dates every answer."""

    def __init__(self, app: ASGIApp, tell: Tell = send_refusal) -> None:
        self._app, self._tell = app, tell
        self._date = (0, b"")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or socket."""
        begun = False

        async def noting(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                message["headers"] = [*message["headers"], *self._headers()]
            elif message["type"] in {"websocket.accept", "websocket.http.response.start"}:
                begun = True
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except ClientDisconnect:
            log.debug("a client went away in the middle of its request")
        except Exception as error:
            refusal = told(error)
            if refusal.status >= 500 and not isinstance(error, Refusal):
                log.exception("%s %r went wrong", scope.get("method", "WS"), scope["path"])
            if not begun:
                await self._tell(refusal, scope, receive, noting)

    def _headers(self) -> list[tuple[bytes, bytes]]:
        now = int(time())
        if self._date[0] != now:
            self._date = (now, formatdate(now, usegmt=True).encode())
        return [(b"date", self._date[1]), (b"x-content-type-options", b"nosniff")]


def told(error: Exception) -> Refusal:
    """The refusal that tells an error."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, HTTPException):
        code, sentence = _SENTENCES.get(error.status_code, ("refused", f"{error.detail}."))
        return Refusal(error.status_code, code, sentence)
    return Refusal(500, "internal", "The hub failed at this; its log says why.")


class Gate:
    """Refuses unknown hosts, foreign origins, and addresses that cannot be read."""

    def __init__(self, app: ASGIApp, options: HubOptions) -> None:
        self._app = app
        self._hosts = options.hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let it through or raise a refusal."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        name = _without_port(host)
        if name not in self._hosts and not is_own_name(name):
            raise Refusal(403, "host_not_allowed", "This hub does not answer under that host name.")
        origin = headers.get("origin")
        if origin is not None and not _same(origin, host):
            raise Refusal(403, "origin_not_allowed", "This hub does not answer pages of other origins.")
        _check_readable(scope)
        await self._app(scope, receive, send)


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return host_name(name if colon and port.isascii() and port.isdigit() else host)


def _same(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and parts.netloc.lower() == host.lower()


def _check_readable(scope: Scope) -> None:
    """Refuse NUL and what is not UTF-8 (so lone surrogates too) in path and query."""
    for part in (scope.get("raw_path") or b"", scope["query_string"]):
        if b"%" not in part:
            continue
        found = unquote_to_bytes(part)
        try:
            found.decode()
        except UnicodeDecodeError:
            raise malformed("The address is not UTF-8.", "unstorable_text") from None
        if b"\0" in found:
            raise malformed("The address holds NUL, which is not accepted.", "unstorable_text")
