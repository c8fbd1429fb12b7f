"""Attachments, to be saved: none is ever shown as a page of the hub."""

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from relay_receiver.hub import attachments
from relay_receiver.hub.api.given import store_of
from relay_receiver.hub.attachments import Shelf
from relay_receiver.hub.console.session import person

HEADERS = {
    "content-security-policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    "cache-control": "private, no-store",
}


async def download(request: Request) -> Response:
    """The bytes of an attachment that the reader may see, as a file of no particular type."""
    store = store_of(request)
    file = await store.read(attachments.find, person(request), Shelf(store.path.parent), request.path_params["id"])
    name = attachments.called(file.name).replace("/", "_").replace("\\", "_")
    disposition = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    return FileResponse(
        file.path, media_type=attachments.ANY_TYPE, headers={**HEADERS, "content-disposition": disposition}
    )


routes = [Route("/attachments/{id}", download, methods=["GET"])]
