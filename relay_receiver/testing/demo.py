"""The demo: sets the stage in a temporary home, plays its acts, and takes everything down again."""

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relay_receiver.processes import paths
from relay_receiver.testing.demo_acts import Check, play
from relay_receiver.testing.demo_stage import AGENTS, Cast, Stage
from relay_receiver.wire.errors import RelayError


@dataclass(frozen=True, kw_only=True, slots=True)
class Played:
    """How the demo went. `home` is where it still runs, if it does."""

    checks: tuple[Check, ...]
    seconds: float
    home: Path | None

    @property
    def held(self) -> bool:
        """Whether everything held."""
        return bool(self.checks) and all(check.held for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        """The answer of `relay demo`."""
        return {
            "held": self.held,
            "seconds": round(self.seconds, 1),
            "checks": [{"what": check.what, "held": check.held} for check in self.checks],
            "home": None if self.home is None else str(self.home),
        }

    def last_line(self) -> str:
        """One line that says it all."""
        failed = [check.what for check in self.checks if not check.held]
        if not failed and self.held:
            return f"Everything held: {len(self.checks)} of {len(self.checks)} checks, in {self.seconds:.1f} s."
        return f"NOT everything held: {len(failed)} of {len(self.checks)} checks failed: {'; '.join(failed)}."


def run(cast: Cast, say: Callable[[str], None], *, keep: bool = False) -> Played:
    """Run the demo.

    Args:
        say: called with each line, as it happens; the lines of the play begin with the seconds since the beginning.
        keep: leave everything running afterwards.

    Raises:
        RelayError: the stage could not be set.
        KeyboardInterrupt: it was interrupted, or told to end; nothing is left.
    """
    root = Path(tempfile.mkdtemp(prefix="relay-demo-"))
    kept = False
    began = time.monotonic()

    def tell(line: str) -> None:
        gap, text = ("\n", line[1:]) if line.startswith("\n") else ("", line)
        say(f"{gap}{time.monotonic() - began:5.1f} s  {text}")

    stage = Stage(root, cast, tell)
    say(f"A hub, a person, two agents and their receivers, on this machine alone, in {root}.\n")
    try:
        with _home(stage.machine.home):
            checks = asyncio.run(_play(stage, keep=keep))
        kept = keep
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        if not kept:
            shutil.rmtree(root, ignore_errors=True)
    if kept:
        for line in _look_around(stage):
            say(line)
    return Played(checks=tuple(checks), seconds=time.monotonic() - began, home=root if kept else None)


async def _play(stage: Stage, *, keep: bool) -> list[Check]:
    current = asyncio.current_task()
    if current is not None:
        with contextlib.suppress(NotImplementedError, RuntimeError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, current.cancel)
    over = False
    try:
        await stage.set_up()
        checks = await _followed(stage)
        over = True
    finally:
        if not (over and keep):
            with contextlib.suppress(RelayError):
                await stage.clear()
    return checks


async def _followed(stage: Stage) -> list[Check]:
    following = asyncio.create_task(stage.follow(), name="channel")
    try:
        async with asyncio.timeout(stage.cast.patience):
            await stage.channel.live()
        return await play(stage)
    finally:
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following


@contextlib.contextmanager
def _home(home: Path) -> Iterator[None]:
    """The demo's home as this process's own, for as long as it plays."""
    before = os.environ.get(paths.HOME)
    os.environ[paths.HOME] = str(home)
    try:
        yield
    finally:
        if before is None:
            del os.environ[paths.HOME]
        else:
            os.environ[paths.HOME] = before


def _look_around(stage: Stage) -> Iterator[str]:
    alice, bob = AGENTS
    yield "\nIt is still running. To look around:"
    yield f"  export RELAY_HOME={shlex.quote(str(stage.machine.home))}"
    yield "  relay status"
    yield "  relay messages list --profile default"
    yield f'  relay messages send --to {bob} --wait --content "Add 2 and 3." --profile default'
    yield f"  relay receiver jobs --profile {alice}"
    yield "and to end it:"
    yield f"  relay receiver stop --profile {alice}; relay receiver stop --profile {bob}; relay hub stop"
    yield f"  rm -r {shlex.quote(str(stage.root))}"
