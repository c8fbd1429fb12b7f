"""Keepers at work on real programs: one spool, one short directory for sockets, one launcher."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from support_time import WITHIN

from relay_receiver.processes import command
from relay_receiver.processes.agent import KeptAgent, SpoolLine
from relay_receiver.processes.command import KeptCommand, NotStarted
from relay_receiver.processes.ending import end_child
from relay_receiver.processes.kept import Kept
from relay_receiver.processes.launch import Launcher

T = TypeVar("T")


class Keepers:
    """Starts programs under keepers, and finds them again."""

    def __init__(self, root: Path, runtime: Path, launcher: Launcher) -> None:
        self.root = root
        self.spool = root / "spool"
        self.runtime = runtime
        self.launcher = launcher
        self.held: list[KeptCommand | KeptAgent] = []

    async def try_command(self, *argv: str, key: str = "j.1", stdin: str = "") -> KeptCommand | NotStarted:
        found = await command.run(
            self.launcher,
            key=key,
            argv=argv,
            environment={"PATH": os.defpath},
            directory=self.root,
            stdin=stdin,
            spool=self.spool,
            runtime=self.runtime,
        )
        return self._hold(found)

    async def command(self, *argv: str, key: str = "j.1", stdin: str = "") -> KeptCommand:
        found = await self.try_command(*argv, key=key, stdin=stdin)
        assert isinstance(found, KeptCommand), found
        return found

    async def shell(self, script: str, *, key: str = "j.1") -> KeptCommand:
        return await self.command("/bin/sh", "-c", script, key=key)

    async def agent(self, program: str, *, key: str = "a") -> KeptAgent:
        found = await KeptAgent.start(
            self.launcher,
            key=key,
            argv=[sys.executable, "-I", "-S", "-c", program],
            environment={"PATH": os.defpath},
            directory=self.root,
            spool=self.spool,
            runtime=self.runtime,
        )
        return self._hold(found)

    async def attach(self, *, key: str = "a", after: int = 0) -> KeptAgent | None:
        return self._hold(await KeptAgent.attach(key, self.spool, self.runtime, after))

    async def recover(self, key: str = "j.1") -> Any:
        return self._hold(await command.recover(key, spool=self.spool, runtime=self.runtime))

    def _hold(self, found: T) -> T:
        if isinstance(found, (KeptCommand, KeptAgent)):
            self.held.append(found)
        return found

    def kept(self, key: str = "j.1") -> Kept:
        found = Kept.read(self.spool, key)
        assert found is not None
        return found

    def child(self, key: str = "j.1") -> int:
        child = self.kept(key).child
        assert child is not None
        return child.pid

    async def file(self, name: str) -> str:
        """What a program wrote into a file, once it has written a line."""
        path = self.root / name
        await until(lambda: path.exists() and path.read_text().endswith("\n"))
        return path.read_text().strip()


@asynccontextmanager
async def keepers(root: Path) -> AsyncIterator[Keepers]:
    """A launcher for as long as the block lasts. Whatever still runs below `root` afterwards is ended by its keeper."""
    launcher = Launcher()
    await launcher.start()
    with TemporaryDirectory(prefix="rk") as runtime:
        made = Keepers(root, Path(runtime), launcher)
        try:
            yield made
        finally:
            for held in made.held:
                await held.detach()
            for record in made.spool.glob("*.keeper"):
                await _end(made, record.name.removesuffix(".keeper"))
            await launcher.close()


async def _end(made: Keepers, key: str) -> None:
    kept = Kept.read(made.spool, key)
    if kept is not None:
        await asyncio.to_thread(end_child, kept, grace=0.0 if kept.keeper_gone() else 0.5)


def run(root: Path, case: Callable[[Keepers], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(3 * WITHIN), keepers(root) as made:
            await case(made)

    asyncio.run(main())


async def until(wanted: Callable[[], object]) -> None:
    async with asyncio.timeout(WITHIN):
        while not wanted():
            await asyncio.sleep(0.005)


def runs(pid: int) -> bool:
    """Whether a process runs: a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rsplit(b")", 1)[1].split()[0] not in {b"Z", b"X"}
    except OSError:
        return False


def resident(pid: int) -> int:
    """Resident memory in KiB; 0 of a process that has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")), 0)


async def take(agent: KeptAgent, count: int) -> list[SpoolLine]:
    """The next lines."""
    found: list[SpoolLine] = []
    async with asyncio.timeout(WITHIN):
        async for line in agent.lines():
            found.append(line)
            if len(found) == count:
                break
    return found
