"""The console as one ASGI application beside the API: its own headers, sign-in, proof of writes, and error pages."""

from collections.abc import Callable
from functools import partial

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from relay_receiver.hub.answer import refused
from relay_receiver.hub.console import assets, csrf, form, pages, render
from relay_receiver.hub.console.session import COOKIE, Session, Sessions
from relay_receiver.hub.errors import Refusal, unauthorized
from relay_receiver.hub.events import head
from relay_receiver.hub.limits import Rates
from relay_receiver.hub.middleware import Answers, Gate
from relay_receiver.hub.middleware_body import Bodies
from relay_receiver.hub.options import HubOptions
from relay_receiver.hub.store import Store
from relay_receiver.wire import limits

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; font-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
    "cache-control": "no-store",
}
"""On every answer of the console, errors too, unless it has its own of that name."""
_READS = frozenset({"GET", "HEAD"})


class Console:
    """What the hub serves outside the API.

    Args:
        guard: wraps what is inside the answers, such as a refusal while the hub stops.
    """

    def __init__(self, store: Store, options: HubOptions, rates: Rates, guard: Callable[[ASGIApp], ASGIApp]) -> None:
        self.sessions = Sessions(store)
        self.assets = assets.load()
        self.templates = render.environment(self.assets)
        self.rates = rates
        self._store = store
        inner: ASGIApp = Gate(Bodies(self._serve, options, most=_most), options)
        self._stack = _Sealed(Answers(guard(inner), tell=self._tell))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        await self._stack(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = _route(scope)
        if scope["method"] == "OPTIONS":
            allowed = ", ".join(sorted({*(route.methods or ()), *_methods(scope), "OPTIONS"}))
            await Response(status_code=204, headers={"allow": allowed})(scope, receive, send)
            return
        request = Request(scope, receive)
        public = route.path in pages.PUBLIC
        session = self.sessions.find(request.cookies.get(COOKIE))
        state = scope.setdefault("state", {})
        state["session"] = session
        if not public:
            if session is None:
                raise unauthorized("You are not signed in here, or no longer.")
            state["cursor"] = str(self._store.read_now(head, session.person.workspace))
        try:
            if scope["method"] not in _READS:
                await self._check_write(request, session, public=public)
            await route.app(scope, receive, send)
        finally:
            await request.close()

    async def _check_write(self, request: Request, session: Session | None, *, public: bool) -> None:
        csrf.check_origin(request.headers)
        if session is not None and not public:
            self.rates.writes.take(session.person.digest)
        request.state.form = await form.read(request, None if public else session)

    async def _tell(self, refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
        """Tell a refusal: as a page to a browser that shows pages, else as the API does."""
        await self._told(refusal, Request(scope))(scope, receive, send)

    def _told(self, refusal: Refusal, request: Request) -> Response:
        headers = {name: value for name, value in refusal.headers.items() if name != "www-authenticate"}
        if not _shows_pages(request.headers):
            return refused(refusal)
        page = partial(render.bare, request, status=refusal.status)
        if refusal.status == 401:
            answer = page("sign_in.html", **pages.sign_in.asked(request, following=_following(request)))
        else:
            answer = page("error.html", refusal=refusal)
        answer.headers.update(headers)
        return answer


def _following(request: Request) -> str:
    """Where a sign-in leads: to the page that was asked for."""
    if request.method not in _READS:
        return "/"
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")


def _shows_pages(headers: Headers) -> bool:
    return "text/html" in headers.get("accept", "")


def _route(scope: Scope) -> Route:
    """The route of a request, its parameters put into the scope.

    Raises:
        Refusal: 404, 405.
    """
    allowed = _methods(scope)
    for route in pages.routes:
        match, found = route.matches(scope)
        if match is Match.FULL or (match is Match.PARTIAL and scope["method"] == "OPTIONS"):
            scope.update(found)
            return route
    if not allowed:
        raise Refusal(404, "not_found", "There is nothing under this address.")
    sentence = f"This address does not know that method; it knows {', '.join(sorted(allowed))}."
    raise Refusal(405, "method_not_allowed", sentence, allow=", ".join(sorted({*allowed, "OPTIONS"})))


def _methods(scope: Scope) -> set[str]:
    return {
        method for route in pages.routes if route.matches(scope)[0] is not Match.NONE for method in route.methods or ()
    }


def _most(path: str) -> int:
    """Bytes that a body may have: one that carries attachments, more."""
    return limits.ATTACHMENT_BYTES + limits.BODY_BYTES if pages.channel.takes_files(path) else limits.BODY_BYTES


class _Sealed:
    """Puts the console's headers on every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""

        async def sealing(message: Message) -> None:
            if message["type"] == "http.response.start":
                have = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(each for each in self._headers if each[0] not in have)]
            await send(message)

        await self._app(scope, receive, sealing)
