"""The task lists of the channels."""

import time
from typing import Any

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relay_receiver.hub import channels, members, tasks
from relay_receiver.hub.api.given import store_of
from relay_receiver.hub.api.tasks import draft, wish
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.body import query_choice, query_text
from relay_receiver.hub.console.form import Form, form
from relay_receiver.hub.console.go import go, local
from relay_receiver.hub.console.pages.docs import SAID
from relay_receiver.hub.console.render import render
from relay_receiver.hub.console.session import person
from relay_receiver.hub.errors import Refusal
from relay_receiver.hub.tables_people import TASK_STATES

Json = dict[str, Any]


async def page(request: Request) -> Response:
    """What is to be done in this person's channels, and adding to it."""
    return await _page(request)


async def _page(
    request: Request, *, status: int = 200, refused: Refusal | None = None, typed: Json | None = None
) -> Response:
    channel = query_text(request, "channel")
    state = query_choice(request, "state", tasks.LISTS, default="active")
    store, who = store_of(request), person(request)
    found = await store.read(tasks.list_tasks, who, channel, state=state, before=query_text(request, "before"))
    typed = typed or {"channel": channel or "", "title": ""}
    return render(
        request,
        "tasks.html",
        status=status,
        **found,
        state=state,
        channel=channel,
        states=TASK_STATES,
        refused=refused,
        typed=typed,
    )


async def create(request: Request) -> Response:
    """Add a task."""
    given = await form(request)
    body = {
        "channel": given.get("channel"),
        "title": given.get("title"),
        "operationId": given.filled("operation"),
    }
    try:
        await store_of(request).write(tasks.create, person(request), draft(body), at=time.time())
    except Refusal as refusal:
        if refusal.status not in SAID:
            raise
        typed = {name: given.get(name, "") for name in ("channel", "title")}
        return await _page(request, status=refusal.status, refused=refusal, typed=typed)
    return go("/tasks", said="saved", channel=given.filled("filter"))


async def one(request: Request) -> Response:
    """One task, and the form that changes it."""
    return await _one(request)


async def _one(
    request: Request, *, status: int = 200, refused: Refusal | None = None, given: Form | None = None
) -> Response:
    found, roster = await store_of(request).read(_task, person(request), request.path_params["id"])
    typed = {
        "title": found["title"],
        "description": found["description"],
        "state": found["state"],
        "assignee": (found["assignee"] or {}).get("id", ""),
    }
    if given is not None:
        typed = {name: given.get(name, "") for name in typed}
    return render(
        request, "task.html", status=status, task=found, roster=roster, typed=typed, states=TASK_STATES, refused=refused
    )


def _task(conn: Connection, who: Actor, wanted: str) -> tuple[Json, list[Json]]:
    found = tasks.get(conn, who, wanted)
    return found, members.list_members(conn, channels.need(who, found["channel"]))


async def change(request: Request) -> Response:
    """Change a task; after somebody else's change it is shown as it is now, with what was typed."""
    given, wanted = await form(request), request.path_params["id"]
    rev = given.get("rev", "")
    body: Json = {name: given[name] for name in ("title", "description", "state") if name in given}
    if "assignee" in given:
        body["assignee"] = given.filled("assignee")
    body["rev"] = int(rev) if rev.isdecimal() and len(rev) < 10 else None
    try:
        await store_of(request).write(tasks.change, person(request), wanted, wish(body), at=time.time())
    except Refusal as refusal:
        if refusal.status not in SAID:
            raise
        return await _one(request, status=refusal.status, refused=refusal, given=given)
    following = local(given.get("following"))
    return go(f"/tasks/{wanted}" if following == "/" else following, said="saved")


routes = [
    Route("/tasks", page, methods=["GET"]),
    Route("/tasks", create, methods=["POST"]),
    Route("/tasks/{id}", one, methods=["GET"]),
    Route("/tasks/{id}", change, methods=["POST"]),
]
