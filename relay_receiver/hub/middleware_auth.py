"""Who calls, and how often: the credential of each call, and the rate of what it does."""

from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from relay_receiver.hub.auth import Actor
from relay_receiver.hub.body import Json, read_json
from relay_receiver.hub.errors import unauthorized
from relay_receiver.hub.limits import Rates, address_of
from relay_receiver.hub.middleware_body import ATTACHMENTS, BASE

ENROL = f"{BASE}/enroll"
IDENTITY = f"{BASE}/agent-identity"
_OPEN = frozenset({ENROL, IDENTITY})
MESSAGES = f"{BASE}/messages"
_READS = frozenset({"GET", "HEAD", "OPTIONS"})

FindActor = Callable[[str], Actor | None]


class Doorkeeper:
    """Finds the actor by its bearer token, and counts what it does.

    Sets `request.state.actor`. Refuses with 401 a missing or wrong credential and with 429 too many calls.
    """

    def __init__(self, app: ASGIApp, find: FindActor, rates: Rates) -> None:
        self._app, self._find, self._rates = app, find, rates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let it through or raise a refusal."""
        path: str = scope["path"]
        method = scope.get("method", "GET")
        if not path.startswith(f"{BASE}/") or method == "OPTIONS":
            await self._app(scope, receive, send)
            return
        writes = method not in _READS and scope["type"] == "http"
        if path == ENROL:
            self._rates.enrolments.take(caller(scope))
            send = self._giving_back(caller(scope), send)
        elif path == IDENTITY:
            bearer(scope)
            if writes:
                self._rates.writes.take(caller(scope))
        else:
            actor = self._find(bearer(scope))
            if actor is None:
                raise unauthorized()
            scope.setdefault("state", {})["actor"] = actor
        document: Json = {}
        if writes and path != ATTACHMENTS:
            document = await read_json(Request(scope, receive))
        if writes and path not in _OPEN:
            result = path == MESSAGES and bool(document.get("run"))
            bucket = self._rates.runs if result or _of_a_run(path, method) else self._rates.writes
            bucket.take(scope["state"]["actor"].digest)
        await self._app(scope, receive, send)

    def _giving_back(self, caller: str, send: Send) -> Send:
        """A try counts unless it was the right code: whoever guesses is slowed down, whoever joins is not."""

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 300:
                self._rates.enrolments.give_back(caller)
            await send(message)

        return noting


def bearer(scope: Scope) -> str:
    """The token of a call.

    Raises:
        Refusal: 401, it carries none.
    """
    kind, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
    token = token.strip()
    if kind.lower() != "bearer" or not token or len(token) > 512:
        raise unauthorized()
    return token


def _of_a_run(path: str, method: str) -> bool:
    rest = path.removeprefix(BASE)
    return (
        rest.startswith("/receiver")
        or (method == "POST" and rest.startswith("/channels/") and rest.endswith("/me/ping"))
        or (method == "PATCH" and rest.startswith("/subscriptions/"))
    )


def caller(scope: Scope) -> str:
    """The address that a call comes from, as far as rates count it."""
    client = scope.get("client")
    return address_of(client[0] if client else None)
