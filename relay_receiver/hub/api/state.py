"""`GET /state` and `GET /peers`: where the caller is, and with whom."""

import time

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relay_receiver.hub import channels, declarations, events, leases, members, message_views
from relay_receiver.hub.answer import Json as Answer
from relay_receiver.hub.api.given import Json, actor_of, store_of
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.live import OFFLINE
from relay_receiver.hub.store import Store
from relay_receiver.wire import limits
from relay_receiver.wire.message import iso

GROUP_PROTOCOL = 1
STATE_BYTES, LEAST_BYTES = 4 * 1024 * 1024, 64 * 1024
"""Text of the latest messages in one answer, and at the least of one channel."""

LIMITS = {
    "contentBytes": limits.CONTENT_BYTES,
    "attachmentBytes": limits.ATTACHMENT_BYTES,
    "bodyBytes": limits.BODY_BYTES,
    "jsonDepth": limits.JSON_DEPTH,
    "nameChars": limits.NAME_CHARS,
    "writesPerMinute": limits.WRITES_PER_MINUTE,
    "runCallsPerSecond": limits.RUN_CALLS_PER_SECOND,
    "socketsPerMember": limits.SOCKETS_PER_MEMBER,
    "inboxEvents": limits.INBOX_EVENTS,
    "pageMessages": limits.PAGE_MESSAGES,
    "leaseSeconds": limits.LEASE_SECONDS,
    "declarationSeconds": limits.DECLARATION_SECONDS,
    "requestExpirySeconds": limits.REQUEST_EXPIRY_SECONDS,
}


async def get_state(request: Request) -> Response:
    """Who the caller is, its channels with their latest messages, and the cursor from which to go on."""
    store, actor = store_of(request), actor_of(request)
    return Answer(await store.read(_state, store, actor))


def _state(conn: Connection, store: Store, actor: Actor) -> Json:
    most = max(LEAST_BYTES, STATE_BYTES // max(1, len(actor.channels)))
    found = [
        message
        for channel in sorted(actor.channels)
        for message in message_views.latest(conn, channel, limits.STATE_MESSAGES, most_bytes=most)
    ]
    return {
        "protocol": limits.PROTOCOL,
        "groupProtocol": GROUP_PROTOCOL,
        "actor": {"id": actor.id, "role": actor.role, "name": actor.name},
        "workspace": actor.workspace,
        "workspaceName": actor.workspace_name,
        "channels": channels.list_channels(conn, actor),
        "messages": sorted(found, key=lambda message: message["event"]),
        "cursor": str(events.head(conn, actor.workspace)),
        "memberStatuses": declarations.of_channels(conn, store.live, actor.channels),
        "limits": LIMITS,
        "now": iso(time.time()),
    }


async def get_peers(request: Request) -> Response:
    """Everybody in the workspace; for a job, everybody in its channel."""
    store, actor = store_of(request), actor_of(request)
    return Answer({"peers": await store.read(_peers, store, actor)})


def _peers(conn: Connection, store: Store, actor: Actor) -> list[Json]:
    found = members.list_peers(conn, actor)
    if actor.job is not None:
        found = [each for each in found if each["channels"]]
    declared = declarations.of_channels(conn, store.live, actor.channels)
    receivers = {each: leases.of_channel(conn, store, each, person=actor.is_person) for each in sorted(actor.channels)}
    for each in found:
        places = [channel["id"] for channel in each["channels"]]
        here = [
            {"channel": place, **receivers[place][each["id"]]} for place in places if each["id"] in receivers[place]
        ]
        here.sort(key=lambda one: one["state"] == OFFLINE)
        each["receivers"] = here
        each["receiver"] = here[0] if here else None
        each["status"] = next((one for one in declared if one["agentId"] == each["id"]), None)
    return found


routes = [Route("/state", get_state, methods=["GET"]), Route("/peers", get_peers, methods=["GET"])]
