"""The crash proof in short, on a person's own machine and disk: everything is killed, and nothing may be lost."""

import contextlib
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from relay_receiver.processes import paths
from relay_receiver.testing.trial_place import NotInTime
from relay_receiver.testing.trial_world import CrashWorld, crash_world
from relay_receiver.testing.trials import TABLES, Row
from relay_receiver.wire.errors import RelayError

TRIALS = 20
KINDS = (
    "receiver killed, at its points",
    "hub killed, at its points",
    "both killed, any moment",
    "keeper or launcher, at their points",
    "receiver killed, any moment",
    "hub killed, any moment",
    "agent killed, job running",
    "keeper killed, job running",
    "whole group at once, any moment",
)
"""The kinds of trials, those first that the fewest trials should have."""
_ENDING = (signal.SIGTERM, signal.SIGHUP)
_REMOVE_TRIES = 100
_REMOVE_SECONDS = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class Tested:
    """What the trials came to."""

    rows: tuple[Row, ...]
    seconds: float
    directory: Path
    """On whose disk it was."""

    @property
    def broken(self) -> list[str]:
        """What broke a promise, one line each."""
        return [f"{row.name}: {line}" for row in self.rows for line in row.broken]

    @property
    def held(self) -> bool:
        """Whether something was killed, and every promise was kept all the same."""
        return not self.broken and any(row.hits for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """The answer of `relay receiver selftest`."""
        return {
            "held": self.held,
            "trials": sum(row.trials for row in self.rows),
            "seconds": round(self.seconds, 1),
            "directory": str(self.directory),
            "rows": [
                {
                    "killed": row.name,
                    "trials": row.trials,
                    "hit": row.hits,
                    "asked": row.asked,
                    "answered": row.ends["answered"],
                    "failed": row.ends["failed"],
                    "unknown": row.settled,
                }
                for row in self.rows
            ],
            "broken": self.broken,
        }

    def last_line(self) -> str:
        """One line that says it all."""
        trials = sum(row.trials for row in self.rows)
        if self.held:
            return (
                f"Everything held in {trials} trials, in {self.seconds:.0f} s: no job started twice, no result doubled "
                "or lost, and what nobody can know was said to be unknown."
            )
        if not self.broken:
            return f"Nothing is proven: no kill hit anything in {trials} trials."
        return f"NOT everything held: {len(self.broken)} times a promise was broken in {trials} trials."


def table(rows: Sequence[Row]) -> Iterator[str]:
    """The rows for people."""
    yield (
        f"{'killed':<37}{'trials':>6}{'hit':>5}{'requests':>10}{'answered':>10}{'failed':>8}{'unknown':>9}{'broken':>8}"
    )
    for row in rows:
        ends = f"{row.asked:>10}{row.ends['answered']:>10}{row.ends['failed']:>8}{row.settled:>9}"
        yield f"{row.name:<37}{row.trials:>6}{row.hits:>5}{ends}{len(row.broken):>8}"


def run(say: Callable[[str], None], *, trials: int = TRIALS, directory: Path | None = None) -> Tested:
    """Try it below `directory`, in a home of its own that is removed again.

    Args:
        say: called with each line, as it happens.
        directory: on which disk; beside the relay home unless given.

    Raises:
        RelayError: nothing can be written there, or the hub or the receiver does not start.
        KeyboardInterrupt: it was interrupted, or told to end; nothing is left.
    """
    beside = _there(paths.home().parent) if directory is None else directory
    root = _folder(beside)
    began = time.monotonic()
    say(f"A hub, a person and an agent of their own, in {root}; {trials} trials.")
    try:
        with _told_to_end(), crash_world(root) as c:
            rows = _tried(c, trials, say)
            _judge(c, rows)
    finally:
        _remove(root)
    return Tested(rows=tuple(rows), seconds=time.monotonic() - began, directory=beside)


def _tried(c: CrashWorld, trials: int, say: Callable[[str], None]) -> list[Row]:
    rows = []
    rnd = random.Random()  # noqa: S311 - moments, not secrets
    for name, share in _shares(trials):
        row = Row(name=name)
        rows.append(row)
        try:
            TABLES[name](c, row, share, rnd)
        except (NotInTime, RelayError) as error:
            row.broken.append(str(error))
            return rows
        say(f"  {name}: {row.trials} of {share} tried, {row.hits} hit")
    return rows


def _judge(c: CrashWorld, rows: Sequence[Row]) -> None:
    try:
        c.revive()
        for row in rows:
            row.judge(c)
    except (NotInTime, RelayError) as error:
        rows[-1].broken.append(f"it could not be looked at any more: {error}")


def _shares(trials: int) -> list[tuple[str, int]]:
    """How many trials of each kind."""
    each, more = divmod(trials, len(KINDS))
    return [(name, share) for place, name in enumerate(KINDS) if (share := each + (place < more))]


def _there(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    return next((each for each in (folder, *folder.parents) if each.is_dir()), folder)


def _folder(beside: Path) -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix="relay-selftest-", dir=beside))
    except OSError as error:
        raise RelayError(
            f"Nothing can be written in {beside}: {error.strerror}.",
            code="not_writable",
            hint="relay receiver selftest --directory DIR",
        ) from error


def _remove(root: Path) -> None:
    """Remove it, also from under a program that is just ending."""
    for _ in range(_REMOVE_TRIES):
        shutil.rmtree(root, ignore_errors=True)
        if not root.exists():
            return
        time.sleep(_REMOVE_SECONDS)


@contextlib.contextmanager
def _told_to_end() -> Iterator[None]:
    """Be interrupted by what ends a program, so that nothing is left."""
    before = {number: signal.signal(number, _interrupt) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _ = number, frame
    raise KeyboardInterrupt
