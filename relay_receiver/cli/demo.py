"""`relay demo`: the main job, live, with a hub and two agents of its own."""

import json
import sys

import click

from relay_receiver.cli.acting import refuse_in_a_job
from relay_receiver.cli.options import Command
from relay_receiver.cli.output import ERROR, as_json, write_json
from relay_receiver.jobs.text import printable
from relay_receiver.wire.errors import RelayError


@click.command(cls=Command)
@click.option(
    "--adapter",
    type=click.Choice(["command", "codex"]),
    default="command",
    help="Who plays the agents: a small program of this project, or the installed Codex.",
)
@click.option("--argv", metavar="JSON", help="Another program, such as '[\"/path/to/codex\"]'.")
@click.option("--keep", is_flag=True, help="Leave it running, and say how to look around.")
def demo(adapter: str, argv: str | None, keep: bool) -> None:  # noqa: FBT001 - click passes flags so
    """See it work, in under a minute: a hub and two agents in a temporary home, on this machine alone.

    Exit status 0 where everything held. In JSON, what happens is told on stderr and the answer is
    {held, seconds, checks, home}.
    """
    refuse_in_a_job()
    from relay_receiver.testing import demo as playing
    from relay_receiver.testing.demo_stage import Cast

    played = playing.run(Cast.of(adapter, _words(argv)), _say, keep=keep)
    if as_json():
        write_json(played.to_json(), sys.stdout)
    _say(f"\n{played.last_line()}")
    if not played.held:
        click.get_current_context().exit(ERROR)


def _say(line: str) -> None:
    stream = sys.stderr if as_json() else sys.stdout
    stream.write("\n".join(printable(each) for each in line.split("\n")) + "\n")
    stream.flush()


def _words(text: str | None) -> list[str]:
    try:
        words = json.loads(text or "[]")
    except ValueError:
        words = None
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        return words
    raise RelayError("--argv is a JSON list of words.", code="usage", hint="""relay demo --argv '["/path/program"]'""")
