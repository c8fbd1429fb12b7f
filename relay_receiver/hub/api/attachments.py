"""`/attachments`: bytes in, bytes out."""

import time

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from relay_receiver.hub import attachments, channels
from relay_receiver.hub.answer import Json as Answer
from relay_receiver.hub.api.given import Json, actor_of, store_of
from relay_receiver.hub.attachments import Shelf
from relay_receiver.hub.body import query_text


async def upload(request: Request) -> Response:
    """Keep the bytes of the body; `name` and the content type say what they are."""
    store, actor = store_of(request), actor_of(request)
    channel, name = query_text(request, "channel"), query_text(request, "name", most=attachments.NAME_CHARS)
    if channel is not None:
        channels.need(actor, channel)
    made, size = await Shelf(store.path.parent).keep(request.stream())
    kept: Json = await store.write(
        attachments.record,
        actor,
        made=made,
        size=size,
        name=attachments.called(name),
        type_=attachments.media_type(request.headers.get("content-type")),
        at=time.time(),
    )
    return Answer(kept, 201)


async def download(request: Request) -> Response:
    """The bytes, never shown by a browser as a page of the hub."""
    store = store_of(request)
    shelf, wanted = Shelf(store.path.parent), request.path_params["id"]
    file = await store.read(attachments.find, actor_of(request), shelf, wanted)
    headers = {
        "cache-control": "private, max-age=31536000, immutable",
        "content-security-policy": "sandbox; default-src 'none'",
        "etag": f'"{wanted}"',
    }
    return FileResponse(file.path, media_type=file.type, filename=file.name, headers=headers)


routes = [
    Route("/attachments", upload, methods=["POST"]),
    Route("/attachments/{id}", download, methods=["GET"]),
]
