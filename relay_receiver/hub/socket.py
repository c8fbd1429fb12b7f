"""One WebSocket, from its greeting to its end."""

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Any

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.utils import ClientDisconnected

from relay_receiver.hub import position
from relay_receiver.hub.answer import dumps
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.body import optional_text, parse, text, texts
from relay_receiver.hub.errors import Refusal, malformed, not_found
from relay_receiver.hub.events import head
from relay_receiver.hub.feed import Feed
from relay_receiver.hub.middleware_auth import bearer
from relay_receiver.hub.options import HubOptions
from relay_receiver.hub.reader import BROKEN_FRAMING, Published, Reader
from relay_receiver.hub.sockets import Sockets
from relay_receiver.hub.store import Store
from relay_receiver.hub.subscriptions import Subscriptions
from relay_receiver.hub.transport import CUT, Cut
from relay_receiver.hub.updates import wanted_by
from relay_receiver.wire.cursor import Cursor

TRY_LATER = 1013
NORMAL = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Shared:
    """What all sockets use."""

    store: Store
    feed: Feed
    sockets: Sockets
    subscriptions: Subscriptions
    options: HubOptions


class Gone(Exception):  # noqa: N818 - it is how a socket ends, foreseen
    """The peer went away, or the socket was ended."""


class Socket:
    """A connection of one member."""

    def __init__(self, shared: Shared, scope: Scope, receive: Receive, send: Send) -> None:
        self._shared = shared
        self._receive, self._send = receive, send
        self._cut: Cut = scope["extensions"][CUT]["cut"]
        self.actor: Actor = scope["state"]["actor"]
        self.token = bearer(scope)
        self.channel: str | None = None
        self.holder: str | None = None
        self._types: list[str] | None = None
        self._reader: Reader | None = None

    async def serve(self) -> None:
        """Accept, greet, and tell events until either side ends it."""
        self._shared.sockets.opening(self.actor)
        try:
            with contextlib.suppress(Gone, ClientDisconnected):
                await self._greeted(await self._opened())
        except Refusal as refusal:
            await self._fail(refusal)
        finally:
            self._shared.sockets.remove(self)
            if self._reader is not None:
                self._shared.feed.close(self._reader)

    def end(self, code: int, reason: str) -> None:
        """Close it at once, whatever it does; what is on its way to the peer may still arrive."""
        self._cut(code, reason, self._shared.options.close_seconds)
        if self._reader is not None:
            self._reader.end(code, reason)

    def refresh(self, actor: Actor) -> None:
        """Go on with what this actor may see now."""
        self.actor = actor
        if self._reader is not None:
            self._shared.feed.narrow(self._reader, wanted_by(actor, self.channel, self._types))

    async def _opened(self) -> dict[str, Any]:
        """Accept, and take the greeting."""
        try:
            if (await self._receive())["type"] != "websocket.connect":
                raise Gone
            await self._send({"type": "websocket.accept"})
            return await self._hello()
        finally:
            self._shared.sockets.opened(self.actor)

    async def _hello(self) -> dict[str, Any]:
        try:
            async with asyncio.timeout(self._shared.options.hello_seconds):
                frame = await self._frame()
        except TimeoutError:
            raise malformed("No hello arrived in time.", "no_hello") from None
        if frame.get("t") != "hello":
            raise malformed("The first frame must be hello.", "no_hello")
        return frame

    async def _greeted(self, hello: dict[str, Any]) -> None:
        self.channel = optional_text(hello, "channel", least=1)
        self.holder = optional_text(hello, "holder", least=1)
        self._types = texts(hello, "types", most=32)
        shared = self._shared
        wanted = wanted_by(self.actor, self.channel, self._types)
        resume = hello.get("resume")
        shared.sockets.add(self)
        self._reader = Reader(self.actor.workspace, wanted, bound=shared.feed.queue_events, on_end=self.end)
        # Open before anything is read: what is committed from here on waits in the reader.
        shared.feed.open(self._reader)
        start = shared.store.read_now(head, self.actor.workspace) if resume is None else position.parse(resume)
        try:
            page = position.page_after(shared.store, shared.feed, self.actor.workspace, start, wanted)
        except Refusal as refusal:
            if not position.is_reset(refusal):
                raise
            shared.feed.close(self._reader)
            await self._say({"t": "reset", "reason": refusal.code})
            await self._until_closed()
            return
        await self._say({"t": "ready", "cursor": str(start if resume is None else resume)})
        async with asyncio.TaskGroup() as tasks:
            listening = tasks.create_task(self._listen(), name="socket-listen")
            try:
                await self._catch_up(self._reader, page)
            except (Gone, ClientDisconnected):
                self.end(NORMAL, "")
            except Refusal as refusal:
                await self._fail(refusal)
            finally:
                listening.cancel()

    async def _catch_up(self, reader: Reader, page: position.Page) -> None:
        """Tell what is stored, page by page, then what comes."""
        shared = self._shared
        while True:
            if page.events:
                await self._tell(page.events, str(page.cursor))
            if not page.more:
                break
            if reader.ended:
                raise Gone
            # What waits in the reader meanwhile is stored too: it is read with a later page, so it need not wait here.
            reader.take()
            page = position.page_after(shared.store, shared.feed, reader.workspace, page.cursor, reader.filter)
        await self._follow(reader, page.cursor)

    async def _follow(self, reader: Reader, told: Cursor) -> None:
        """Tell what comes, and every now and then where now is."""
        while True:
            try:
                async with asyncio.timeout(self._shared.options.cursor_seconds):
                    await reader.ready.wait()
            except TimeoutError:
                told = self._idle_cursor(reader, told)
                await self._say({"t": "cursor", "cursor": str(told)})
                continue
            if reader.ended:
                raise Gone
            events = [each for each in reader.take() if each.number > told.number]
            if events:
                told = Cursor.parse(events[-1].cursor)
                await self._tell(events, str(told))

    def _idle_cursor(self, reader: Reader, told: Cursor) -> Cursor:
        """Behind all that was published: none of it waits here, so all of it was told or not for this reader."""
        latest = self._shared.feed.stream(reader.workspace).head
        if latest is None or latest.number <= told.number or reader.pending:
            return told
        return Cursor.parse(latest.cursor)

    async def _tell(self, events: list[Published], cursor: str) -> None:
        for each in events:
            await self._send({"type": "websocket.send", "text": each.frame})
        await self._send({"type": "websocket.send", "text": f'{{"t":"cursor","cursor":"{cursor}"}}'})

    async def _listen(self) -> None:
        """Take what the client says, until it goes."""
        try:
            while True:
                frame = await self._frame()
                if frame.get("t") == "ack":
                    await self._acknowledged(frame)
        except Gone:
            if self._reader is not None:
                self._reader.end(NORMAL, "")
        except Refusal as refusal:
            await self._fail(refusal)

    async def _acknowledged(self, frame: dict[str, Any]) -> None:
        key = text(frame, "subscription")
        cursor = position.parse(frame.get("cursor"))
        self.actor.need_member()
        await self._shared.subscriptions.acknowledge(self.actor, key, cursor)

    async def _frame(self) -> dict[str, Any]:
        message = await self._receive()
        if message["type"] != "websocket.receive":
            raise Gone
        said = message.get("text")
        if said is None:
            raise malformed("Frames are text.")
        return parse(said.encode())

    async def _until_closed(self) -> None:
        """The client closes; not for ever."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._shared.options.close_seconds):
                while True:
                    await self._frame()
        self.end(NORMAL, "")

    async def _say(self, frame: dict[str, Any]) -> None:
        await self._send({"type": "websocket.send", "text": dumps(frame)})

    async def _fail(self, refusal: Refusal) -> None:
        """Tell what was wrong, then close."""
        with contextlib.suppress(ClientDisconnected):
            await self._say({"t": "error", "code": refusal.code, "message": refusal.sentence})
        self.end(TRY_LATER if refusal.status == 429 else BROKEN_FRAMING, refusal.code)


class Endpoint:
    """Serves `GET /ws`; where the server has no sockets of ours there is nothing here."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection."""
        if scope["type"] != "websocket" or CUT not in scope.get("extensions", {}):
            raise not_found("socket; use the long poll")
        await Socket(self._shared, scope, receive, send).serve()
