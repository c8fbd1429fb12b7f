"""A channel: its messages with their receipts, a page at a time, and writing to it."""

import re
import time
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relay_receiver.hub import channels, members, message_views
from relay_receiver.hub.api.given import Json, store_of
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.body import query_integer, query_text
from relay_receiver.hub.console import timeline
from relay_receiver.hub.console.compose import Draft, blank
from relay_receiver.hub.console.render import fragment, render
from relay_receiver.hub.console.session import person
from relay_receiver.hub.errors import invalid
from relay_receiver.hub.store import Store
from relay_receiver.jobs.text import clean_name
from relay_receiver.wire.limits import STATE_MESSAGES

RECEIPTS = 100
"""Receipts that are asked for at once, at the most."""
_POSTED = re.compile(r"/channels/[^/]+/(?:messages|wakes)")


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """A page of a channel. `older` and `newer` are event numbers before and after which more is, or None."""

    id: str
    name: str
    messages: list[timeline.Shown]
    older: int | None
    newer: int | None
    last: int
    """Event number of the newest message shown."""
    members: list[Json]
    replying: timeline.Reply | None

    @property
    def names(self) -> tuple[str, ...]:
        """Of the members: whoever is mentioned is marked."""
        return _names(self.members)


def _names(listed: list[Json]) -> tuple[str, ...]:
    return tuple(sorted({clean_name(each["name"]) for each in listed}))


def takes_files(path: str) -> bool:
    """Whether a form sent to this path may carry attachments."""
    return _POSTED.fullmatch(path) is not None


async def page(request: Request) -> Response:
    """A page of a channel's messages, the newest unless others are asked for, and the form for another."""
    return await shown(request)


async def shown(
    request: Request,
    draft: Draft | None = None,
    *,
    sentence: str | None = None,
    woken: list[Json] | None = None,
    status: int = 200,
) -> Response:
    """The page, with a message that was begun already.

    Args:
        sentence: why it was not taken.
        woken: whom it would wake.
    """
    who, store = person(request), store_of(request)
    channel = channels.need(who, request.path_params["id"])
    if draft is None:
        draft = blank(to=query_text(request, "to"), reply=query_text(request, "reply"))
    before, after = query_integer(request, "before"), query_integer(request, "after")
    view = await store.read(_view, store, who, channel, before=before, after=after, reply=draft.reply)
    return render(request, "channel.html", status=status, view=view, draft=draft, sentence=sentence, woken=woken)


def _view(
    conn: Connection,
    store: Store,
    who: Actor,
    channel: str,
    *,
    before: int | None,
    after: int | None,
    reply: str | None,
) -> View:
    found = message_views.history(conn, who.workspace, channel, after=after, before=before, limit=STATE_MESSAGES)
    page = found["messages"]
    older = newer = None
    if page:
        older = page[0]["event"] if after is not None or found["more"] else None
        newer = page[-1]["event"] if before is not None or (after is not None and found["more"]) else None
    name = next(each["name"] for each in channels.list_channels(conn, who) if each["id"] == channel)
    return View(
        id=channel,
        name=clean_name(name),
        messages=timeline.shown(conn, store, who, page, at=time.time()),
        older=older,
        newer=newer,
        last=page[-1]["event"] if page else 0,
        members=members.list_members(conn, channel),
        replying=timeline.reply_to(conn, who, reply) if reply else None,
    )


async def newer(request: Request) -> Response:
    """The messages after one, as they go below those that are shown."""
    who, store = person(request), store_of(request)
    channel = channels.need(who, request.path_params["id"])
    found = await store.read(_newer, store, who, channel, after=query_integer(request, "after") or 0)
    return fragment(request, "_messages.html", **found)


def _newer(conn: Connection, store: Store, who: Actor, channel: str, *, after: int) -> dict[str, Any]:
    found = message_views.history(conn, who.workspace, channel, after=after, before=None, limit=STATE_MESSAGES)
    last = message_views.history(conn, who.workspace, channel, after=None, before=after + 1, limit=1)["messages"]
    before = last[0] if last else None
    made = timeline.shown(conn, store, who, found["messages"], at=time.time(), before=before)
    return {"messages": made, "names": _names(members.list_members(conn, channel)), "channel": channel}


async def receipts(request: Request) -> Response:
    """How far some requests have come."""
    who, store = person(request), store_of(request)
    channel = channels.need(who, request.path_params["id"])
    ids = (query_text(request, "ids", most=RECEIPTS * 64) or "").split(",")
    if len(ids) > RECEIPTS:
        raise invalid("ids", f"`ids` must have at most {RECEIPTS} entries.")
    found = await store.read(_receipts, store, who, channel, ids)
    return fragment(request, "_receipts.html", messages=found)


def _receipts(conn: Connection, store: Store, who: Actor, channel: str, ids: list[str]) -> list[timeline.Shown]:
    rows = [row for each in ids if (row := message_views.row_of(conn, each)) is not None and row.channel == channel]
    return timeline.shown(conn, store, who, message_views.views(conn, rows), at=time.time())


routes = [
    Route("/channels/{id}", page, methods=["GET"]),
    Route("/channels/{id}/messages", newer, methods=["GET"]),
    Route("/channels/{id}/receipts", receipts, methods=["GET"]),
]
