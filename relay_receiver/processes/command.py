"""One job of a command under a keeper: run, waited for, killed, and found again after a restart."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from relay_receiver.processes import files
from relay_receiver.processes.ending import End, living
from relay_receiver.processes.identity import Life, life
from relay_receiver.processes.launch import Kept, Launcher, Line, Order, connect


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


class KeptCommand:
    """A command that runs under its keeper."""

    def __init__(self, line: Line, *, key: str, spool: Path, identity: str) -> None:
        self._line = line
        self._key = key
        self._spool = spool
        self.identity = identity

    async def end(self) -> End:
        """How it ended, once that is on the disk.

        Raises:
            KeeperLost: the keeper died without an end.
        """
        while (told := await self._line.hear()) is not None:
            if told["t"] == "ended":
                break
        if (end := End.read(self._spool, self._key)) is not None:
            return end
        raise KeeperLost(f"the keeper of {self._key} ended without the end of its program")

    async def kill(self, grace: float) -> None:
        """Ask for TERM now and KILL after the grace; `end` tells when it is over."""
        await self._line.say(op="kill", grace=grace)

    async def detach(self) -> None:
        """Let go; it runs on."""
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
        KeeperLost: the keeper died before it said whether it started.
    """
    line = await launcher.launch(
        Order(
            kind="command",
            key=key,
            argv=argv,
            environment=environment,
            directory=directory,
            stdin=stdin,
            spool=spool,
            runtime=runtime,
        )
    )
    told = await line.hear()
    if told is None:
        raise KeeperLost(f"the keeper of {key} ended before it said whether its program started")
    if told["t"] == "refused":
        await line.close()
        return NotStarted(code=told["code"], reason=told["reason"])
    return KeptCommand(line, key=key, spool=spool, identity=told["identity"])


async def recover(key: str, *, spool: Path, runtime: Path) -> End | KeptCommand | NotStarted | Lost:
    """What became of an attempt of which this process knows nothing.

    The claim file decides: who makes it first, keeper or this call, decides whether the attempt ever starts.
    """
    if (end := End.read(spool, key)) is not None:
        return _ended(end)
    if _claim(spool, key):
        return NotStarted(code="claimed", reason="no keeper had claimed this attempt, and now none can")
    line = await connect(runtime, key)
    kept = Kept.read(spool, key)
    if (end := End.read(spool, key)) is not None:
        if line is not None:
            await line.close()
        return _ended(end)
    if line is not None:
        return KeptCommand(line, key=key, spool=spool, identity="" if kept is None else kept.keeper.to_json())
    if kept is not None and life(kept.keeper) is not Life.GONE:
        return Lost(reason="its keeper lives but does not answer yet", alive=living(kept))
    return Lost(reason="its keeper died, and left no end", alive=living(kept))


def _ended(end: End) -> End | NotStarted:
    if end.refused is not None:
        return NotStarted(code=str(end.refused.get("code")), reason=str(end.refused.get("reason")))
    return end


def _claim(spool: Path, key: str) -> bool:
    files.private_dir(spool)
    try:
        descriptor = os.open(spool / f"{key}.claim", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return False
    os.close(descriptor)
    files.fsync_dir(spool)
    return True
