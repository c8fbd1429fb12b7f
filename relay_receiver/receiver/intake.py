"""Intake: a batch of events and its cursor into the journal in one transaction, and only then acknowledged (P1)."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from relay_receiver.client.clock import Clock
from relay_receiver.client.errors import Displaced, HubAway, HubError, Unauthorized
from relay_receiver.client.feed import Batch, Feed, Gap, Transport
from relay_receiver.jobs.state import AT_THE_AGENT, JobState
from relay_receiver.jobs.transitions import JobEvent
from relay_receiver.journal import binding as bindings
from relay_receiver.journal import jobs, messages, space
from relay_receiver.journal.controls import Control
from relay_receiver.journal.journal import Connection
from relay_receiver.receiver import approvals, controls, decisions
from relay_receiver.receiver.lease import Lease
from relay_receiver.receiver.parts import Parts
from relay_receiver.receiver.pruning import Pruning
from relay_receiver.wire import faultpoint
from relay_receiver.wire.message import Message

TYPES = ("message.created", "message.cancel", "request.updated", controls.CONTROL)

POSITION_SECONDS = 600.0
"""A cursor without a message is committed at most this often; an idle channel has none."""
JOURNAL_BYTES = 1024 * 1024 * 1024
"""The journal's bound; past it nothing is taken in until jobs that end have made room."""
ROOM_BYTES = 8 * 1024 * 1024
"""Characters that arrive between two looks at the journal's size."""
FULL = "The journal has reached its bound of 1 GiB: nothing is taken in until jobs that wait have ended."
FULL_SECONDS = 10.0


class Intake:
    """Reads the feed while the lease is held, and never acknowledges what is not committed."""

    def __init__(
        self,
        parts: Parts,
        lease: Lease,
        pruning: Pruning,
        *,
        changed: Callable[[], None],
        healed: Callable[[], None] = lambda: None,
        answered: Callable[[], None] = lambda: None,
        ordered: Callable[[], None] = lambda: None,
    ) -> None:
        self._parts = parts
        self._lease = lease
        self._pruning = pruning
        self._changed = changed
        self._healed = healed
        self._answered = answered
        self._ordered = ordered
        self._healing = False
        self._since_room = 0
        self._unsaid = False
        """Something is stored that is not acknowledged yet."""
        self._position_at = parts.boot()

    async def run(self) -> None:
        """Read until cancelled; a lost credential or lease only waits for a better one."""
        while True:
            await self._lease.held.wait()
            feed = self._feed()
            try:
                async for item in feed.items():
                    await self._take(feed, item)
            except Unauthorized as error:
                self._parts.situation.unauthorized = True
                self._parts.situation.hub_error = str(error)
                self._lease.held.clear()
                self._lease.renew_soon()
            except Displaced:
                self._parts.log.info("feed displaced")
                self._lease.held.clear()
                self._lease.renew_soon()
            finally:
                await feed.close()

    def _feed(self) -> Feed:
        parts = self._parts
        binding = parts.binding
        return Feed(
            parts.hub,
            channel=binding.channel,
            types=TYPES,
            cursor=binding.cursor,
            holder=binding.holder,
            fence=parts.situation.fence,
            known=self._known,
            configured_at=lambda: parts.binding.configured_at,
            watermark=binding.watermark or 0,
            clock=Clock(wall=parts.now, monotonic=parts.boot, sleep=asyncio.sleep),
        )

    async def _known(self, message: str, event: int) -> bool:
        return await self._parts.journal.read(messages.known, message, event)

    async def _take(self, feed: Feed, item: Batch | Transport | Gap) -> None:
        situation = self._parts.situation
        match item:
            case Transport(name=name, why=why):
                situation.transport, situation.transport_why = name, why
                self._parts.log.info("transport", extra={"transport": name, "why": why})
                self._parts.noticed()
            case Gap(first=first, last=last):
                situation.gap = {"first": first, "last": last}
                self._parts.log.warning("gap", extra=situation.gap)
            case Batch():
                await self._commit(feed, item)
                if self._healing and not item.healed:
                    self._healed()
                self._healing = item.healed

    async def _commit(self, feed: Feed, batch: Batch) -> None:
        parts = self._parts
        if parts.boot() >= parts.situation.lease_until:
            self._lease.held.clear()
            self._lease.renew_soon()
        await self._lease.held.wait()
        arrived, cancels = self._parse(batch.events)
        decided = self._decided(batch.events)
        ordered = controls.found_in(batch.events, parts)
        await self._room(arrived)
        due = batch.cursor != parts.binding.cursor and parts.boot() - self._position_at > POSITION_SECONDS
        if arrived or cancels or decided or ordered or due or batch.meets is not None:
            self._position_at = parts.boot()
            unused = await parts.write(
                _store,
                arrived,
                cancels,
                decided,
                ordered,
                cursor=batch.cursor,
                watermark=batch.watermark,
                meets=batch.meets,
                at=parts.now(),
            )
            for why in unused:
                parts.log.warning("answer not used", extra={"why": why})
        parts.binding = parts.binding.evolve(cursor=batch.cursor, watermark=batch.watermark)
        if parts.unseen.missed({each.id for each in arrived}, batch.watermark) and not batch.healed:
            self._healed()
        if any(decisions.is_partial(each) for each in decided):
            self._answered()
        if ordered:
            self._ordered()
        if arrived or cancels or decided:
            self._changed()
        self._unsaid = self._unsaid or bool(batch.events)
        if self._unsaid and parts.binding.subscription is not None and not self._own(arrived, batch):
            await self._acknowledge(feed, parts.binding.subscription, batch.cursor)
        await self._pruning.arrived(len(arrived))

    def _own(self, arrived: Sequence[Message], batch: Batch) -> bool:
        """Whether it is only what this agent said itself: acknowledged with the next, since nobody waits for it."""
        me = self._parts.binding.agent
        return 0 < len(batch.events) == len(arrived) and all(each.author.id == me for each in arrived)

    async def _acknowledge(self, feed: Feed, subscription: str, cursor: str) -> None:
        try:
            faultpoint.hit("acknowledge.before")
            await feed.acknowledge(subscription, cursor)
            faultpoint.hit("acknowledge.after")
        except (HubAway, HubError) as error:
            self._parts.log.info("acknowledgement put off to the next batch", extra={"why": error.sentence})

    def _parse(self, events: Sequence[dict[str, Any]]) -> tuple[list[Message], list[str]]:
        """The messages and withdrawals of a batch; what cannot be read is logged and passed over."""
        arrived: list[Message] = []
        cancels: list[str] = []
        for event in events:
            data = event.get("data")
            try:
                if event.get("type") == "message.created":
                    arrived.append(Message.parse((data or {})["message"]))
                elif event.get("type") == "message.cancel":
                    cancels.append(str((data or {})["message"]))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                self._parts.log.warning("event not understood", extra={"number": event.get("id"), "why": str(error)})
        return arrived, cancels

    def _decided(self, events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The requests to people of this agent among the events, as they are now."""
        found = [event["data"] for event in events if event.get("type") == "request.updated" and event.get("data")]
        told = [data.get("request") for data in found if isinstance(data, dict)]
        return [each for each in told if isinstance(each, dict) and self._is_mine(each)]

    def _is_mine(self, request: dict[str, Any]) -> bool:
        author = request.get("author")
        return isinstance(author, dict) and author.get("id") == self._parts.binding.agent

    async def _room(self, arrived: Sequence[Message]) -> None:
        """Take nothing more in while the journal is at its bound: the hub keeps what is not acknowledged (P8)."""
        self._since_room += sum(len(each.content) for each in arrived)
        if self._since_room < ROOM_BYTES:
            return
        parts = self._parts
        while await parts.journal.read(space.used_bytes) > JOURNAL_BYTES:
            await self._pruning.forget()
            parts.situation.last_error = FULL
            parts.log.warning("journal full", extra={"bytes": JOURNAL_BYTES})
            await asyncio.sleep(FULL_SECONDS)
        if parts.situation.last_error == FULL:
            parts.situation.last_error = None
        self._since_room = 0


def _store(
    conn: Connection,
    arrived: Sequence[Message],
    cancels: Sequence[str],
    decided: Sequence[dict[str, Any]] = (),
    ordered: Sequence[Control] = (),
    *,
    cursor: str,
    watermark: int,
    meets: int | None = None,
    at: float,
) -> list[str]:
    """Store a batch and its position; why what it says of questions to people is not used, where it is not."""
    messages.intake(conn, arrived, cursor=cursor, watermark=watermark, at=at)
    for message in cancels:
        job = jobs.of_message(conn, message)
        if job is None:
            continue
        if job.state is JobState.QUEUED:
            jobs.move(conn, job.id, JobEvent.WITHDRAW, at=at, who="requester", why="withdrawn")
        elif job.state in AT_THE_AGENT and job.cancel is None:
            jobs.set_columns(conn, job.id, cancel="the requester")
            jobs.note(conn, job.id, at=at, who="requester", why="asked to cancel")
    if not arrived:
        bindings.note_position(conn, cursor, watermark)
    if meets is not None:
        # With what was healed: a process that dies before it has compared its results does it when it starts.
        bindings.mend(conn, meets)
    controls.store(conn, ordered)
    me = bindings.get(conn) if decided else None
    if me is None:
        return []
    found = [approvals.take(conn, each, agent=me.agent, channel=me.channel, at=at) for each in decided]
    return [why for why in found if why is not None]
