"""`/tasks`: the task lists of channels."""

import time
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relay_receiver.hub import tasks
from relay_receiver.hub.answer import Json as Answer
from relay_receiver.hub.api.docs import PAGE_MOST
from relay_receiver.hub.api.given import actor_of, member_of, store_of, title
from relay_receiver.hub.body import (
    choice,
    integer,
    optional_text,
    query_choice,
    query_integer,
    query_text,
    read_json,
    text,
)
from relay_receiver.hub.docs import PAGE
from relay_receiver.hub.tables_people import TASK_STATES
from relay_receiver.wire.limits import CONTENT_BYTES

REFERENCES = ("assignee", "message", "doc")


async def create(request: Request) -> Response:
    """Make a task."""
    actor = member_of(request)
    made = await store_of(request).write(tasks.create, actor, draft(await read_json(request)), at=time.time())
    return Answer(made, 201)


def draft(body: Mapping[str, Any]) -> tasks.Draft:
    """The task that a body describes.

    Raises:
        Refusal: 413, 422.
    """
    return tasks.Draft(
        channel=text(body, "channel"),
        title=title(body),
        description=_description(body) if body.get("description") is not None else "",
        state=choice(body, "state", TASK_STATES, default="open"),
        assignee=optional_text(body, "assignee", least=1),
        message=optional_text(body, "message", least=1),
        doc=optional_text(body, "doc", least=1),
        operation=optional_text(body, "operationId", least=1),
    )


def _description(body: Mapping[str, Any]) -> str:
    return text(body, "description", least=0, most_bytes=CONTENT_BYTES)


def wish(body: Mapping[str, Any]) -> tasks.Change:
    """The change that a body describes; null takes assignee, message or doc away.

    Raises:
        Refusal: 413, 422.
    """
    values: dict[str, str | None] = {name: optional_text(body, name, least=1) for name in REFERENCES if name in body}
    if body.get("title") is not None:
        values["title"] = title(body)
    if body.get("description") is not None:
        values["description"] = _description(body)
    if body.get("state") is not None:
        values["state"] = choice(body, "state", TASK_STATES)
    return tasks.Change(rev=integer(body, "rev", least=1), values=values)


async def change(request: Request) -> Response:
    """Change a task."""
    actor, wanted = member_of(request), request.path_params["id"]
    body = await read_json(request)
    return Answer(await store_of(request).write(tasks.change, actor, wanted, wish(body), at=time.time()))


async def get(request: Request) -> Response:
    """One task."""
    return Answer(await store_of(request).read(tasks.get, actor_of(request), request.path_params["id"]))


async def list_tasks(request: Request) -> Response:
    """Tasks of the caller's channels."""
    listed = await store_of(request).read(
        tasks.list_tasks,
        actor_of(request),
        query_text(request, "channel"),
        state=query_choice(request, "state", tasks.LISTS, default="active"),
        assignee=query_text(request, "assignee"),
        before=query_text(request, "before"),
        limit=query_integer(request, "limit", least=1, most=PAGE_MOST) or PAGE,
    )
    return Answer(listed)


routes = [
    Route("/tasks", create, methods=["POST"]),
    Route("/tasks", list_tasks, methods=["GET"]),
    Route("/tasks/{id}", get, methods=["GET"]),
    Route("/tasks/{id}", change, methods=["PATCH"]),
]
