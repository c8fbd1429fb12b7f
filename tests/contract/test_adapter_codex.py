"""The codex adapter, with the real app-server and a scripted model, keeps what every adapter keeps."""

import asyncio
import itertools
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import ClassVar

from contract.adapter_suite import AdapterSuite, Place, work
from support_codex import World, world
from support_time import WITHIN

from relay_receiver.adapters.base import Adapter, NeverStarted, Work
from relay_receiver.adapters.codex import CodexAdapter
from relay_receiver.processes.kept import Kept
from relay_receiver.processes.launch import Launcher

HOLDER = """\
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from support_codex import World, adapter, work
place = World.__new__(World)
root = Path({root!r})
place.directory, place.home, place.spool = root / "work", root / "codex-home", root / "spool"
place.runtime = Path({runtime!r})

async def main():
    async with adapter(place.binding()) as (made, heard):
        print(await made.open(None), flush=True)
        answer = await made.submit(work({job!r}, {prompt!r}, attempt={attempt}))
        print(answer.execution, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


class Codex(Place):
    """One thread of the real Codex."""

    def __init__(self, root: Path, made: World) -> None:
        self._root = root
        self._world = made
        self._gates = itertools.count(1)
        self._gate = ""

    @asynccontextmanager
    async def adapter(self, *argv: str) -> AsyncIterator[Adapter]:
        launcher = Launcher()
        await launcher.start()
        settings = {"argv": list(argv)} if argv else {}
        try:
            yield CodexAdapter(self._world.binding(**settings), launcher)
        finally:
            await launcher.close()

    def broken(self) -> AbstractAsyncContextManager[Adapter]:
        return self.adapter(str(self._root / "no such program"))

    def answers(self, text: str) -> str:
        return f"model: say {text}"

    def fails(self) -> str:
        return "model: fail context_length_exceeded"

    def runs(self) -> str:
        self._gate = f"gate{next(self._gates)}"
        return f"model: hold {self._gate}"

    def release(self, text: str) -> None:
        self._world.model.release(self._gate, text)

    async def killed(self, job: Work) -> tuple[str | None, str]:
        program = HOLDER.format(
            tests=str(Path(__file__).parents[1]),
            root=str(self._root),
            runtime=str(self._world.runtime),
            job=job.job,
            prompt=job.prompt,
            attempt=job.attempt,
        )
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as holder:  # noqa: ASYNC220 - the test has nothing else to do meanwhile
            assert holder.stdout is not None
            session, execution = holder.stdout.readline().strip(), holder.stdout.readline().strip()
            holder.kill()
        assert execution
        assert await asyncio.to_thread(self._world.model.wait_for, lambda requests: len(requests) > 0)
        return session, execution

    def starts(self) -> list[str]:
        rollouts = sorted(self._world.home.glob("sessions/**/rollout-*.jsonl"))
        return [key for path in rollouts for key in re.findall(r'"client_id":"([^"]+)"', path.read_text())]

    async def idle(self) -> None:
        async with asyncio.timeout(WITHIN):
            while not self._is_idle():
                await asyncio.sleep(0.01)

    def _is_idle(self) -> bool:
        kept = Kept.read(self._world.spool, "agent")
        if kept is None or kept.keeper_gone():
            return True
        lines = (self._world.spool / "agent.lines").read_bytes()
        return lines.rfind(b'"turn/completed"') > lines.rfind(b'"turn/start"')


@asynccontextmanager
async def codex(tmp_path: Path) -> AsyncIterator[Codex]:
    with world(tmp_path) as made:
        yield Codex(tmp_path, made)


class TestCodex(AdapterSuite):
    TEXTS: ClassVar[tuple[str, ...]] = ("42", "Grüße, 世界 🌍", "ä" * 50_000)  # the model is told in one line

    def place(self, tmp_path: Path) -> AbstractAsyncContextManager[Place]:
        return codex(tmp_path)

    def test_an_attempt_that_was_never_handed_over_never_starts(self, tmp_path: Path) -> None:
        """Once there is a record of an earlier hand-over: before the first one nothing is proven."""

        async def case(place: Place) -> None:
            async with place.receiver() as first:
                await first.run(work("a", place.answers("a")))
                await first.adapter.recorded("a.1")
            async with place.receiver(first.session) as receiver:
                for _ in range(2):
                    found = await receiver.adapter.recover(None, work("j"))
                    assert isinstance(found, NeverStarted), found
                end = await receiver.run(work("j", place.answers("second attempt"), attempt=2))
                assert end.text == "second attempt"
            assert place.starts() == ["a.1", "j.2"]

        self._run(tmp_path, case)
