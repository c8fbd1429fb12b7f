"""`relay receiver selftest`: the crash proof in short, on this machine and its disk."""

import sys
from pathlib import Path

import click

from relay_receiver.cli.acting import refuse_in_a_job
from relay_receiver.cli.options import Command
from relay_receiver.cli.output import ERROR, as_json, write_json
from relay_receiver.jobs.text import printable


@click.command(cls=Command)
@click.option("--trials", type=click.IntRange(1, 10_000), default=20, metavar="N", help="So many kills. Default 20.")
@click.option(
    "--directory",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="On which disk. Default beside your own state.",
)
def selftest(trials: int, directory: Path | None) -> None:
    """Kill everything that can be killed, on this machine and its disk, and see that the promises hold.

    It has a hub and an agent of its own, in a directory that is removed again; yours are not touched. Exit status 0
    where everything held, else 1. In JSON the progress is told on stderr, and the answer is
    {held, trials, seconds, directory, rows, broken}.
    """
    refuse_in_a_job()
    from relay_receiver.testing import selftest as trying

    tested = trying.run(_say, trials=trials, directory=None if directory is None else directory.absolute())
    if as_json():
        write_json(tested.to_json(), sys.stdout)
    for line in ("", *trying.table(tested.rows), *tested.broken, "", tested.last_line()):
        _say(line)
    if not tested.held:
        click.get_current_context().exit(ERROR)


def _say(line: str) -> None:
    stream = sys.stderr if as_json() else sys.stdout
    stream.write(printable(line) + "\n")
    stream.flush()
