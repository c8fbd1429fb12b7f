"""`relay connection`: a connection file, which the hub wrote, into a profile."""

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import click

from relay_receiver.cli.acting import refuse_in_a_job
from relay_receiver.cli.options import Group, common
from relay_receiver.cli.output import emit
from relay_receiver.client.profiles import DEFAULT, names
from relay_receiver.jobs.text import clean_name

if TYPE_CHECKING:
    from relay_receiver.client.profiles import Profile


@click.group(cls=Group)
def connection() -> None:
    """Import a connection file into a profile."""


@connection.command("import")
@click.option("--stdin", "from_stdin", is_flag=True, required=True, help="Read the file from stdin.")
def import_command(from_stdin: bool) -> None:  # noqa: FBT001 - click passes flags so
    """Import a connection file from stdin, such as the hub's owner.json."""
    _ = from_stdin
    from relay_receiver.client.enrol import import_connection

    refuse_in_a_job()
    made = asyncio.run(import_connection(sys.stdin.read(), profile=common().profile or DEFAULT))
    emit(joined(made), f"You are {clean_name(made.agent_name)}; the profile is {made.name}.", then=next_step(made))


def joined(made: "Profile") -> dict[str, Any]:
    """What a join gave: the member, and the channel joined last."""
    channel, name = made.channels[-1] if made.channels else (None, None)
    return {
        "agentId": made.agent,
        "name": made.agent_name,
        "role": made.role,
        "workspace": made.workspace,
        "channel": channel,
        "channelName": name,
        "profile": made.name,
    }


def next_step(made: "Profile") -> str:
    """The line that a new member types next."""
    if made.role == "agent":
        alone = names() == [made.name]
        return "relay receiver start --directory DIR" + ("" if alone else f" --profile {made.name}")
    return "relay peers" if made.channels else "relay channels create lab"
