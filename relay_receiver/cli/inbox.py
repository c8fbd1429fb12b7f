"""`relay inbox`: a durable consumer by hand. `relay watch`: the feed in the foreground."""

import asyncio
import contextlib
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from relay_receiver.cli.acting import Actor, actor, of, profile
from relay_receiver.cli.exchange import place
from relay_receiver.cli.options import DURATION, Command, Group, channel_option
from relay_receiver.cli.output import as_json, emit, table, write_json
from relay_receiver.jobs.text import visible

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
def watch(channel: str | None, seconds: float | None) -> None:
    """Follow a channel's feed in the foreground: in JSON, one event a line."""
    asyncio.run(_watch(actor(), channel, seconds))


async def _watch(who: Actor, channel: str | None, seconds: float | None) -> None:
    async def listen(hub: "Hub") -> None:
        from relay_receiver.client.feed import Batch, Feed

        where, _ = await place(who, hub, channel)
        feed = Feed(hub, channel=where, types=("message.created", "message.stage"), cursor=None)
        try:
            async for item in feed.items():
                if isinstance(item, Batch):
                    for event in item.events:
                        _show(event)
        finally:
            await feed.close()

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await who.converse(listen)


def _show(event: Mapping[str, Any]) -> None:
    if as_json():
        write_json(event, sys.stdout)
        return
    data = event.get("data") or {}
    message = data.get("message")
    if isinstance(message, Mapping):
        line = f"{message['author']['name']} ({message['kind']}): {message['content']}"
    else:
        line = " ".join([str(event["type"]), *(str(value) for value in data.values() if isinstance(value, str))])
    sys.stdout.write(visible(line) + "\n")
    sys.stdout.flush()
