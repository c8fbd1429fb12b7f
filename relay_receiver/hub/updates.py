"""The long poll: a request that is held until there is something to tell."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive

from relay_receiver.hub import position
from relay_receiver.hub.answer import Raw
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.body import query_integer, query_text
from relay_receiver.hub.errors import Refusal, invalid, not_found, unauthorized
from relay_receiver.hub.events import head
from relay_receiver.hub.feed import Feed
from relay_receiver.hub.middleware_auth import FindActor, bearer
from relay_receiver.hub.position import Page
from relay_receiver.hub.reader import Filter, Published, Reader
from relay_receiver.hub.store import Store
from relay_receiver.wire.cursor import Cursor
from relay_receiver.wire.limits import POLL_SECONDS

HELD_POLLS = 64
"""Polls of one member that are held at a time."""
STALE_EVENTS = 500
"""An empty batch repeats its cursor, unless so many events went by: it would grow too old."""
TYPES = 32

Again = Callable[[], Actor | None]
TYPES_OF_JOBS = frozenset(
    {
        "message.created",
        "message.cancel",
        "message.stage",
        "receiver.updated",
        "status.updated",
        "member.updated",
        "doc.updated",
        "task.updated",
    }
)
"""A job is not told what others ask of people, nor what people decide."""


def wanted_by(actor: Actor, channel: str | None, types: Iterable[str] | None) -> Filter:
    """What a member asks to be told of.

    Raises:
        Refusal: 404, the channel is not one of the member's.
    """
    if channel is not None and channel not in actor.channels:
        raise not_found("channel")
    channels = actor.channels if channel is None else frozenset({channel})
    wanted = None if types is None else frozenset(types)
    if actor.job is not None:
        wanted = TYPES_OF_JOBS if wanted is None else wanted & TYPES_OF_JOBS
    return Filter(channels=channels, types=wanted)


def _types(text: str | None) -> list[str] | None:
    if text is None:
        return None
    types = [each.strip() for each in text.split(",") if each.strip()]
    if len(types) > TYPES:
        raise invalid("types", f"`types` must have at most {TYPES} entries.")
    return types


class Updates:
    """Answers `GET /updates`."""

    def __init__(self, store: Store, feed: Feed, find: FindActor) -> None:
        self._store, self._feed, self._find = store, feed, find
        self._held: Counter[str] = Counter()
        self.routes = [Route("/updates", self.get, methods=["GET"])]

    async def get(self, request: Request) -> Response:
        """Hold the request until there are events for its reader, or the time is up."""
        token = bearer(request.scope)
        events, cursor = await self.hold(request, request.state.actor, lambda: self._find(token))
        return Raw(f'{{"cursor":"{cursor}","events":[{",".join(each.text for each in events)}]}}')

    async def hold(self, request: Request, actor: Actor, again: Again) -> tuple[list[Published], str]:
        """The events for a reader once there are any, or none once the time is up; and where it goes on.

        Args:
            again: who reads, looked up after the wait; None where the credential ended meanwhile.

        Raises:
            Refusal: 401, 404, 409 `cursor_expired` or `diverged`, 422, 429.
        """
        least, most = POLL_SECONDS
        wait = query_integer(request, "wait", most=3600)
        wait = 25 if wait is None else max(least, min(most, wait))
        asked = _Asked(
            again=again,
            channel=query_text(request, "channel"),
            types=_types(query_text(request, "types", most=2048)),
            cursor=query_text(request, "cursor"),
            wait=wait,
        )
        if self._held[actor.id] >= HELD_POLLS:
            raise Refusal(429, "rate_limited", "Too many polls of this member are held.", retry_after=1)
        wanted = wanted_by(actor, asked.channel, asked.types)
        reader = Reader(actor.workspace, wanted, bound=self._feed.queue_events)
        self._held[actor.id] += 1
        self._feed.open(reader)
        try:
            return await self._answer(reader, asked, request.receive)
        finally:
            self._feed.close(reader)
            self._held[actor.id] -= 1
            if not self._held[actor.id]:
                del self._held[actor.id]

    async def _answer(self, reader: Reader, asked: "_Asked", receive: Receive) -> tuple[list[Published], str]:
        # The reader is open already: what is committed from here on waits in it, whatever is read meanwhile.
        given = asked.cursor
        start = self._store.read_now(head, reader.workspace) if given is None else position.parse(given)
        page = self._stored(reader.workspace, start, reader.filter)
        if page.events:
            return page.events, str(page.cursor)
        await held(reader, asked.wait, receive)
        wanted = self._wanted_now(asked)
        if wanted != reader.filter or reader.ended:
            # It may see other channels now than those it waited for, or more came than was kept for it.
            page = self._stored(reader.workspace, start, wanted)
            return page.events, str(page.cursor if page.events else given or start)
        events = [each for each in reader.take() if each.number > page.cursor.number]
        if events:
            return events, events[-1].cursor
        stale = page.cursor.number - start.number > STALE_EVENTS
        return [], str(page.cursor if stale else given or start)

    def _stored(self, workspace: str, start: Cursor, wanted: Filter) -> Page:
        page = position.page_after(self._store, self._feed, workspace, start, wanted)
        while page.more and not page.events:
            page = position.page_after(self._store, self._feed, workspace, page.cursor, wanted)
        return page

    def _wanted_now(self, asked: "_Asked") -> Filter:
        """What it may see after the wait.

        Raises:
            Refusal: 401, 404, the credential or the membership ended meanwhile.
        """
        actor = asked.again()
        if actor is None:
            raise unauthorized()
        return wanted_by(actor, asked.channel, asked.types)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Asked:
    """A poll as it was asked."""

    again: Again
    channel: str | None
    types: list[str] | None
    cursor: str | None
    wait: float


async def held(reader: Reader, wait: float, receive: Receive) -> None:
    """Wait for something to tell, for the end of the time, or for the client to go away."""
    async with asyncio.TaskGroup() as tasks:
        leaving = tasks.create_task(_left(reader, receive), name="poll-left")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await reader.ready.wait()
        leaving.cancel()


async def _left(reader: Reader, receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    reader.ready.set()
