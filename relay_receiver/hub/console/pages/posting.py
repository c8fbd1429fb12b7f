"""Writing to a channel: sending what was written, and seeing first whom it would wake."""

import time
from dataclasses import replace

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relay_receiver.hub import channels, wakes
from relay_receiver.hub.api.given import Json, store_of
from relay_receiver.hub.attachments import MOST
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.console import compose
from relay_receiver.hub.console.compose import Draft
from relay_receiver.hub.console.form import form
from relay_receiver.hub.console.go import go
from relay_receiver.hub.console.pages import channel as page
from relay_receiver.hub.console.session import person
from relay_receiver.hub.errors import Refusal, invalid
from relay_receiver.hub.store import Store


async def post(request: Request) -> Response:
    """Send a message; what is not taken is shown again with the reason, its files kept."""
    who, store, given = person(request), store_of(request), await form(request)
    channel = channels.need(who, request.path_params["id"])
    draft = compose.lenient(given)
    try:
        draft = await _whole(request, draft)
        sent = replace(compose.read(given), attached=draft.attached)
        stored = await store.write(compose.post, who, channel, sent, at=time.time())
    except Refusal as refusal:
        return await _again(request, draft, refusal)
    return go(f"/channels/{channel}#m-{stored['id']}", said="sent")


async def woken(request: Request) -> Response:
    """Whom a message would wake, with the form as it was."""
    who, store, given = person(request), store_of(request), await form(request)
    channel = channels.need(who, request.path_params["id"])
    draft = compose.lenient(given)
    try:
        draft = await _whole(request, draft)
        sent = replace(compose.read(given), attached=draft.attached)
        found = await store.read(_woken, store, who, channel, sent)
    except Refusal as refusal:
        return await _again(request, draft, refusal)
    return await page.shown(request, draft, woken=found)


async def _again(request: Request, draft: Draft, refusal: Refusal) -> Response:
    """The form as it was, with why it was not taken; what the page cannot help goes on as an error."""
    if refusal.status >= 500 or refusal.status in {401, 429}:
        raise refusal
    return await page.shown(request, draft, sentence=refusal.sentence, status=refusal.status)


def _woken(conn: Connection, store: Store, who: Actor, channel: str, draft: Draft) -> list[Json]:
    return wakes.of(conn, store, who, compose.message(conn, channel, draft, at=time.time()))


async def _whole(request: Request, draft: Draft) -> Draft:
    """The draft with the files that came with it, which are at the hub from now on."""
    given = await form(request)
    kept = await compose.keep(store_of(request), person(request), given.files.get("files", []))
    if len(kept) + len(draft.attached) > MOST:
        raise invalid("files", f"A message has at most {MOST} attachments.")
    return replace(draft, attached=(*draft.attached, *kept))


routes = [
    Route("/channels/{id}/messages", post, methods=["POST"]),
    Route("/channels/{id}/wakes", woken, methods=["POST"]),
]
