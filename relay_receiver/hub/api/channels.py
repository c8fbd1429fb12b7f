"""`/channels`: making, listing and leaving them, who is in them, and what those declare."""

import time

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relay_receiver.hub import channels, declarations, leases, members
from relay_receiver.hub.answer import Json as Answer
from relay_receiver.hub.api.given import Json, actor_of, member_of, name, store_of
from relay_receiver.hub.body import choice, optional_integer, optional_text, read_json
from relay_receiver.hub.store import Store
from relay_receiver.hub.tables import MODES

STATUS_CHARS = 512


async def list_channels(request: Request) -> Response:
    """The caller's channels."""
    return Answer({"channels": await store_of(request).read(channels.list_channels, actor_of(request))})


async def create(request: Request) -> Response:
    """Make a channel with the caller in it."""
    actor = member_of(request)
    made = await store_of(request).write(channels.create, actor, name(await read_json(request)), at=time.time())
    return Answer(made, 201)


async def list_members(request: Request) -> Response:
    """Who is in a channel, what each declares, and whether its receiver runs."""
    store, actor = store_of(request), actor_of(request)
    channel = channels.need(actor, request.path_params["id"])
    return Answer({"members": await store.read(_members, store, channel, person=actor.is_person)})


def _members(conn: Connection, store: Store, channel: str, *, person: bool) -> list[Json]:
    running = leases.of_channel(conn, store, channel, person=person)
    declared = {each["agentId"]: each for each in declarations.of_channels(conn, store.live, frozenset({channel}))}
    found = members.list_members(conn, channel)
    for each in found:
        each["status"] = declared.get(each["id"])
        each["receiver"] = running.get(each["id"])
    return found


async def leave(request: Request) -> Response:
    """Leave a channel; once is enough."""
    actor, store, channel = member_of(request), store_of(request), request.path_params["id"]
    if channel in actor.channels:
        await store.write(channels.leave, actor, channel, at=time.time())
        store.live.leases.pop((actor.id, channel), None)
    return Answer({"left": True})


async def put_status(request: Request) -> Response:
    """Declare what the caller intends to take."""
    actor, store = member_of(request), store_of(request)
    channel = channels.need(actor, request.path_params["id"])
    body = await read_json(request)
    said = await store.write(
        declarations.put,
        actor,
        channel,
        store.live,
        rev=optional_integer(body, "rev"),
        mode=choice(body, "mode", MODES),
        text=optional_text(body, "text", most=STATUS_CHARS) or "",
        at=time.time(),
    )
    return Answer(said)


async def ping(request: Request) -> Response:
    """Contact; renews the declaration where `rev` is its current one."""
    actor, store = member_of(request), store_of(request)
    channel = channels.need(actor, request.path_params["id"])
    rev = optional_integer(await read_json(request), "rev")
    return Answer(await store.read(declarations.ping, actor, channel, store.live, rev=rev))


routes = [
    Route("/channels", list_channels, methods=["GET"]),
    Route("/channels", create, methods=["POST"]),
    Route("/channels/{id}/members", list_members, methods=["GET"]),
    Route("/channels/{id}/me", leave, methods=["DELETE"]),
    Route("/channels/{id}/me/status", put_status, methods=["PUT"]),
    Route("/channels/{id}/me/ping", ping, methods=["POST"]),
]
