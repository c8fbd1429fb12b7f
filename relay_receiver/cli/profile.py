"""`relay whoami`, `relay peers`, `relay profile`: who you are, and with whom."""

from typing import TYPE_CHECKING, Any

import click

from relay_receiver.cli.acting import actor, look, of
from relay_receiver.cli.acting import profile as chosen_profile
from relay_receiver.cli.exchange import place
from relay_receiver.cli.messages import receiver_state
from relay_receiver.cli.options import Command, Group, channel_option
from relay_receiver.cli.output import emit, table
from relay_receiver.client import profiles
from relay_receiver.client.profiles import JobCredential, Profile
from relay_receiver.jobs.text import clean_name

if TYPE_CHECKING:
    from relay_receiver.client.hub import Hub


def _told(found: Profile) -> dict[str, Any]:
    return {
        "profile": found.name,
        "agentId": found.agent,
        "name": found.agent_name,
        "role": found.role,
        "workspace": {"id": found.workspace, "name": found.workspace_name},
        "url": found.url,
        "channels": [{"id": identity, "name": name} for identity, name in found.channels],
    }


@click.command(cls=Command)
def whoami() -> None:
    """Show who you are here, and where."""
    credential = JobCredential.from_environment()
    if credential is not None:
        value = {
            "agentId": credential.agent,
            "name": credential.agent_name,
            "workspace": {"id": credential.workspace},
            "url": credential.url,
            "channels": [{"id": credential.channel}],
            "job": credential.job,
            "message": credential.message,
        }
        emit(value, f"{clean_name(credential.agent_name)}, in the job {credential.job}.", then="relay peers")
        return
    found = look()
    where = ", ".join(name for _, name in found.channels) or "no channel yet"
    emit(
        _told(found),
        f"{clean_name(found.agent_name)} ({found.role}) in {found.workspace_name} at {found.url}; channels: {where}.",
        then="relay peers",
    )


@click.command(cls=Command)
@channel_option
def peers(channel: str | None) -> None:
    """Show who is in your channel, and whose receiver runs."""
    who = actor()

    async def ask(hub: "Hub") -> list[dict[str, Any]]:
        if channel is None and len(who.channels) != 1 and not who.job:
            return await hub.peers()
        where, _ = await place(who, hub, channel)
        return await hub.members(where)

    found = who.talk(ask)
    rows = [(clean_name(p["name"]), p["kind"], receiver_state(p.get("receiver")), p["id"]) for p in found]
    emit(
        {"peers": found},
        table(rows, empty="Nobody else is here."),
        then='relay messages send --to NAME --content "..."',
    )


@click.group(cls=Group)
def profile() -> None:
    """List, show and update profiles."""


@profile.command("list")
def list_command() -> None:
    """List the profiles of this machine."""
    value = [_told(profiles.load(name)) for name in profiles.names()]
    rows = [(p["profile"], p["name"], p["role"], p["workspace"]["name"], p["url"]) for p in value]
    emit({"profiles": value}, table(rows, empty="There is no profile yet."), then="relay profile show")


@profile.command("show")
def show_command() -> None:
    """Show a profile as the hub has it."""
    found = chosen_profile()
    identity = of(found).talk(lambda hub: hub.identity(found.identity()))
    value = {**_told(found), "identity": identity}
    lines = [f"{key}: {each}" for key, each in identity.items() if each not in {None, ""}]
    emit(value, lines, then="relay profile update --signature TEXT")


@profile.command("update")
@click.option("--name", help="The name that others see.")
@click.option("--signature", help="A line about you.")
@click.option("--avatar-url", help="A picture.")
def update_command(name: str | None, signature: str | None, avatar_url: str | None) -> None:
    """Change the profile that others see."""
    found = chosen_profile()
    given = {"name": name, "signature": signature, "avatarUrl": avatar_url}
    changes = {key: value for key, value in given.items() if value is not None}

    async def ask(hub: "Hub") -> dict[str, Any]:
        before = await hub.identity(found.identity())
        return await hub.change_identity(found.identity(), rev=before["rev"], **changes)

    emit({"identity": of(found).talk(ask)}, "The profile is changed.", then="relay profile show")
