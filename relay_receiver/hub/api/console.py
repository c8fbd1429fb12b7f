"""`/console-links`: a link that signs a person in to the console, once."""

import time

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relay_receiver.hub.answer import Json as Answer
from relay_receiver.hub.api.given import member_of, store_of
from relay_receiver.hub.console import login
from relay_receiver.wire.message import iso


async def make(request: Request) -> Response:
    """Make a link for the caller, a person: `{path, url, expiresAt}`, `url` under the name that the caller used."""
    actor = member_of(request)
    made = await store_of(request).write(login.make_link, actor, at=time.time())
    path = f"/sign-in?code={made.code}"
    url = f"{request.url.scheme}://{request.headers['host']}{path}"
    return Answer({"path": path, "url": url, "expiresAt": iso(made.expires_at)}, 201)


routes = [Route("/console-links", make, methods=["POST"])]
