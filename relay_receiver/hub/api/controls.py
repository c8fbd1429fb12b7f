"""`/controls`: what people decide about receivers; `/receivers`: how these are."""

import time
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relay_receiver.hub import channels, controls, leases, members
from relay_receiver.hub.answer import Json as Answer
from relay_receiver.hub.api.given import Json, actor_of, member_of, store_of
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.body import (
    choice,
    mapping,
    optional_integer,
    optional_text,
    query_integer,
    query_text,
    read_json,
    text,
)
from relay_receiver.hub.errors import invalid
from relay_receiver.hub.store import Store
from relay_receiver.hub.tables_people import CONTROLS
from relay_receiver.wire.limits import CONTENT_BYTES

JOB_CHARS = 256
REASON_CHARS = 4096
SENTENCE_CHARS = 1024
VERBS = ("accept", "abandon", "retry")


async def create(request: Request) -> Response:
    """Decide about a receiver, as a person."""
    store, actor = store_of(request), actor_of(request)
    actor.need_person("decide about a receiver")
    return Answer(await store.write(controls.create, actor, wish(await read_json(request)), at=time.time()), 201)


def wish(body: Mapping[str, Any]) -> controls.Wish:
    """The decision that a body describes.

    Raises:
        Refusal: 413, 422.
    """
    action = choice(body, "action", CONTROLS)
    return controls.Wish(
        channel=text(body, "channel"),
        agent=text(body, "agent"),
        action=action,
        arguments=_arguments(action, mapping(body, "arguments") or {}),
        operation=text(body, "operationId"),
    )


def _arguments(action: str, given: Mapping[str, Any]) -> Json:
    if action == controls.RESUME:
        return _present(pause=optional_text(given, "pause", least=1))
    attempt = optional_integer(given, "attempt", most=2**31)
    found = _present(job=text(given, "job", most=JOB_CHARS), attempt=attempt)
    if action == controls.CANCEL:
        return found
    verb = choice(given, "verb", VERBS)
    said = None if given.get("text") is None else text(given, "text", least=0, most_bytes=CONTENT_BYTES)
    if said is not None and verb != "accept":
        raise invalid("text", "`text` goes with `accept` only: it is what is posted.")
    reason = optional_text(given, "reason", most=REASON_CHARS)
    return {**found, "verb": verb, **_present(text=said, reason=reason)}


def _present(**values: Any) -> Json:  # noqa: ANN401 - JSON
    return {name: value for name, value in values.items() if value is not None}


async def list_controls(request: Request) -> Response:
    """Decisions, newest first."""
    actor = member_of(request)
    found = await store_of(request).read(
        controls.list_controls,
        actor,
        channel=query_text(request, "channel"),
        agent=query_text(request, "agent"),
        waiting=query_text(request, "state") == "waiting",
        limit=query_integer(request, "limit", least=1, most=controls.PAGE) or controls.PAGE,
    )
    return Answer({"controls": found})


async def get(request: Request) -> Response:
    """One decision."""
    return Answer(await store_of(request).read(controls.get, member_of(request), request.path_params["id"]))


async def tell(request: Request) -> Response:
    """What became of a decision, by the receiver that it is about."""
    store, actor = store_of(request), actor_of(request)
    leases.need_agent(actor)
    body = await read_json(request)
    told = await store.write(
        controls.tell,
        actor,
        request.path_params["id"],
        outcome=choice(body, "outcome", controls.OUTCOMES),
        sentence=text(body, "sentence", most=SENTENCE_CHARS),
        at=time.time(),
    )
    return Answer(told)


async def list_receivers(request: Request) -> Response:
    """The receivers in the caller's channels."""
    store, actor, channel = store_of(request), member_of(request), query_text(request, "channel")
    places = sorted(actor.channels) if channel is None else [channels.need(actor, channel)]
    return Answer({"receivers": await store.read(receivers, store, actor, places)})


def receivers(conn: Connection, store: Store, actor: Actor, places: list[str]) -> list[Json]:
    """`{agent: {id, name}, channel, state, detail, report}` of each receiver, by channel and name."""
    found: list[Json] = []
    for place in places:
        seen = leases.of_channel(conn, store, place, person=actor.is_person)
        named = members.names(conn, seen)
        found += [
            {"agent": {"id": each, "name": named[each].name}, "channel": place, **seen[each]}
            for each in sorted(seen, key=lambda one: named[one].name)
        ]
    return found


routes = [
    Route("/controls", create, methods=["POST"]),
    Route("/controls", list_controls, methods=["GET"]),
    Route("/controls/{id}", get, methods=["GET"]),
    Route("/controls/{id}/outcome", tell, methods=["POST"]),
    Route("/receivers", list_receivers, methods=["GET"]),
]
