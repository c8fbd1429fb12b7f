"""The first page: what needs this person, and the channels with what was said last."""

import time
from dataclasses import dataclass

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relay_receiver.hub import channels, members, message_views
from relay_receiver.hub.api.given import Json, name, store_of
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.console import needs, timeline
from relay_receiver.hub.console.form import form
from relay_receiver.hub.console.go import go
from relay_receiver.hub.console.render import render
from relay_receiver.hub.console.session import person
from relay_receiver.hub.errors import Refusal
from relay_receiver.hub.store import Store

FIRST = 5
"""Things that need the person that stand here; all of them are under Needs you."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """A channel in the list; `latest` is its last message as the API tells it."""

    id: str
    name: str
    people: int
    agents: int
    latest: Json | None

    @property
    def text(self) -> str:
        """What was said last, on one line."""
        return timeline.excerpt(self.latest["content"]) if self.latest else ""


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """What the page shows."""

    waits: needs.Needs
    cards: list[Card]


async def page(request: Request) -> Response:
    """What needs this person, and the channels with their latest message."""
    return await _shown(request)


async def _shown(request: Request, *, new: str = "", sentence: str | None = None, status: int = 200) -> Response:
    store = store_of(request)
    view = await store.read(_view, store, person(request))
    return render(request, "overview.html", status=status, view=view, first=FIRST, new=new, sentence=sentence)


def _view(conn: Connection, store: Store, who: Actor) -> View:
    cards = []
    for each in channels.list_channels(conn, who):
        kinds = [members.kind(row.role) for row in members.roster(conn, each["id"])]
        latest = message_views.latest(conn, each["id"], 1)
        cards.append(
            Card(
                id=each["id"],
                name=each["name"],
                people=len(kinds) - kinds.count(members.AGENT),
                agents=kinds.count(members.AGENT),
                latest=latest[0] if latest else None,
            )
        )
    return View(waits=needs.of(conn, store, who), cards=cards)


async def create(request: Request) -> Response:
    """Make a channel with the person in it."""
    given = await form(request)
    try:
        made = await store_of(request).write(channels.create, person(request), name(given), at=time.time())
    except Refusal as refusal:
        if refusal.status not in {409, 422}:
            raise
        return await _shown(request, new=given.get("name", ""), sentence=refusal.sentence, status=refusal.status)
    return go(f"/channels/{made['id']}")


routes = [
    Route("/", page, methods=["GET"]),
    Route("/channels", create, methods=["POST"]),
]
