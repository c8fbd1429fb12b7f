"""One message, whole: its receipt in full, what answered it, and taking it back."""

import time
from dataclasses import dataclass

from sqlalchemy import Connection, select
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relay_receiver.hub import channels, members, message_views, messages
from relay_receiver.hub.api.given import store_of
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.console import timeline
from relay_receiver.hub.console.form import form
from relay_receiver.hub.console.go import go, local
from relay_receiver.hub.console.render import render
from relay_receiver.hub.console.session import person
from relay_receiver.hub.errors import not_found
from relay_receiver.hub.store import Store
from relay_receiver.hub.tables import message as table
from relay_receiver.jobs.text import clean_name

REPLIES = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """A message and the first replies to it."""

    channel: str
    channel_name: str
    message: timeline.Shown
    replies: list[timeline.Shown]
    names: tuple[str, ...]


async def page(request: Request) -> Response:
    """A message with its replies."""
    who, store = person(request), store_of(request)
    return render(request, "message.html", view=await store.read(_view, store, who, request.path_params["id"]))


def _view(conn: Connection, store: Store, who: Actor, wanted: str) -> View:
    row = message_views.row_of(conn, wanted)
    if row is None or row.channel not in who.channels:
        raise not_found("message")
    at = time.time()
    answering = (
        select(table.c.id)
        .where(table.c.reply_to == wanted, table.c.event > row.event)
        .order_by(table.c.event)
        .limit(REPLIES)
    )
    rows = [found for each in conn.execute(answering).scalars() if (found := message_views.row_of(conn, each))]
    [told], replies = message_views.views(conn, [row]), message_views.views(conn, rows)
    return View(
        channel=row.channel,
        channel_name=next(each["name"] for each in channels.list_channels(conn, who) if each["id"] == row.channel),
        message=timeline.shown(conn, store, who, [told], at=at, whole=True)[0],
        replies=timeline.shown(conn, store, who, replies, at=at),
        names=tuple(sorted({clean_name(each["name"]) for each in members.list_members(conn, row.channel)})),
    )


async def withdraw(request: Request) -> Response:
    """Take a message back, or ask its receiver to cancel it."""
    wanted, given = request.path_params["id"], await form(request)
    done = await store_of(request).write(messages.withdraw, person(request), wanted, at=time.time())
    back = local(given.get("back")) if given.filled("back") else f"/m/{wanted}"
    return go(back, said="withdrawn" if done else "cancelling")


routes = [
    Route("/m/{id}", page, methods=["GET"]),
    Route("/m/{id}/withdraw", withdraw, methods=["POST"]),
]
