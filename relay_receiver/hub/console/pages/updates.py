"""What the pages' script waits for: that something changed, and where. What it became, it asks for as a page."""

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relay_receiver.hub.answer import Json as Answer
from relay_receiver.hub.api.given import store_of
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.console import needs
from relay_receiver.hub.console.session import COOKIE, Session, person
from relay_receiver.jobs.text import clean_name

if TYPE_CHECKING:
    from relay_receiver.hub.updates import Updates

THINGS = 50
"""Things that need a person that are told at once, at the most."""
TITLE_CHARS = 120


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


async def summary(request: Request) -> Response:
    """How much needs this person, and what: `{count, things: [{id, title, href}]}`, for the title and notices.

    The newest requests come first: of many things only some are told.
    """
    store, who = store_of(request), person(request)
    found = await store.read(needs.of, store, who)
    asked = [
        {"id": each["id"], "title": clean_name(each["title"], most=TITLE_CHARS), "href": f"/requests/{each['id']}"}
        for each in reversed(found.requests)
    ]
    waiting = [
        {"id": f"{each.channel}.{each.agent}", "title": f"{clean_name(each.name)} waits for a person", "href": "/needs"}
        for each in found.receivers
    ]
    return Answer({"count": found.count, "things": [*waiting, *asked][:THINGS]})


routes = [
    Route("/updates", get, methods=["GET"]),
    Route("/needs/summary", summary, methods=["GET"]),
]
