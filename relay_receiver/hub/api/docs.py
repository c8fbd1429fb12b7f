"""`/docs`: shared documents, their revisions, and changes to what was read."""

import time
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relay_receiver.hub import docs
from relay_receiver.hub.answer import Json as Answer
from relay_receiver.hub.api.given import actor_of, member_of, store_of, title
from relay_receiver.hub.body import (
    flag,
    integer,
    optional_text,
    query_choice,
    query_integer,
    query_text,
    read_json,
    text,
)

PAGE_MOST = 500


async def create(request: Request) -> Response:
    """Make a document."""
    actor = member_of(request)
    made = await store_of(request).write(docs.create, actor, draft(await read_json(request)), at=time.time())
    return Answer(made, 201)


def draft(body: Mapping[str, Any]) -> docs.Draft:
    """The document that a body describes.

    Raises:
        Refusal: 413, 422.
    """
    return docs.Draft(
        channel=text(body, "channel"),
        title=title(body),
        content=text(body, "content", least=0, most_bytes=docs.CONTENT_BYTES),
        operation=optional_text(body, "operationId", least=1),
    )


def wish(body: Mapping[str, Any]) -> docs.Change:
    """The change that a body describes.

    Raises:
        Refusal: 413, 422.
    """
    given = {name for name in ("title", "content", "archived") if body.get(name) is not None}
    return docs.Change(
        rev=integer(body, "rev", least=1),
        title=title(body) if "title" in given else None,
        content=text(body, "content", least=0, most_bytes=docs.CONTENT_BYTES) if "content" in given else None,
        archived=flag(body, "archived") if "archived" in given else None,
    )


async def change(request: Request) -> Response:
    """Make the next revision."""
    actor, wanted = member_of(request), request.path_params["id"]
    body = await read_json(request)
    return Answer(await store_of(request).write(docs.change, actor, wanted, wish(body), at=time.time()))


async def get(request: Request) -> Response:
    """One document, as it is or as it was."""
    actor, wanted, rev = actor_of(request), request.path_params["id"], query_integer(request, "rev", least=1)
    return Answer(await store_of(request).read(docs.get, actor, wanted, rev))


async def list_docs(request: Request) -> Response:
    """Documents of the caller's channels, without their content."""
    listed = await store_of(request).read(
        docs.list_docs,
        actor_of(request),
        query_text(request, "channel"),
        archived=query_choice(request, "archived", ("false", "true"), default="false") == "true",
        before=query_text(request, "before"),
        limit=query_integer(request, "limit", least=1, most=PAGE_MOST) or docs.PAGE,
    )
    return Answer(listed)


async def revisions(request: Request) -> Response:
    """What a document was, the newest first."""
    listed = await store_of(request).read(
        docs.revisions,
        actor_of(request),
        request.path_params["id"],
        before=query_integer(request, "before", least=1),
        limit=query_integer(request, "limit", least=1, most=PAGE_MOST) or docs.PAGE,
    )
    return Answer(listed)


routes = [
    Route("/docs", create, methods=["POST"]),
    Route("/docs", list_docs, methods=["GET"]),
    Route("/docs/{id}", get, methods=["GET"]),
    Route("/docs/{id}", change, methods=["PATCH"]),
    Route("/docs/{id}/revisions", revisions, methods=["GET"]),
]
