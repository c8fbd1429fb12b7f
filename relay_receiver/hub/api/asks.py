"""`/requests`: asking people, reading what was asked, answering, closing."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relay_receiver.hub import asks
from relay_receiver.hub.answer import Json as Answer
from relay_receiver.hub.api.given import Json, actor_of, moment, store_of
from relay_receiver.hub.ask_views import UPDATED
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.body import (
    choice,
    mapping,
    optional_text,
    query_choice,
    query_integer,
    query_text,
    read_json,
    text,
    texts,
)
from relay_receiver.hub.errors import Refusal, invalid, unauthorized
from relay_receiver.hub.feed import Feed
from relay_receiver.hub.middleware_auth import FindActor, bearer
from relay_receiver.hub.reader import Filter, Reader
from relay_receiver.hub.tables_people import ASK_KINDS
from relay_receiver.hub.updates import HELD_POLLS, held
from relay_receiver.wire import limits

TITLE_CHARS = 1024
LABEL_CHARS = 512
OPTIONS = 64
APPROVERS = 64
REASON_CHARS = 4096
HASH_CHARS = 64


async def create(request: Request) -> Response:
    """Ask people something; the same operation id asks once."""
    store, actor = store_of(request), actor_of(request)
    return Answer(await store.write(asks.create, actor, wish(await read_json(request)), at=time.time()))


def wish(body: Mapping[str, Any]) -> asks.Wish:
    """The request that a body describes.

    Raises:
        Refusal: 413, 422.
    """
    approvers = texts(body, "approvers", most=APPROVERS)
    return asks.Wish(
        channel=text(body, "channel"),
        kind=choice(body, "kind", ASK_KINDS),
        title=text(body, "title", most=TITLE_CHARS),
        operation=text(body, "operationId"),
        description=""
        if body.get("description") is None
        else text(body, "description", least=0, most_bytes=limits.CONTENT_BYTES),
        options=_options(body),
        schema=mapping(body, "schema"),
        action=mapping(body, "action"),
        job=optional_text(body, "job", least=1),
        message=optional_text(body, "message", least=1),
        approvers=None if approvers is None else tuple(dict.fromkeys(approvers)),
        expires_at=moment(body, "expiresAt"),
    )


def _options(body: Mapping[str, Any]) -> tuple[Json, ...] | None:
    given = body.get("options")
    if given is None:
        return None
    if (
        not isinstance(given, list)
        or not 0 < len(given) <= OPTIONS
        or not all(isinstance(each, dict) for each in given)
    ):
        raise invalid("options", f"`options` must be a list of 1 to {OPTIONS} objects with `id` and `label`.")
    found = []
    for each in given:
        option = {"id": text(each, "id", most=64), "label": text(each, "label", most=LABEL_CHARS)}
        more = optional_text(each, "description", most=REASON_CHARS)
        found.append(option if more is None else {**option, "description": more})
    return tuple(found)


async def list_asks(request: Request) -> Response:
    """Requests of the caller's channels, newest first."""
    found = await store_of(request).read(
        asks.list_asks,
        actor_of(request),
        channel=query_text(request, "channel"),
        state=query_choice(request, "state", asks.STATES, default="open"),
        limit=query_integer(request, "limit", least=1, most=asks.AT_ONCE) or limits.STATE_MESSAGES,
    )
    return Answer({"requests": found})


async def respond(request: Request) -> Response:
    """Answer, as a person."""
    store, actor = store_of(request), actor_of(request)
    actor.need_person("answer a request")
    body = await read_json(request)
    answered = await store.write(
        asks.respond,
        actor,
        request.path_params["id"],
        body.get("answer"),
        optional_text(body, "actionHash", most=HASH_CHARS),
        at=time.time(),
    )
    return Answer(answered)


async def close(request: Request) -> Response:
    """End a request, as its author."""
    store, actor = store_of(request), actor_of(request)
    body = await read_json(request)
    closed = await store.write(
        asks.close,
        actor,
        request.path_params["id"],
        choice(body, "state", asks.CLOSED),
        optional_text(body, "reason", most=REASON_CHARS),
        at=time.time(),
    )
    return Answer(closed)


class OneAsk:
    """Answers `GET /requests/:id`; with `wait` it is held until the request is no longer open."""

    def __init__(self, feed: Feed, find: FindActor) -> None:
        self._feed, self._find = feed, find
        self._held: dict[str, int] = {}

    async def get(self, request: Request) -> Response:
        """One request, as it is now or once it has ended."""
        store, actor, wanted = store_of(request), actor_of(request), request.path_params["id"]
        wait = query_integer(request, "wait", most=limits.POLL_SECONDS[1]) or 0
        found = await store.read(asks.get, actor, wanted)
        if found["state"] == "open" and wait:
            found = await self._once_over(request, actor, found, wait)
        return Answer(found)

    async def _once_over(self, request: Request, actor: Actor, found: Json, wait: float) -> Json:
        if self._held.get(actor.digest, 0) >= HELD_POLLS:
            raise Refusal(429, "rate_limited", "Too many polls of this member are held.", retry_after=1)
        self._held[actor.digest] = self._held.get(actor.digest, 0) + 1
        wanted = Filter(channels=frozenset({found["channel"]}), types=frozenset({UPDATED}))
        reader = Reader(actor.workspace, wanted, bound=self._feed.queue_events)
        self._feed.open(reader)
        try:
            return await self._follow(request, reader, found["id"], wait)
        finally:
            self._feed.close(reader)
            self._held[actor.digest] -= 1
            if not self._held[actor.digest]:
                del self._held[actor.digest]

    async def _follow(self, request: Request, reader: Reader, wanted: str, wait: float) -> Json:
        """Look, then look again whenever a request of the channel has changed.

        Raises:
            Refusal: 401, 404, the credential or the membership ended meanwhile.
        """
        store, loop = store_of(request), asyncio.get_running_loop()
        until = loop.time() + wait
        while True:
            actor = self._find(bearer(request.scope))
            if actor is None:
                raise unauthorized()
            found = await store.read(asks.get, actor, wanted)
            left = until - loop.time()
            if found["state"] != "open" or left <= 0 or reader.ended:
                return found
            await held(reader, left, request.receive)
            if not reader.take() and not reader.ended:
                # The time is up, or the client went away.
                until = loop.time()

    @property
    def routes(self) -> list[Route]:
        """Where it is reached."""
        return [Route("/requests/{id}", self.get, methods=["GET"])]


routes = [
    Route("/requests", create, methods=["POST"]),
    Route("/requests", list_asks, methods=["GET"]),
    Route("/requests/{id}/respond", respond, methods=["POST"]),
    Route("/requests/{id}/close", close, methods=["POST"]),
]
