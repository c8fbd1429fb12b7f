"""`relay inbox`: a durable consumer by hand. `relay watch`: the feed in the foreground."""

import asyncio
import contextlib
import sys
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any

import click

from relay_receiver.cli import needs, output, told
from relay_receiver.cli.acting import Actor, actor, of, profile
from relay_receiver.cli.exchange import place
from relay_receiver.cli.options import DURATION, Command, Group, channel_option
from relay_receiver.cli.output import as_json, emit, table, write_json
from relay_receiver.wire.errors import RelayError

TYPES = ("message.created", "message.stage", "receiver.updated", "request.created", "request.updated")
"""Events that `watch` shows: what is said, how far it is, and what is in the way."""

if TYPE_CHECKING:
    from relay_receiver.client.hub import Hub


@click.group(cls=Group)
def inbox() -> None:
    """A durable consumer by hand: pull and ack."""


@inbox.command()
@channel_option
@click.option("--new", is_flag=True, help="Make a subscription for this channel first.")
def pull(channel: str | None, new: bool) -> None:  # noqa: FBT001 - click passes flags so
    """Show what your subscriptions have not acknowledged yet."""
    who = of(profile())

    async def ask(hub: "Hub") -> dict[str, Any]:
        if new:
            where, _ = await place(who, hub, channel)
            await hub.subscribe(where)
        return await hub.inbox()

    found = who.talk(ask)
    rows = [(d["subscription"], len(d["events"]), d["cursor"], "gap" if d["gap"] else "") for d in found["deliveries"]]
    then = f"relay inbox ack {rows[0][0]} {rows[0][2]}" if rows else "relay inbox pull --new"
    emit(found, table(rows, empty="You have no subscription."), then=then)


@inbox.command()
@click.argument("subscription")
@click.argument("cursor")
def ack(subscription: str, cursor: str) -> None:
    """Acknowledge everything up to a cursor."""
    of(profile()).talk(lambda hub: hub.acknowledge(subscription, cursor))
    emit({"subscription": subscription, "cursor": cursor}, "Acknowledged.", then="relay inbox pull")


@click.command(cls=Command)
@channel_option
@click.option("--seconds", type=DURATION, metavar="N", help="End after this time.")
@click.option("--needs-me", is_flag=True, help="Ring, and show only what needs you, in all your channels.")
def watch(channel: str | None, seconds: float | None, needs_me: bool) -> None:  # noqa: FBT001 - click passes flags so
    """Follow a channel's feed in the foreground: in JSON, one event a line.

    With --needs-me: what waits for you in any of your channels, with a bell and the line to type, once as it comes up.
    """
    if not needs_me:
        asyncio.run(_watch(actor(), channel, seconds))
        return
    if channel is not None:
        raise RelayError("--needs-me looks at all your channels.", code="usage", hint="Leave --channel out.")
    asyncio.run(_for(seconds, needs.watch(needs.of_person(profile()))))


async def _for(seconds: float | None, what: Coroutine[Any, Any, None]) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await what


async def _watch(who: Actor, channel: str | None, seconds: float | None) -> None:
    async def listen(hub: "Hub") -> None:
        from relay_receiver.client.feed import Batch, Feed

        where, _ = await place(who, hub, channel)
        feed = Feed(hub, channel=where, types=TYPES, cursor=None)
        try:
            async for item in feed.items():
                if isinstance(item, Batch):
                    for event in item.events:
                        _show(event)
        finally:
            await feed.close()

    await _for(seconds, who.converse(listen))


def _show(event: Mapping[str, Any]) -> None:
    if as_json():
        write_json(event, sys.stdout)
        return
    sys.stdout.write(output.line(line(event)) + "\n")
    sys.stdout.flush()


def line(event: Mapping[str, Any]) -> str:
    """An event in one line, for people; a message of several lines as it is."""
    kind, data = str(event.get("type")), event.get("data") or {}
    message, asked = data.get("message"), data.get("request")
    if isinstance(message, Mapping):
        return f"{message['author']['name']} ({message['kind']}): {message['content']}"
    if isinstance(asked, Mapping):
        who = (asked.get("author") or {}).get("name")
        return f"{kind} {asked.get('id')} {asked.get('state')}: {asked.get('kind')} of {who}: {asked.get('title')}"
    said = [str(data[name]) for name in ("message", "agent", "state", "to") if data.get(name)]
    if kind == "message.stage":
        said.append(told.delivery(data))
    elif data.get("detail"):
        said.append(str(data["detail"]))
    return " ".join([kind, *said])
