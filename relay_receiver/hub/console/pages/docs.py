"""Shared documents: reading, writing, and what becomes of two changes at once."""

import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relay_receiver.hub import docs
from relay_receiver.hub.api.docs import draft, wish
from relay_receiver.hub.api.given import store_of
from relay_receiver.hub.body import query_choice, query_integer, query_text
from relay_receiver.hub.console.form import Form, form
from relay_receiver.hub.console.go import go
from relay_receiver.hub.console.render import render
from relay_receiver.hub.console.session import person
from relay_receiver.hub.errors import Refusal

Json = dict[str, Any]

SAID = frozenset({409, 413, 422})
"""What is said on the page where it was typed, so that nothing typed is lost."""


async def page(request: Request) -> Response:
    """The documents of this person's channels, the last changed first."""
    archived = query_choice(request, "archived", ("false", "true"), default="false") == "true"
    channel = query_text(request, "channel")
    found = await store_of(request).read(
        docs.list_docs, person(request), channel, archived=archived, before=query_text(request, "before")
    )
    return render(request, "docs.html", **found, archived=archived, channel=channel)


async def new(request: Request) -> Response:
    """The form of a new document."""
    return _form(request, {"channel": query_text(request, "channel") or "", "title": "", "content": ""})


def _form(
    request: Request, typed: Json, *, status: int = 200, refused: Refusal | None = None, of: Json | None = None
) -> Response:
    """The form of a document with what was typed.

    Args:
        of: the document that is changed, as it is now.
    """
    return render(request, "doc_form.html", status=status, typed=typed, refused=refused, doc=of)


async def create(request: Request) -> Response:
    """Make a document."""
    given = await form(request)
    try:
        made = await store_of(request).write(docs.create, person(request), draft(_body(given)), at=time.time())
    except Refusal as refusal:
        if refusal.status not in SAID:
            raise
        return _form(request, _typed(given), status=refusal.status, refused=refusal)
    return go(f"/docs/{made['id']}", said="saved")


async def one(request: Request) -> Response:
    """One document, as it is or as it was."""
    rev = query_integer(request, "rev", least=1)
    found = await store_of(request).read(docs.get, person(request), request.path_params["id"], rev)
    return render(request, "doc.html", doc=found)


async def edit(request: Request) -> Response:
    """The form of a document."""
    found = await store_of(request).read(docs.get, person(request), request.path_params["id"])
    return _form(request, {**found}, of=found)


async def change(request: Request) -> Response:
    """Make the next revision; after somebody else's, both texts are shown and nothing is lost."""
    store, who, given = store_of(request), person(request), await form(request)
    wanted = request.path_params["id"]
    try:
        await store.write(docs.change, who, wanted, wish(_change(given)), at=time.time())
    except Refusal as refusal:
        if refusal.status not in SAID:
            raise
        found = await store.read(docs.get, who, wanted)
        return _form(request, _typed(given), status=refusal.status, refused=refusal, of=found)
    return go(f"/docs/{wanted}", said="saved")


async def history(request: Request) -> Response:
    """What a document was."""
    who, wanted = person(request), request.path_params["id"]
    found = await store_of(request).read(docs.get, who, wanted)
    listed = await store_of(request).read(docs.revisions, who, wanted, before=query_integer(request, "before", least=1))
    return render(request, "doc_history.html", doc=found, **listed)


def _body(given: Form) -> Json:
    return {
        "channel": given.get("channel"),
        "title": given.get("title"),
        "content": given.get("content"),
        "operationId": given.filled("operation"),
    }


def _change(given: Form) -> Json:
    body: Json = {name: given[name] for name in ("title", "content") if name in given}
    if "archived" in given:
        body["archived"] = given["archived"] == "true"
    rev = given.get("rev", "")
    return {**body, "rev": int(rev) if rev.isdecimal() and len(rev) < 10 else None}


def _typed(given: Form) -> Json:
    return {name: given.get(name, "") for name in ("channel", "title", "content")}


routes = [
    Route("/docs", page, methods=["GET"]),
    Route("/docs", create, methods=["POST"]),
    Route("/docs/new", new, methods=["GET"]),
    Route("/docs/{id}", one, methods=["GET"]),
    Route("/docs/{id}", change, methods=["POST"]),
    Route("/docs/{id}/edit", edit, methods=["GET"]),
    Route("/docs/{id}/history", history, methods=["GET"]),
]
