"""`relay`: the command line of hub and receiver."""

import importlib
import os
import sys
from collections.abc import Sequence

import click

from relay_receiver.cli import output
from relay_receiver.cli.options import Group

COMMANDS = {
    "hub": ("relay_receiver.cli.hub:hub", "Run the shared hub: serve, start, stop, status."),
    "connection": ("relay_receiver.cli.connection:connection", "Import a connection file into a profile."),
    "connect": ("relay_receiver.cli.connect:connect", "Join a channel with the line that an invite gave."),
    "spaces": ("relay_receiver.cli.channels:spaces", "List the workspaces you are in."),
    "channels": ("relay_receiver.cli.channels:channels", "List, create and leave channels."),
    "invites": ("relay_receiver.cli.channels:invites", "Make a single-use code that lets someone join."),
    "console": ("relay_receiver.cli.console:console", "A link that signs you in to the console in a browser."),
    "messages": ("relay_receiver.cli.messages:messages", "Send messages and requests; wait for their results."),
    "requests": ("relay_receiver.cli.requests:requests", "What agents ask of people: list, show, respond, ask."),
    "docs": ("relay_receiver.cli.docs:docs", "Shared documents: list, show, create, edit, history."),
    "tasks": ("relay_receiver.cli.tasks:tasks", "Task lists: list, show, create, set."),
    "search": ("relay_receiver.cli.search:search", "Find messages, documents, tasks and requests by their words."),
    "receiver": ("relay_receiver.cli.receiver:receiver", "The process that works for an agent: start, stop, jobs."),
    "status": ("relay_receiver.cli.status:status", "The overview; set and show what you declare to others."),
    "whoami": ("relay_receiver.cli.profile:whoami", "Who you are here, and where."),
    "peers": ("relay_receiver.cli.profile:peers", "Who is in your channels, and whose receiver runs."),
    "profile": ("relay_receiver.cli.profile:profile", "List, show and update profiles."),
    "doctor": ("relay_receiver.cli.doctor:doctor", "What is wrong, and the line that mends it."),
    "inbox": ("relay_receiver.cli.inbox:inbox", "A durable consumer by hand: pull and ack."),
    "watch": ("relay_receiver.cli.inbox:watch", "Follow a channel's feed in the foreground."),
    "notify": ("relay_receiver.cli.notify:notify", "Run a command of yours for each thing that needs you."),
    "top": ("relay_receiver.cli.top:top", "The receivers of this machine, live on the terminal."),
    "mcp": ("relay_receiver.cli.mcp:mcp", "The tools for agents, as an MCP server on stdio."),
    "skill": ("relay_receiver.cli.skill:skill", "Teach an agent to use relay."),
    "demo": ("relay_receiver.cli.demo:demo", "See it work, with a hub and two agents of its own."),
}
"""Every command: where it is, and its line of help. Nothing of it is imported before it is used."""


class LazyGroup(Group):
    """The root: imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order in which people meet them."""
        _ = ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now."""
        _ = ctx
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), name)
        return command if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in `--help`, from the table."""
        _ = ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="relay-receiver", prog_name="relay")
def relay() -> None:
    """Let AI agents give work to each other: durable, at most once, in channels that people share."""


def run(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code. Errors are told on stderr, never raised."""
    output.replace_closed()
    output.steady(sys.stdout, sys.stderr)
    try:
        with relay.make_context("relay", list(argv)) as ctx:
            relay.invoke(ctx)
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except (KeyboardInterrupt, click.Abort):
        return output.INTERRUPTED
    except BrokenPipeError:
        output.silence()
        return output.DONE
    except Exception as error:  # noqa: BLE001 - the edge: whatever happens is said in one sentence
        return output.report(error, argv)
    return output.DONE


def main() -> None:
    """Entry point of the console script."""
    if "RELAY_FAULTS" in os.environ:  # a test's, see there
        from relay_receiver.processes import keeper_faults
        from relay_receiver.wire import faultpoint

        keeper_faults.arm()
        faultpoint.install(keeper_faults.hit)
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
