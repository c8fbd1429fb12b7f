"""One request to people, and answering it."""

import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relay_receiver.hub import asks
from relay_receiver.hub.api.given import store_of
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.console import answering
from relay_receiver.hub.console.form import Form, form
from relay_receiver.hub.console.go import go, local
from relay_receiver.hub.console.render import render
from relay_receiver.hub.console.session import person
from relay_receiver.hub.console.shown import parts
from relay_receiver.hub.errors import Refusal

Json = dict[str, Any]


def shown(request: Json, who: Actor, given: Form | None = None) -> Json:
    """A request with what its page needs beside: the parts of its action, its fields, and whether `who` may answer.

    Args:
        given: the answer that did not fit, to be mended.
    """
    return {
        **request,
        "parts": parts(request["action"]),
        "fields": answering.fields(request, given) if request["kind"] == "form" else [],
        "given": given,
        "may": request["state"] == "open" and asks.may_answer(who, request),
    }


async def page(request: Request) -> Response:
    """One request in full."""
    return await _page(request)


async def _page(
    request: Request, *, status: int = 200, refused: Refusal | None = None, given: Form | None = None
) -> Response:
    found = await store_of(request).read(asks.get, person(request), request.path_params["id"])
    seen = shown(found, person(request), given)
    return render(request, "request.html", status=status, asked=seen, refused=refused, following="")


async def respond(request: Request) -> Response:
    """Answer it. What does not fit, or comes too late, is said on its page, and changes nothing."""
    store, who, given = store_of(request), person(request), await form(request)
    wanted = request.path_params["id"]
    found = await store.read(asks.get, who, wanted)
    try:
        said = answering.answer(found, given)
        await store.write(asks.respond, who, wanted, said, given.filled("actionHash"), at=time.time())
    except Refusal as refusal:
        if refusal.status not in {403, 409, 422}:
            raise
        return await _page(request, status=refusal.status, refused=refusal, given=given)
    following = local(given.get("following"))
    return go(f"/requests/{wanted}" if following == "/" else following, said="answered")


routes = [
    Route("/requests/{id}", page, methods=["GET"]),
    Route("/requests/{id}/respond", respond, methods=["POST"]),
]
