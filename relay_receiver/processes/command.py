"""One job of a command under a keeper: run, waited for, killed, and found again after a restart."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from relay_receiver.processes import spool as spools
from relay_receiver.processes.ending import End, living
from relay_receiver.processes.kept import LOOK_SECONDS, Kept
from relay_receiver.processes.launch import ANSWER_SECONDS, Launcher, Line, Order, connect, started
from relay_receiver.wire.errors import RelayError


class KeeperLost(Exception):  # noqa: N818 - it says what happened
    """The keeper died without an end: what its child did is unknown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NotStarted:
    """It certainly did not start, and this attempt never will. `code` is the name of the errno, or `claimed`."""

    code: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Lost:
    """Nobody can know what it did."""

    reason: str
    alive: list[int] = field(default_factory=list)
    """Processes of it that still live."""
    unreadable: list[str] = field(default_factory=list)
    """Files of it in the spool that were put aside."""


class KeptCommand:
    """A command that runs under its keeper; without a line, one that has ended already."""

    def __init__(self, line: Line | None, *, key: str, spool: Path, identity: str) -> None:
        self._line = line
        self._key = key
        self._spool = spool
        self.identity = identity

    async def end(self) -> End:
        """How it ended, once that is on the disk.

        Raises:
            KeeperLost: the keeper died without an end.
        """
        while self._line is not None and (told := await self._line.hear()) is not None:
            if isinstance(told, dict) and told["t"] == "ended":
                break
        if (end := End.read(self._spool, self._key)) is not None:
            return end
        raise KeeperLost("its keeper died, and left no end")

    async def kill(self, grace: float) -> None:
        """Ask for TERM now and KILL after the grace; `end` tells when nothing of it lives any more.

        Raises:
            ConnectionError: the keeper is gone.
        """
        if self._line is not None:
            await self._line.say(op="kill", grace=grace)

    async def detach(self) -> None:
        """Let go; it runs on."""
        if self._line is not None:
            await self._line.close()


async def run(
    launcher: Launcher,
    *,
    key: str,
    argv: Sequence[str],
    environment: Mapping[str, str],
    directory: Path,
    stdin: str,
    spool: Path,
    runtime: Path,
) -> KeptCommand | NotStarted:
    """Start a command under a keeper of its own.

    Raises:
        LauncherLost: nothing was started.
        KeeperLost: the keeper died before it said whether it started, and that cannot be proven otherwise.
    """
    order = Order(
        kind="command",
        key=key,
        argv=argv,
        environment=environment,
        directory=directory,
        stdin=stdin,
        spool=spool,
        runtime=runtime,
    )
    if (answer := await started(launcher, order)) is not None:
        line, told = answer
        if told["t"] == "started":
            return KeptCommand(line, key=key, spool=spool, identity=told["identity"])
        await line.close()
        if told["code"] != "claimed":
            return NotStarted(code=told["code"], reason=told["reason"])
    try:
        found = await recover(key, spool=spool, runtime=runtime)
    except (OSError, RelayError) as error:  # the order was sent: that this cannot be looked at proves nothing
        raise KeeperLost(f"whether it started cannot be looked at: {error}") from error
    match found:
        case Lost(reason=reason):
            raise KeeperLost(reason)
        case End():
            return KeptCommand(None, key=key, spool=spool, identity="")
        case _:
            return found


async def recover(key: str, *, spool: Path, runtime: Path) -> End | KeptCommand | NotStarted | Lost:
    """What became of an attempt of which this process knows nothing.

    The claim decides: who makes it first, keeper or this call, decides whether the attempt ever starts. A keeper that
    lives is given time to answer: it may be about to listen, or to write the end down.
    """
    until = time.monotonic() + ANSWER_SECONDS
    while True:
        if (found := _decided(spool, key)) is not None:
            return found
        kept = Kept.read(spool, key)  # written before the claim, so that it is there with it
        if (line := await connect(runtime, key)) is not None:
            return KeptCommand(line, key=key, spool=spool, identity="" if kept is None else kept.keeper.to_json())
        dead = kept is None or kept.keeper_gone()
        if dead or time.monotonic() > until:
            break
        await asyncio.sleep(LOOK_SECONDS)
    if (found := _decided(spool, key)) is not None:  # what it wrote just before it died
        return found
    reason = "its keeper died, and left no end" if dead else "its keeper lives, but does not answer"
    aside = spools.unreadable(spool, key)
    if aside:
        reason += " that can be read"
    return Lost(reason=reason, alive=living(kept), unreadable=aside)


def _decided(spool: Path, key: str) -> End | NotStarted | None:
    if (end := End.read(spool, key)) is not None:
        return end
    if spools.give_up(spool, key):
        return NotStarted(code="claimed", reason="no keeper had claimed this attempt, and now none can")
    return None
