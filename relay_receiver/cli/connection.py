"""`relay connection`: a connection file, which the hub wrote, into a profile."""

import asyncio
import json
import sys

import click

from relay_receiver.cli.acting import refuse_in_a_job
from relay_receiver.cli.options import Group, common
from relay_receiver.cli.output import emit
from relay_receiver.jobs.text import clean_name
from relay_receiver.wire.errors import RelayError

DEFAULT = "default"


@click.group(cls=Group)
def connection() -> None:
    """Import a connection file into a profile."""


@connection.command("import")
@click.option("--stdin", "from_stdin", is_flag=True, required=True, help="Read the file from stdin.")
def import_command(from_stdin: bool) -> None:  # noqa: FBT001 - click passes flags so
    """Import a connection file from stdin, such as the hub's owner.json."""
    _ = from_stdin
    refuse_in_a_job()
    made = take(sys.stdin.read(), profile=common().profile or DEFAULT)
    emit(
        made, f"You are {clean_name(made['name'])}; the profile is {made['profile']}.", then="relay channels create lab"
    )


def take(text: str, *, profile: str) -> dict[str, str]:
    """Enrol with what a connection file says, and keep it as a profile."""
    from relay_receiver.client.enrol import enrol

    try:
        said = json.loads(text)
        url, code = str(said["url"]), str(said["code"])
        name = str(said.get("name") or "owner")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RelayError(
            "This is not a connection file.", code="usage", hint="relay connection import --stdin < DIR/owner.json"
        ) from error
    made = asyncio.run(enrol(url, code, name=name, profile=profile))
    return {"agentId": made.agent, "name": made.agent_name, "workspace": made.workspace, "profile": made.name}
