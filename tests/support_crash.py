"""The tables of crash trials: those of the package, and the same with the real Codex."""

import random
import tempfile
from pathlib import Path

from support_faults import codex_crash_world, crash_world

from relay_receiver.testing.trials import (
    TABLES,
    Row,
    Work,
    agent,
    at_any_moment,
    hub,
    receiver,
    with_a_job_running,
)

CODEX: dict[str, Work] = {
    "codex: receiver killed, any moment": at_any_moment(receiver),
    "codex: receiver killed in a turn": with_a_job_running(receiver),
    "codex: hub killed, any moment": at_any_moment(hub),
    "codex: app-server killed in a turn": with_a_job_running(agent),
}
"""With the real Codex; these take several times as long."""


def run(name: str, trials: int, seed: int) -> Row:
    """Trials of one kind in a world of their own."""
    row = Row(name=name)
    made = codex_crash_world if name in CODEX else crash_world
    with tempfile.TemporaryDirectory(prefix="crash") as folder, made(Path(folder) / "w") as c:
        try:
            (TABLES | CODEX)[name](c, row, trials, random.Random(seed))  # noqa: S311 - a seed repeats it
        except AssertionError as error:
            row.broken.append(f"seed {seed}: {error}")
        row.judge(c)
    return row
