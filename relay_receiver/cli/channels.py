"""`relay spaces`, `relay channels`, `relay invites`: where members meet, and how more of them join."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from relay_receiver.cli.acting import actor, of, profile
from relay_receiver.cli.exchange import place
from relay_receiver.cli.options import Group, channel_option
from relay_receiver.cli.output import emit, table
from relay_receiver.client import profiles
from relay_receiver.client.profiles import Profile
from relay_receiver.jobs.text import clean_name

if TYPE_CHECKING:
    from relay_receiver.client.hub import Hub


def told(chosen: Profile, invite: Mapping[str, Any]) -> dict[str, Any]:
    """An invite with the whole line to type elsewhere."""
    return {**invite, "connect": invite.get("connect") or f"relay connect {chosen.url}#{invite['code']} --name NAME"}


def keep(chosen: Profile, channels: tuple[tuple[str, str], ...]) -> None:
    """Remember which channels a profile is in."""
    profiles.save(replace(chosen, channels=tuple(dict(channels).items())))


@click.group(cls=Group)
def spaces() -> None:
    """List the workspaces you are in."""


@spaces.command("list")
def list_spaces() -> None:
    """List the workspaces of your profiles."""
    found = {p.workspace: p for p in (profiles.load(name) for name in profiles.names())}
    value = [{"id": p.workspace, "name": p.workspace_name, "url": p.url, "profile": p.name} for p in found.values()]
    rows = [(each["name"], each["id"], each["url"], each["profile"]) for each in value]
    emit({"spaces": value}, table(rows, empty="You are in no workspace yet."), then="relay channels list")


@click.group(cls=Group)
def channels() -> None:
    """List, create and leave channels."""


@channels.command("list")
def list_channels() -> None:
    """List the channels you are in."""
    found = actor().talk(lambda hub: hub.channels())
    rows = [(clean_name(each["name"]), each["id"]) for each in found]
    emit({"channels": found}, table(rows, empty="You are in no channel yet."), then="relay channels create NAME")


@channels.command("create")
@click.argument("name")
def create_channel(name: str) -> None:
    """Create a channel, and the line with which another machine joins it."""
    chosen = profile()

    async def ask(hub: "Hub") -> tuple[dict[str, Any], dict[str, Any] | None]:
        made = await hub.create_channel(name)
        return made, told(chosen, await hub.invite(made["id"])) if chosen.role != "agent" else None

    made, invite = of(chosen).talk(ask)
    keep(chosen, (*chosen.channels, (made["id"], made["name"])))
    value = {"id": made["id"], "name": made["name"], **({"invite": invite} if invite else {})}
    lines = [f"Created the channel {clean_name(made['name'])}."]
    if invite:
        lines += ["On the other machine, within 10 minutes:", f"  {invite['connect']}"]
    emit(value, lines, then="relay peers")


@channels.command("leave")
@channel_option
def leave_channel(channel: str | None) -> None:
    """Leave a channel; a new invite is needed to come back."""
    chosen = profile()
    who = of(chosen)

    async def ask(hub: "Hub") -> tuple[str, str]:
        where = await place(who, hub, channel)
        await hub.leave_channel(where[0])
        return where

    identity, name = who.talk(ask)
    keep(chosen, tuple(each for each in chosen.channels if each[0] != identity))
    emit({"id": identity, "name": name, "left": True}, f"You left {clean_name(name)}.", then="relay channels list")


@click.group(cls=Group)
def invites() -> None:
    """Make a single-use code that lets someone join."""


@invites.command("create")
@channel_option
@click.option("--person", is_flag=True, help="For a person; without it, for an agent.")
def create_invite(channel: str | None, person: bool) -> None:  # noqa: FBT001 - click passes flags so
    """Make a code that lets one agent, or one person, join the channel within 10 minutes."""
    chosen = profile()
    who = of(chosen)

    async def ask(hub: "Hub") -> dict[str, Any]:
        where, _ = await place(who, hub, channel)
        return told(chosen, await hub.invite(where, person=person))

    made = who.talk(ask)
    emit(made, ["On the other machine, within 10 minutes:", f"  {made['connect']}"], then="relay peers")
