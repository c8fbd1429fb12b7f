"""The way of one receiver process to the simulated hub, with everything that a network does to calls."""

import asyncio
import contextlib
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from relay_receiver.client.errors import Displaced, HubAway, HubError, Unauthorized
from relay_receiver.client.stream import Batch, Cut, Reset, last_event
from relay_receiver.testing.sim_hub import SimHub

Json = dict[str, Any]
T = TypeVar("T")
Gate = Callable[[str], None]
"""Called at each boundary with its name; raises where the process dies there."""

LATENCY = 0.005
PATIENCE = 10.0
"""Seconds after which a call without an answer is given up."""
LATE = 25.0


class Fault(StrEnum):
    """What may become of one call."""

    REFUSED = "refused"
    """No connection: certainly not sent."""
    DROPPED = "dropped"
    """Sent, and lost on the way to the hub."""
    APPLIED = "applied"
    """Done, and its answer lost."""
    GHOST = "ghost"
    """Given up, and done afterwards."""
    TWICE = "twice"
    """Done twice."""
    SLOW = "slow"
    """Done, and answered, late."""
    BROKEN = "broken"
    """500, nothing done."""
    BUSY = "busy"
    """429 with a wish."""
    UNAUTHORIZED = "unauthorized"


class Network:
    """What all processes of a simulation share on their way to the hub."""

    def __init__(self, hub: SimHub) -> None:
        self.hub = hub
        self.faults: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self.up = True
        self.sockets = True
        self.lines: list[Line] = []
        self.news = asyncio.Event()
        hub.told = self._told

    def drop_sockets(self) -> None:
        """Cut every socket."""
        for line in self.lines:
            line.cut("the connection was cut")

    def heal(self) -> None:
        """No faults from now on."""
        self.faults.clear()
        self.up = self.sockets = True

    def _told(self) -> None:
        self.news.set()
        self.news = asyncio.Event()


class Line:
    """Stands in for `client.hub.Hub`: the calls that a receiver makes."""

    def __init__(self, network: Network, gate: Gate) -> None:
        self._network = network
        self._hub = network.hub
        self._gate = gate
        self.rest = self
        self._socket: SimSocket | None = None
        network.lines.append(self)

    def close(self) -> None:
        """The process is gone."""
        if self in self._network.lines:
            self._network.lines.remove(self)
        self._socket = None

    def cut(self, why: str) -> None:
        """End the socket, if there is one."""
        if self._socket is not None:
            self._socket.end(Cut(why))

    async def take_lease(self, *, holder: str, subscription: str | None, **_: Any) -> Json:  # noqa: ANN401 - shown only
        """See `Hub`."""
        return await self._call("lease", lambda: self._hub.take_lease(holder=holder, subscription=subscription))

    async def release(self, *, channel: str, holder: str) -> None:  # noqa: ARG002 - there is one
        """See `Hub`."""
        await self._call("release", lambda: self._hub.release(holder=holder))

    async def begin(
        self, *, channel: str, holder: str, fence: Any, request_id: str, message: str, attempt: int, claim: str  # noqa: ANN401, ARG002 - opaque, and there is one channel
    ) -> Json:  # fmt: skip
        """See `Hub`."""
        return await self._call(
            "begin",
            lambda: self._hub.begin(
                holder=holder, fence=fence, request=request_id, message=message, attempt=attempt, claim=claim
            ),
        )

    async def stage(
        self, *, channel: str, holder: str, fence: Any, request_id: str, state: str, detail: Any = None, claim: str | None = None  # noqa: ANN401, ARG002, E501 - as above
    ) -> Json:  # fmt: skip
        """See `Hub`."""
        return await self._call(
            "stage",
            lambda: self._hub.stage(holder=holder, fence=fence, request=request_id, state=state, claim=claim),
        )

    async def finish(
        self,
        *,
        channel: str,  # noqa: ARG002 - there is one
        holder: str,
        fence: Any,  # noqa: ANN401 - opaque
        request_id: str,
        state: str,
        outcome: str | None = None,
        reason: str | None = None,  # noqa: ARG002 - shown only
        claim: str | None = None,
    ) -> Json:
        """See `Hub`."""
        return await self._call(
            "finish",
            lambda: self._hub.finish(
                holder=holder, fence=fence, request=request_id, claim=claim, state=state, outcome=outcome
            ),
        )

    async def create_request(self, body: Mapping[str, Any]) -> Json:
        """See `Hub`."""
        return await self._call("ask", lambda: self._hub.ask(body))

    async def request(self, request: str) -> Json:
        """See `Hub`."""
        return await self._call("look", lambda: self._hub.asks.get(self._hub.stored.asks, request))

    async def requests(self, channel: str | None = None, state: str = "open") -> list[Json]:  # noqa: ARG002 - there is one
        """See `Hub`."""
        return await self._call("look", lambda: self._hub.asks.opened(self._hub.stored.asks))

    async def close_request(self, request: str, state: str, reason: str | None = None) -> Json:  # noqa: ARG002 - shown only
        """See `Hub`."""
        return await self._call("close", lambda: self._hub.asks.close(self._hub.stored.asks, request, state))

    async def post_message(self, body: Mapping[str, Any]) -> Json:
        """See `Hub`."""
        return await self._call("post", lambda: self._hub.post(body))

    async def message(self, message: str) -> Json:
        """See `Hub`."""
        return await self._call("message", lambda: self._hub.message(message))

    async def acknowledge(self, subscription: str, cursor: str) -> None:
        """See `Hub`."""
        await self._call("acknowledge", lambda: self._hub.acknowledge(subscription, cursor))

    async def subscribe(self, channel: str | None = None, *, cursor: str | None = None) -> Json:  # noqa: ARG002 - there is one
        """See `Hub`."""
        at = cursor or self._hub.cursor(self._hub.stored.head)
        return await self._call("subscribe", lambda: self._hub.subscribe(at))

    async def history(
        self, channel: str, *, after: int | None = None, before: int | None = None, limit: int | None = None  # noqa: ARG002 - there is one
    ) -> Json:  # fmt: skip
        """See `Hub`."""
        return await self._call("history", lambda: self._hub.history(after=after, before=before, limit=limit or 50))

    async def updates(
        self, *, cursor: str | None, channel: str | None = None, types: Sequence[str] = (), wait: int = 25  # noqa: ARG002 - as the receiver asks
    ) -> Json:  # fmt: skip
        """See `Hub`."""
        cursor = cursor or self._hub.cursor(self._hub.stored.head)
        end = asyncio.get_running_loop().time() + wait
        while True:
            found = await self._call("updates", lambda: self._updates(cursor))
            left = end - asyncio.get_running_loop().time()
            if found["events"] or left <= 0:
                return found
            try:
                async with asyncio.timeout(left):
                    await self._network.news.wait()
            except TimeoutError:
                return found

    async def open_socket(self, cursor: str | None) -> "SimSocket":
        """Connect and greet; a newer one of the same process displaces none, since there is none."""
        if not self._network.sockets:
            raise Cut("the hub serves no sockets just now")
        await self._call("socket", lambda: None)
        cursor = cursor or self._hub.cursor(self._hub.stored.head)
        if reason := self._hub.reset_reason(cursor):
            raise Reset(reason)
        self._socket = SimSocket(self._network, self, cursor)
        return self._socket

    def displace(self) -> None:
        """A newer connection of the same holder took over."""
        if self._socket is not None:
            self._socket.end(Displaced("A newer connection took over.", status=409, code="displaced"))

    def _updates(self, cursor: str) -> Json:
        if reason := self._hub.reset_reason(cursor):
            raise HubError("Heal first.", status=409, code=reason)
        events = self._hub.after(int(cursor.partition(".")[0]))
        return {"events": events, "cursor": self._hub.cursor(self._hub.stored.head) if events else cursor}

    async def _call(self, name: str, apply: Callable[[], T]) -> T:
        self._gate(f"call {name}")
        waiting = self._network.faults.get(name)
        fault = waiting.popleft() if waiting else None
        if not self._network.up or fault is Fault.REFUSED:
            await asyncio.sleep(LATENCY)
            raise HubAway("The hub cannot be reached.", sent=False)
        await asyncio.sleep(LATENCY)
        if (error := _answered(fault)) is not None:
            raise error
        if fault in {Fault.DROPPED, Fault.GHOST}:
            if fault is Fault.GHOST:
                asyncio.get_running_loop().call_later(LATE, _quietly, apply)
            await asyncio.sleep(PATIENCE)
            raise HubAway("The hub did not answer.", sent=True)
        if fault is Fault.SLOW:
            await asyncio.sleep(LATE / 2)
        done = apply()
        self._gate(f"applied {name}")
        if fault is Fault.TWICE:
            _quietly(apply)
        if fault is Fault.APPLIED:
            await asyncio.sleep(PATIENCE)
            raise HubAway("The connection was reset.", sent=True)
        await asyncio.sleep(LATE / 2 if fault is Fault.SLOW else LATENCY)
        self._gate(f"answered {name}")
        return done


class SimSocket:
    """Stands in for `client.websocket.Socket`."""

    def __init__(self, network: Network, line: Line, cursor: str) -> None:
        self._network = network
        self._line = line
        self._end: Exception | None = None
        self.cursor = cursor

    @classmethod
    async def open(cls, rest: Line, *, cursor: str | None, **_: Any) -> "SimSocket":  # noqa: ANN401 - not told here
        """Connect; raises as the real one does."""
        try:
            return await rest.open_socket(cursor)
        except Unauthorized:
            raise
        except (HubAway, HubError) as error:
            raise Cut(error.sentence) from error

    def end(self, error: Exception) -> None:
        """End it, as the hub or the network does."""
        self._end = error
        self._network.hub.told()

    async def batches(self, watermark: int) -> AsyncIterator[Batch]:
        """What arrives, each batch closed by its cursor."""
        hub = self._network.hub
        while True:
            news = self._network.news
            if self._end is not None:
                raise self._end
            if not self._network.up:
                raise Cut("the connection was cut")
            if reason := hub.reset_reason(self.cursor):
                raise Cut(f"the hub was started anew, {reason}")
            events = hub.after(int(self.cursor.partition(".")[0]))
            if events:
                self.cursor = hub.cursor(hub.stored.head)
                watermark = last_event(events, watermark)
                await asyncio.sleep(LATENCY)
                yield Batch(events=events, cursor=self.cursor, watermark=watermark)
            else:
                await news.wait()

    async def acknowledge(self, subscription: str, cursor: str) -> bool:
        """By a frame; one that is lost is told again by the feed."""
        if self._end is not None or not self._network.up:
            return False
        self._line._gate("call frame")  # noqa: SLF001 - its own line
        waiting = self._network.faults.get("frame")
        fault = waiting.popleft() if waiting else None
        if fault is None or fault is Fault.TWICE:
            _quietly(lambda: self._network.hub.acknowledge(subscription, cursor))
        else:
            self.end(Cut("the connection was cut"))
        return True

    async def close(self) -> None:
        """Close it."""
        self._end = self._end or Cut("closed")


def _answered(fault: Fault | None) -> HubError | None:
    match fault:
        case Fault.BROKEN:
            return HubError("Internal error.", status=500, code="internal")
        case Fault.BUSY:
            return HubError("Too many.", status=429, code="rate_limited", retry_after=7.0)
        case Fault.UNAUTHORIZED:
            return Unauthorized("The credential does not count.", status=401, code="unauthorized")
    return None


def _quietly(apply: Callable[[], Any]) -> None:
    with contextlib.suppress(HubError):  # nobody hears the answer
        apply()
