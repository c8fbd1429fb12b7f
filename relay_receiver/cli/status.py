"""`relay status`: the overview, and what you declare to others."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from relay_receiver.cli import needs, told
from relay_receiver.cli.acting import of, profile
from relay_receiver.cli.exchange import place
from relay_receiver.cli.looks import Looks, for_receiver
from relay_receiver.cli.options import Group, channel_option
from relay_receiver.cli.output import DONE, PERSON, aimed, emit, table
from relay_receiver.cli.receiver import target
from relay_receiver.client import profiles
from relay_receiver.processes import files
from relay_receiver.wire.errors import RelayError

if TYPE_CHECKING:
    from relay_receiver.client.hub import Hub


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def status(ctx: click.Context) -> None:
    """Show the hub, the receivers of this machine, and what needs you; or set, renew and show what you declare.

    Exit status 4 if something needs you: here, or at the hubs of your own profiles.
    """
    if ctx.invoked_subcommand is not None:
        return
    from relay_receiver.cli.hub import running

    hub = running()
    looks = Looks()
    looks.ask()  # while the receivers answer, so do the hubs
    at_hubs, away = needs.at_the_hubs(needs.people())
    receivers = looks.wait()
    found = _all_needs(receivers, at_hubs)
    known = [_account(name) for name in profiles.names()]
    value = {"hub": hub, "profiles": known, "receivers": receivers, "needsYou": found, "away": away}
    lines = [f"hub: {hub['url']}, process {hub['pid']}" if hub.get("url") else "hub: none runs on this machine"]
    lines += [f"profile: {each['name']} as {each.get('agent') or each.get('error')}" for each in known]
    rows = [(r.get("profile"), r.get("channelName"), r.get("adapter"), r.get("state"), r.get("pid")) for r in receivers]
    lines += ["receivers:", *(f"  {line}" for line in table(rows, empty="none"))]
    lines += [f"hub of {each['profile']}: {each['error']} What needs you there is not known." for each in away]
    lines += told.needs(found)
    emit(value, lines, then=found[0]["next"] if found else _first_step(value))
    ctx.exit(PERSON if found else DONE)


def _all_needs(receivers: Sequence[dict[str, Any]], at_hubs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What needs a person, each once: requests, then receivers of this machine, then those elsewhere."""
    here = {(each.get("agent"), each.get("channel")) for each in receivers}
    asked = [each for each in at_hubs if each["request"] is not None]
    elsewhere = [
        each
        for each in at_hubs
        if each["request"] is None and (each["who"].get("id"), each["channel"].get("id")) not in here
    ]
    shown = {each["request"].get("id") for each in asked}
    standing = [need for receiver in receivers for need in needs.of_receiver(receiver) if need["request"] not in shown]
    return [*(_for_person(each) for each in asked), *standing, *(_for_person(each) for each in elsewhere)]


def _for_person(need: dict[str, Any]) -> dict[str, Any]:
    """A need with its line for that person: with the profile where there are several."""
    alone = len(profiles.names()) == 1
    return {**need, "next": aimed(need["next"], profile=None if alone else need["profile"])}


def _account(name: str) -> dict[str, Any]:
    try:
        found = profiles.load(name)
    except RelayError as error:
        return {"name": name, "error": error.sentence}
    channels = [{"id": channel, "name": called} for channel, called in found.channels]
    return {"name": name, "agent": found.agent_name, "role": found.role, "url": found.url, "channels": channels}


def _first_step(value: dict[str, Any]) -> str:
    if not value["profiles"]:
        return "relay hub owner-code" if value["hub"].get("url") else "relay hub start"
    if all(each.get("role") != "agent" for each in value["profiles"]):
        return "relay peers" if any(each.get("channels") for each in value["profiles"]) else "relay channels create lab"
    if stopped := [each for each in value["receivers"] if each.get("state") == "stopped"]:
        return for_receiver("relay receiver start", stopped[0])
    if value["receivers"]:
        return for_receiver("relay receiver status", value["receivers"][0])
    return "relay receiver start"


@status.command("set")
@channel_option
@click.option("--mode", required=True, type=click.Choice(["available", "mentions_only", "paused"]))
@click.option("--text", default="", help="A line for people.")
def set_command(channel: str | None, mode: str, text: str) -> None:
    """Declare what you are up to; a running receiver keeps it alive. It controls no delivery."""
    chosen = profile()
    who = of(chosen)

    async def ask(hub: "Hub") -> tuple[str, dict[str, Any]]:
        where, _ = await place(who, hub, channel)
        before = [s for s in (await hub.state())["memberStatuses"] if (s["agentId"], s["channelId"]) == (who.id, where)]
        return where, await hub.declare(where, rev=before[0]["rev"] if before else 0, mode=mode, text=text)

    where, declared = who.talk(ask)
    if chosen.role == "agent":
        _keep(target(chosen, where).folder, {"mode": mode, "text": text, "rev": declared["rev"]})
    emit(declared, f"Declared: {mode} {text}".rstrip(), then="relay status show")


def _keep(folder: Path, said: dict[str, Any]) -> None:
    """Leave the declaration where a running receiver finds and renews it."""
    from relay_receiver.receiver.presence import DECLARATION

    files.write_private(files.private_dir(folder) / DECLARATION, json.dumps(said).encode())


@status.command("ping")
@channel_option
def ping_command(channel: str | None) -> None:
    """Tell the hub that you are there."""
    who = of(profile())

    async def ask(hub: "Hub") -> dict[str, Any]:
        where, _ = await place(who, hub, channel)
        return await hub.ping(where)

    emit(who.talk(ask), "The hub knows that you are there.", then="relay status show")


@status.command("show")
@channel_option
def show_command(channel: str | None) -> None:
    """Show what the members of a channel declare."""
    who = of(profile())

    async def ask(hub: "Hub") -> list[dict[str, Any]]:
        where, _ = await place(who, hub, channel)
        state = await hub.state()
        return [each for each in state["memberStatuses"] if each["channelId"] == where]

    found = who.talk(ask)
    rows = [(each["agentId"], each["mode"], each["text"], each["validUntil"]) for each in found]
    emit({"statuses": found}, table(rows, empty="Nobody declares anything."), then="relay status set --mode available")
