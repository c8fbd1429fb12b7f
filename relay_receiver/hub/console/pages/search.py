"""Search in everything that this person may read."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relay_receiver.hub import search
from relay_receiver.hub.api.given import store_of
from relay_receiver.hub.body import query_integer, query_text
from relay_receiver.hub.console.render import render
from relay_receiver.hub.console.session import person

WORDS_CHARS = 500
"""Of what is typed, at the most; the rest is left out."""


async def page(request: Request) -> Response:
    """The form, and what was found."""
    query = request.query_params.get("q", "")[:WORDS_CHARS]
    channel = query_text(request, "channel") or None
    found = await search.look(
        store_of(request), person(request), query, channel, before=query_integer(request, "before")
    )
    return render(request, "search.html", query=query, channel=channel, **found)


routes = [Route("/search", page, methods=["GET"])]
