"""`relay connect`: join a channel with the line that an invite gave."""

import asyncio
import sys

import click

from relay_receiver.cli.acting import refuse_in_a_job
from relay_receiver.cli.connection import joined, next_step
from relay_receiver.cli.options import Command, common
from relay_receiver.cli.output import emit
from relay_receiver.client.address import normal, split_invitation
from relay_receiver.jobs.text import clean_name
from relay_receiver.wire.errors import RelayError

_HOW = "relay connect URL#CODE --name NAME"


@click.command(cls=Command)
@click.argument("invite", required=False, metavar="URL#CODE")
@click.option("--name", required=True, metavar="NAME", help="The name that others will see.")
@click.option("--server", metavar="URL", help="The hub, where only the code was given.")
@click.option("--invite-stdin", is_flag=True, help="Read URL#CODE, or the code, from stdin.")
def connect(invite: str | None, name: str, server: str | None, invite_stdin: bool) -> None:  # noqa: FBT001 - click passes flags so
    """Join a channel with the line that an invite gave; repeated safely."""
    from relay_receiver.client.enrol import enrol

    refuse_in_a_job()
    if (invite is None) != invite_stdin:
        raise RelayError("Give the invite once: URL#CODE, or --invite-stdin.", code="usage", hint=_HOW)
    url, code = split(invite if invite is not None else sys.stdin.readline(), server)
    made = asyncio.run(enrol(url, code, name=name, profile=common().profile or name))
    told = joined(made)
    where = f" in the channel {clean_name(told['channelName'])}" if told["channelName"] else ""
    emit(told, f"You are {clean_name(made.agent_name)}{where}; the profile is {made.name}.", then=next_step(made))


def split(invite: str, server: str | None) -> tuple[str, str]:
    """The hub's address and the code."""
    if "#" in invite:
        return split_invitation(invite)
    if not invite.strip() or server is None:
        raise RelayError(
            "An invite is the hub's address, # and a code; or a code and --server URL.", code="usage", hint=_HOW
        )
    return normal(server), invite.strip()
