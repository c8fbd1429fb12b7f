"""The hub as one ASGI application: routes, and the layers around them."""

from collections.abc import Iterable, Sequence

from starlette.datastructures import State
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Mount, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from relay_receiver.hub import api
from relay_receiver.hub.api.asks import OneAsk
from relay_receiver.hub.auth import Credentials
from relay_receiver.hub.console.app import Console
from relay_receiver.hub.errors import Refusal
from relay_receiver.hub.events import EventRow
from relay_receiver.hub.feed import Feed
from relay_receiver.hub.limits import Rates
from relay_receiver.hub.middleware import Answers, Gate
from relay_receiver.hub.middleware_auth import Doorkeeper
from relay_receiver.hub.middleware_body import BASE, Bodies
from relay_receiver.hub.options import HubOptions
from relay_receiver.hub.socket import Endpoint, Shared
from relay_receiver.hub.sockets import Sockets
from relay_receiver.hub.store import Store
from relay_receiver.hub.subscriptions import Subscriptions
from relay_receiver.hub.updates import Updates

MEMBER_UPDATED = "member.updated"
API = "/api/"
"""Whatever is below it is told as JSON; the rest is the console's."""


class App:
    """The application. Handlers find `store`, `feed` and `options` at `request.app.state`."""

    def __init__(self, store: Store, options: HubOptions) -> None:
        self.state = State()
        self.state.store, self.state.options = store, options
        self.feed = Feed(ring_events=options.ring_events, queue_events=options.queue_events)
        self.state.feed = self.feed
        credentials = Credentials(store)
        self.state.updates = Updates(store, self.feed, credentials.actor)
        self.sockets = Sockets(credentials.actor)
        subscriptions = Subscriptions(store)
        shared = Shared(store=store, feed=self.feed, sockets=self.sockets, subscriptions=subscriptions, options=options)
        self.routes = [
            *api.routes,
            *OneAsk(self.feed, credentials.actor).routes,
            *self.state.updates.routes,
            *subscriptions.routes,
        ]
        """All HTTP routes, relative to the base path."""
        socket = Socketed("/ws", Endpoint(shared))
        self._exact = {
            (method, BASE + route.path): route
            for route in self.routes
            if "{" not in route.path
            for method in route.methods or ()
        }
        """Most calls are to addresses without a variable part: found at once rather than tried one by one."""
        inside = Router([*self.routes, socket], redirect_slashes=False)
        self._router = Router([Mount(BASE, app=inside)], redirect_slashes=False)
        self._stopping = False
        rates = Rates(options.rate_factor)
        self.console = Console(store, options, rates, self._unless_stopping)
        self.state.console = self.console
        inner: ASGIApp = Doorkeeper(self._route, credentials.actor, rates)
        inner = Gate(Bodies(inner, options), options)
        self._stack = Answers(self._unless_stopping(inner))
        store.on_commit(self._committed)
        store.on_auth_change(self.sockets.check_jobs)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or socket."""
        scope["app"] = self
        api = scope["type"] != "http" or scope["path"].startswith(API)
        await (self._stack if api else self.console)(scope, receive, send)

    def stop(self) -> None:
        """Refuse whatever comes from now on, and send everybody who listens away; what is begun goes on."""
        self._stopping = True
        self.feed.end_all()

    def _unless_stopping(self, inner: ASGIApp) -> ASGIApp:
        async def unless_stopping(scope: Scope, receive: Receive, send: Send) -> None:
            if self._stopping:
                raise Refusal(503, "stopping", "The hub is stopping; come back soon.", retry_after=1)
            await inner(scope, receive, send)

        return unless_stopping

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope.get("method") == "OPTIONS":
                await _options(self._allowed(scope))(scope, receive, send)
                return
            exact = self._exact.get((scope.get("method", ""), scope["path"]))
            if exact is None:
                await self._router(scope, receive, send)
                return
            scope["endpoint"], scope["path_params"] = exact.endpoint, {}
            await exact.app(scope, receive, send)
        except HTTPException as error:
            if error.status_code != 405:
                raise
            allowed = ", ".join(self._allowed(scope))
            sentence = f"This address does not know that method; it knows {allowed}."
            raise Refusal(405, "method_not_allowed", sentence, allow=allowed) from None

    def _allowed(self, scope: Scope) -> list[str]:
        """The methods of a path.

        Raises:
            HTTPException: 404, there is none.
        """
        inside = {**scope, "path": scope["path"].removeprefix(BASE)}
        if not scope["path"].startswith(f"{BASE}/"):
            raise HTTPException(404)
        found = sorted(_methods(self.routes, inside))
        if not found:
            raise HTTPException(404)
        return [*found, "OPTIONS"]

    def _committed(self, rows: Sequence[EventRow]) -> None:
        # First who may see what: whoever joins a channel misses nothing of it, whoever left gets no more.
        for workspace in {row.workspace for row in rows if row.type == MEMBER_UPDATED}:
            self.sockets.check_members(workspace)
        self.feed.publish(rows)


def _methods(routes: Iterable[BaseRoute], scope: Scope) -> set[str]:
    return {
        method
        for route in routes
        if isinstance(route, Route) and route.matches(scope)[0] is not Match.NONE
        for method in route.methods or ()
    }


def _options(allowed: Sequence[str]) -> Response:
    return Response(status_code=204, headers={"allow": ", ".join(allowed)})


class Socketed(BaseRoute):
    """One path that is served over sockets; to a plain request it says so."""

    def __init__(self, path: str, app: ASGIApp) -> None:
        self._path, self._app = path, app

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether this is the path."""
        root = scope.get("root_path", "")
        return (Match.FULL if scope["path"].removeprefix(root) == self._path else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve it."""
        await self._app(scope, receive, send)


def build(store: Store, options: HubOptions) -> App:
    """The hub over an open store."""
    return App(store, options)
