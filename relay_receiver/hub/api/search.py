"""`GET /search`: what the caller may read and has the words typed, the newest first."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relay_receiver.hub import search
from relay_receiver.hub.answer import Json as Answer
from relay_receiver.hub.api.given import actor_of, store_of
from relay_receiver.hub.body import query_integer, query_text
from relay_receiver.hub.errors import invalid

QUERY_CHARS = 512
LIMIT_MOST = 100


async def find(request: Request) -> Response:
    """One page of what is found."""
    typed = query_text(request, "q", most=QUERY_CHARS)
    if typed is None:
        raise invalid("q", "`q` is missing: the words to look for.")
    found = await search.look(
        store_of(request),
        actor_of(request),
        typed,
        query_text(request, "channel"),
        before=query_integer(request, "before", least=1),
        limit=query_integer(request, "limit", least=1, most=LIMIT_MOST) or search.PAGE,
    )
    return Answer(found)


routes = [Route("/search", find, methods=["GET"])]
