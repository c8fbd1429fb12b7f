"""The scripted agent, and the real Codex, keep what every adapter keeps whose agent asks people."""

import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from contract.asking_suite import AskingPlace, AskingSuite
from contract.test_adapter_codex import Codex
from contract.test_adapter_scripted import Scripted
from support_codex import world

from relay_receiver.adapters.base import Adapter, Work
from relay_receiver.adapters.codex import CodexAdapter
from relay_receiver.processes.launch import Launcher
from relay_receiver.testing.adapter import Asks, ScriptedAgent


class AskingScript(Scripted, AskingPlace):
    def __init__(self, tmp_path: Path) -> None:
        super().__init__(tmp_path)
        self.agent = ScriptedAgent(self._play)

    def _play(self, job: Work) -> Asks:
        return Asks(count=int(job.prompt))

    def asks(self, count: int = 1) -> str:
        return str(count)

    def done(self) -> int:
        return sum(said["decision"] == "accept" for _, said in self.agent.answers)


class AskingCodex(Codex, AskingPlace):
    @asynccontextmanager
    async def adapter(self, *argv: str) -> AsyncIterator[Adapter]:
        assert not argv
        launcher = Launcher()
        await launcher.start()
        try:
            yield CodexAdapter(self._world.binding(ask=True), launcher)
        finally:
            await launcher.close()

    def asks(self, count: int = 1) -> str:
        commands = ";;".join(f"echo {number} >> {self._root / 'done'}" for number in range(count))
        return f"model: escalates {commands}"

    def done(self) -> int:
        path = self._root / "done"
        return len(re.findall(r"^\d", path.read_text(), re.MULTILINE)) if path.exists() else 0


class TestAskingScript(AskingSuite):
    def asking_place(self, tmp_path: Path) -> AbstractAsyncContextManager[AskingPlace]:
        @asynccontextmanager
        async def made() -> AsyncIterator[AskingPlace]:
            yield AskingScript(tmp_path)

        return made()


class TestAskingCodex(AskingSuite):
    def asking_place(self, tmp_path: Path) -> AbstractAsyncContextManager[AskingPlace]:
        @asynccontextmanager
        async def made() -> AsyncIterator[AskingPlace]:
            with world(tmp_path) as found:
                yield AskingCodex(tmp_path, found)

        return made()
