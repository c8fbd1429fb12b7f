"""Who calls, and how often: the credential of each call, and the rate of what it does."""

from collections.abc import Callable
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from relay_receiver.hub.auth import Actor
from relay_receiver.hub.body import parse
from relay_receiver.hub.errors import unauthorized
from relay_receiver.hub.limits import Rates, address_of

BASE = "/api/v1"
ENROL = f"{BASE}/enroll"
IDENTITY = f"{BASE}/agent-identity"
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
        elif path == ENROL:
            await self._enrolment(scope, receive, send)
        elif path == IDENTITY:
            if method not in _READS:
                self._rates.writes.take(_caller(scope))
            await self._app(scope, receive, send)
        else:
            actor = self._find(bearer(scope))
            if actor is None:
                raise unauthorized()
            scope.setdefault("state", {})["actor"] = actor
            if method not in _READS:
                receive = await self._count(actor, path, method, Request(scope, receive))
            await self._app(scope, receive, send)

    async def _enrolment(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A try counts unless it was the right code: whoever guesses is slowed down, whoever joins is not."""
        caller = _caller(scope)
        self._rates.enrolments.take(caller)

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 300:
                self._rates.enrolments.give_back(caller)
            await send(message)

        await self._app(scope, receive, noting)

    async def _count(self, actor: Actor, path: str, method: str, request: Request) -> Receive:
        """Count a write in its bucket; returns the `receive` to go on with."""
        if _of_a_run(path, method):
            self._rates.runs.take(actor.digest)
            return request.receive
        if path != MESSAGES or method != "POST":
            self._rates.writes.take(actor.digest)
            return request.receive
        body = await request.body()
        result = b'"run"' in body and bool(parse(body).get("run"))
        (self._rates.runs if result else self._rates.writes).take(actor.digest)
        return _again(body, request.receive)


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


def _caller(scope: Scope) -> str:
    client = scope.get("client")
    return address_of(client[0] if client else None)


def _again(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives a body that was read already, then what else comes."""
    given = False

    async def replay() -> Any:  # noqa: ANN401 - ASGI's message
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
