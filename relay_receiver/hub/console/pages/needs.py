"""Needs you: everything that waits for this person, decided there."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relay_receiver.hub.api.given import store_of
from relay_receiver.hub.console import needs
from relay_receiver.hub.console.pages.requests import shown
from relay_receiver.hub.console.render import render
from relay_receiver.hub.console.session import person


async def page(request: Request) -> Response:
    """Requests to answer, jobs to settle, chains to resume."""
    store = store_of(request)
    found = await store.read(needs.of, store, person(request))
    return render(
        request,
        "needs.html",
        asked=[shown(each, person(request)) for each in found.requests],
        receivers=found.receivers,
        decided=found.decided,
    )


routes = [Route("/needs", page, methods=["GET"])]
