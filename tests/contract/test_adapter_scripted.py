"""The shipped fake keeps what every adapter keeps, so that what is tested with it holds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from contract.adapter_suite import AdapterSuite, Place, Receiver, work

from relay_receiver.adapters.base import (
    Accepted,
    Adapter,
    Binding,
    HandoverLost,
    Refused,
    Result,
    Scope,
    Unprovable,
    Work,
)
from relay_receiver.testing.adapter import Breaks, Ends, Play, Runs, ScriptedAdapter, ScriptedAgent

NOTHING = Refused(scope=Scope.BINDING, reason="there is no agent", code="missing")


def binding(tmp_path: Path) -> Binding:
    return Binding(settings={}, directory=tmp_path, environment={}, spool=tmp_path, runtime=tmp_path)


def play(job: Work) -> Play:
    word, _, rest = job.prompt.partition(" ")
    return {
        "answer": Ends(text=rest),
        "fail": Ends(result=Result.FAILED, reason="as the script has it"),
        "run": Runs(),
        "deaf": Runs(stops=False),
        "break": Breaks(started=rest == "started"),
    }[word]


class Scripted(Place):
    def __init__(self, tmp_path: Path) -> None:
        self.binding = binding(tmp_path)
        self.agent = ScriptedAgent(play)

    @asynccontextmanager
    async def adapter(self) -> AsyncIterator[Adapter]:
        yield ScriptedAdapter(self.binding, self.agent)

    @asynccontextmanager
    async def broken(self) -> AsyncIterator[Adapter]:
        yield ScriptedAdapter(self.binding, ScriptedAgent(lambda _: NOTHING))

    def answers(self, text: str) -> str:
        return f"answer {text}"

    def fails(self) -> str:
        return "fail"

    def runs(self) -> str:
        return "run"

    def release(self, text: str) -> None:
        for key in self.agent.running():
            self.agent.end(key, text=text)

    async def killed(self, job: Work) -> tuple[str | None, str]:
        lost = ScriptedAdapter(self.binding, self.agent)
        session = await lost.open(None)
        answer = await lost.submit(job)
        assert isinstance(answer, Accepted)
        return session, answer.execution

    def starts(self) -> list[str]:
        return self.agent.starts

    async def idle(self) -> None:
        assert self.agent.running() == []


class TestScripted(AdapterSuite):
    def place(self, tmp_path: Path) -> AbstractAsyncContextManager[Place]:
        @asynccontextmanager
        async def made() -> AsyncIterator[Place]:
            yield Scripted(tmp_path)

        return made()


@pytest.mark.parametrize("started", [True, False])
def test_a_broken_hand_over_is_unknown_from_then_on(tmp_path: Path, *, started: bool) -> None:
    async def case() -> None:
        place = Scripted(tmp_path)
        async with place.receiver() as receiver:
            with pytest.raises(HandoverLost):
                await receiver.adapter.submit(work("j", "break started" if started else "break before"))
            assert isinstance(await receiver.adapter.recover(None, work("j")), Unprovable)
        assert place.starts() == (["j.1"] if started else [])

    asyncio.run(case())


def test_work_that_does_not_stop_confirms_no_interrupt(tmp_path: Path) -> None:
    async def case() -> None:
        place = Scripted(tmp_path)
        async with place.receiver() as receiver:
            answer = await receiver.submit(work("j", "deaf"))
            assert not await receiver.adapter.interrupt(answer.execution)
            place.agent.end("j.1", text="all the same")
            place.agent.end("j.1", text="too late")
            assert (await receiver.end("j.1")).text == "all the same"
        assert _texts(receiver) == ["all the same"]

    asyncio.run(case())


def _texts(receiver: Receiver) -> list[str]:
    return [end.text for end in receiver.ends("j.1")]
