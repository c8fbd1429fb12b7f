"""The pages of the console, one file each. A page is a handler of a route that answers with `render`.

Whoever is signed in is `session.person(request)`; a write has its form, already checked, from `await form(request)`,
does what it does through the same store functions as the API, and answers with `go`.
"""

from starlette.routing import Route

from relay_receiver.hub.console import assets
from relay_receiver.hub.console.pages import (
    attachment,
    channel,
    docs,
    members,
    message,
    needs,
    overview,
    posting,
    receivers,
    requests,
    search,
    sign_in,
    tasks,
    updates,
)

PUBLIC = frozenset({"/sign-in", "/static/{name}", "/favicon.ico"})
"""Routes for which nobody is signed in."""

routes: list[Route] = [
    Route("/static/{name}", assets.serve, methods=["GET"]),
    *sign_in.routes,
    *overview.routes,
    *channel.routes,
    *posting.routes,
    *message.routes,
    *attachment.routes,
    *needs.routes,
    *updates.routes,
    *requests.routes,
    *receivers.routes,
    *members.routes,
    *docs.routes,
    *tasks.routes,
    *search.routes,
]
