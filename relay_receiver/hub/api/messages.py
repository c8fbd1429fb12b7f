"""`/messages`: posting, history, one message with its delivery, withdrawal."""

import re
import time
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relay_receiver.hub import channels, delivery, message_views, messages, runs, wakes
from relay_receiver.hub.answer import Json as Answer
from relay_receiver.hub.api.given import Json, actor_of, fence, moment, store_of
from relay_receiver.hub.attachments import MOST
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.body import (
    choice,
    flag,
    mapping,
    optional_text,
    query_integer,
    query_text,
    read_json,
    text,
    texts,
)
from relay_receiver.hub.errors import invalid, not_found
from relay_receiver.hub.store import Store
from relay_receiver.hub.tables import KINDS
from relay_receiver.wire import limits

REASON_CHARS = 4096

_SHA256 = re.compile(r"[0-9a-f]{64}")


async def post(request: Request) -> Response:
    """Store a message; `wakes` says whom it wakes and how their receivers are. With `dryRun` that alone is told."""
    store, actor = store_of(request), actor_of(request)
    body = await read_json(request)
    if flag(body, "dryRun"):
        unnamed = draft({"operationId": "dry-run", **body})
        return Answer({"wakes": await store.read(wakes.of, store, actor, unnamed)})
    stored = await store.write(messages.post, actor, draft(body), at=time.time())
    return Answer({**stored, "wakes": wakes.after(store, stored)})


def draft(body: Mapping[str, Any]) -> messages.Draft:
    """The message that a body describes.

    Raises:
        Refusal: 413, 422.
    """
    channel, run, notice = text(body, "channel"), mapping(body, "run"), mapping(body, "notice")
    return messages.Draft(
        channel=channel,
        content=text(body, "content", least=0, most_bytes=limits.CONTENT_BYTES),
        kind=choice(body, "kind", KINDS, default="message"),
        operation=text(body, "operationId"),
        to=optional_text(body, "to", least=1),
        mentions=tuple(texts(body, "mentions") or ()),
        reply_to=optional_text(body, "replyTo", least=1),
        outcome=optional_text(body, "outcome", most=64),
        attachments=_attachments(body),
        expires_at=moment(body, "expiresAt"),
        run=None
        if run is None
        else runs.Ref(scope=channel, holder=text(run, "holderId"), request=text(run, "requestId"), fence=fence(run)),
        notice=None if notice is None else text(notice, "requestId"),
        reason=optional_text(body, "reason", most=REASON_CHARS),
    )


def _attachments(body: Mapping[str, Any]) -> tuple[Json, ...]:
    given = body.get("attachments") or []
    if not isinstance(given, list) or len(given) > MOST:
        raise invalid("attachments", f"`attachments` must be a list of at most {MOST} entries.")
    found = [each if isinstance(each, dict) else {"id": each} for each in given]
    for each in found:
        if not isinstance(each.get("id"), str) or not _SHA256.fullmatch(each["id"]):
            raise invalid("attachments", "Each of `attachments` needs the `id` that its upload gave.")
        optional_text(each, "name")
    return tuple(found)


async def history(request: Request) -> Response:
    """A page of a channel's messages."""
    actor = actor_of(request)
    channel = query_text(request, "channel")
    if channel is None and len(actor.channels) == 1:
        (channel,) = actor.channels
    if channel is None:
        raise invalid("channel", "`channel` is missing.")
    page = await store_of(request).read(
        message_views.history,
        actor.workspace,
        channels.need(actor, channel),
        after=query_integer(request, "after"),
        before=query_integer(request, "before"),
        limit=query_integer(request, "limit", least=1, most=limits.PAGE_MESSAGES) or limits.STATE_MESSAGES,
    )
    return Answer(page)


async def get(request: Request) -> Response:
    """One message, and how far a request has come."""
    store = store_of(request)
    return Answer(await store.read(_one, store, actor_of(request), request.path_params["id"]))


def _one(conn: Connection, store: Store, actor: Actor, wanted: str) -> Json:
    row = message_views.row_of(conn, wanted)
    if row is None or row.channel not in actor.channels:
        raise not_found("message")
    told = message_views.views(conn, [row])[0]
    return {**told, "delivery": delivery.of(conn, store, wanted, at=time.time())}


async def withdraw(request: Request) -> Response:
    """Take a message back: at once, or 202 where its receiver is asked to cancel it."""
    store, actor, wanted = store_of(request), actor_of(request), request.path_params["id"]
    done = await store.write(messages.withdraw, actor, wanted, at=time.time())
    return Answer({**await store.read(_one, store, actor, wanted), "withdrawn": done}, 200 if done else 202)


routes = [
    Route("/messages", post, methods=["POST"]),
    Route("/messages", history, methods=["GET"]),
    Route("/messages/{id}", get, methods=["GET"]),
    Route("/messages/{id}/withdraw", withdraw, methods=["POST"]),
]
