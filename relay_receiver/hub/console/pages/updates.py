"""What the pages' script waits for: that something changed, and where. What it became, it asks for as a page."""

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relay_receiver.hub.answer import Json as Answer
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.console.session import COOKIE, Session, person

if TYPE_CHECKING:
    from relay_receiver.hub.updates import Updates


async def get(request: Request) -> Response:
    """Hold the request until something happens: `{cursor, events: [{id, type, channel}]}`.

    The events carry no content: a browser that stops reading holds next to nothing here.
    """
    updates: Updates = request.app.state.updates
    sessions, cookie = request.app.state.console.sessions, request.cookies.get(COOKIE)

    def again() -> Actor | None:
        found: Session | None = sessions.find(cookie)
        return found.person if found is not None else None

    events, cursor = await updates.hold(request, person(request), again)
    said = [{"id": each.number, "type": each.type, "channel": each.channel} for each in events]
    return Answer({"cursor": cursor, "events": said})


routes = [Route("/updates", get, methods=["GET"])]
