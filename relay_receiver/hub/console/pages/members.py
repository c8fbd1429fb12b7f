"""Who is in the channels, what they declare, and inviting others."""

import time
from typing import Any

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relay_receiver.hub import channels, declarations, enrolment, leases, members
from relay_receiver.hub.api.given import store_of
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.console.form import form
from relay_receiver.hub.console.render import render
from relay_receiver.hub.console.session import person
from relay_receiver.hub.options import is_own_name
from relay_receiver.hub.store import Store

Json = dict[str, Any]


async def page(request: Request) -> Response:
    """The members of each channel."""
    return await _page(request)


async def _page(request: Request, *, invited: Json | None = None) -> Response:
    store = store_of(request)
    found = await store.read(_seen, store, person(request))
    return render(request, "members.html", places=found, invited=invited)


def _seen(conn: Connection, store: Store, who: Actor) -> list[Json]:
    found = []
    for place in channels.list_channels(conn, who):
        running = leases.of_channel(conn, store, place["id"], person=True)
        said = declarations.of_channels(conn, store.live, frozenset({place["id"]}))
        declared = {each["agentId"]: each for each in said}
        here = [
            {**each, "status": declared.get(each["id"]), "receiver": running.get(each["id"])}
            for each in members.list_members(conn, place["id"])
        ]
        found.append({**place, "members": here})
    return found


async def invite(request: Request) -> Response:
    """Make a code and show it: it is on this page and nowhere else, so there is nothing to go on to."""
    given = await form(request)
    channel, wants_person = given.get("channel", ""), given.get("kind") == "person"
    made = await store_of(request).write(
        enrolment.invite, person(request), channel, person=wants_person, at=time.time()
    )
    told = {**made.to_json(), "channel": channel, "person": wants_person, "url": _address(request)}
    return await _page(request, invited=told)


def _address(request: Request) -> str:
    """Where others find this hub. A name that is this person's own is told to nobody."""
    url = request.base_url
    if is_own_name(url.hostname or ""):
        url = url.replace(hostname="localhost")
    return str(url).rstrip("/")


routes = [
    Route("/members", page, methods=["GET"]),
    Route("/members/invite", invite, methods=["POST"]),
]
