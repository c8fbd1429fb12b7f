"""The receivers: how each is, and deciding about them."""

import time
from typing import Any

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relay_receiver.hub import controls
from relay_receiver.hub.api.controls import wish
from relay_receiver.hub.api.given import store_of
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.console import needs, reported
from relay_receiver.hub.console.form import Form, form, operation
from relay_receiver.hub.console.go import go, local
from relay_receiver.hub.console.render import render
from relay_receiver.hub.console.reported import Receiver
from relay_receiver.hub.console.session import person
from relay_receiver.hub.errors import Refusal
from relay_receiver.hub.store import Store

RECENT = 20
"""Decisions that are listed."""

Json = dict[str, Any]


async def page(request: Request) -> Response:
    """All receivers of this person's channels, and the latest decisions about them."""
    return await _page(request)


async def _page(request: Request, *, status: int = 200, refused: Refusal | None = None) -> Response:
    store = store_of(request)
    found, recent, waiting = await store.read(_seen, store, person(request))
    return render(
        request, "receivers.html", status=status, refused=refused, receivers=found, recent=recent, decided=waiting
    )


def _seen(
    conn: Connection, store: Store, who: Actor
) -> tuple[list[Receiver], list[Json], dict[tuple[str, str], list[Json]]]:
    recent = controls.list_controls(conn, who, limit=RECENT)
    return reported.receivers(conn, store, who), recent, needs.decided(conn, who)


async def decide(request: Request) -> Response:
    """Settle, resume or cancel; the receiver is told, and says what became of it."""
    store, given = store_of(request), await form(request)
    try:
        await store.write(controls.create, person(request), wish(_body(request, given)), at=time.time())
    except Refusal as refusal:
        if refusal.status not in {409, 422}:
            raise
        return await _page(request, status=refusal.status, refused=refusal)
    following = local(given.get("following"))
    return go("/receivers" if following == "/" else following, said="decided")


def _body(request: Request, given: Form) -> Json:
    """The decision as the API takes it."""
    arguments: Json = {name: given.filled(name) for name in ("job", "verb", "text", "reason", "pause")}
    attempt = given.filled("attempt")
    if attempt is not None and attempt.isdecimal() and len(attempt) < 10:
        arguments["attempt"] = int(attempt)
    if arguments["verb"] != "accept":
        arguments["text"] = None
    return {
        "channel": request.path_params["channel"],
        "agent": request.path_params["agent"],
        "action": given.get("action"),
        "arguments": {name: value for name, value in arguments.items() if value is not None},
        "operationId": given.filled("operation") or operation(),
    }


routes = [
    Route("/receivers", page, methods=["GET"]),
    Route("/receivers/{channel}/{agent}", decide, methods=["POST"]),
]
