"""The first page: what needs this person, and the channels."""

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relay_receiver.hub import channels, members, message_views
from relay_receiver.hub.api.given import Json, store_of
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.console.render import render
from relay_receiver.hub.console.session import person


async def page(request: Request) -> Response:
    """What needs this person, and the channels with their latest message."""
    found = await store_of(request).read(_channels, person(request))
    return render(request, "overview.html", cards=found)


def _channels(conn: Connection, who: Actor) -> list[Json]:
    found = channels.list_channels(conn, who)
    for each in found:
        latest = message_views.latest(conn, each["id"], 1)
        each["latest"] = latest[0] if latest else None
        each["members"] = members.list_members(conn, each["id"])
    return found


routes = [Route("/", page, methods=["GET"])]
