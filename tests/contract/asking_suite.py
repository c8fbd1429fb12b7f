"""What every adapter keeps whose agent asks people: a class to inherit beside `AdapterSuite`."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from contract.adapter_suite import Place, Receiver, work
from support_time import WITHIN

from relay_receiver.adapters.base import Result, StillRunning, Waiting, WaitOver

ACCEPT = {"decision": "accept"}
DECLINE = {"decision": "decline"}


class AskingPlace(Place):
    """A place whose adapter has `ask` on."""

    @abstractmethod
    def asks(self, count: int = 1) -> str:
        """A prompt on which the agent asks so many approvals at once, and then ends."""

    @abstractmethod
    def done(self) -> int:
        """How much of what was asked for was done."""


Case = Callable[[AskingPlace], Coroutine[Any, Any, None]]


def questions(receiver: Receiver) -> list[Waiting]:
    return [event for event in receiver.events if isinstance(event, Waiting)]


def overs(receiver: Receiver) -> list[str]:
    return [event.question for event in receiver.events if isinstance(event, WaitOver)]


async def asked(receiver: Receiver, count: int = 1) -> list[Waiting]:
    """The first questions, once there are so many."""
    async with asyncio.timeout(WITHIN), receiver._changed:
        await receiver._changed.wait_for(lambda: len(questions(receiver)) >= count)
    return questions(receiver)


class AskingSuite(ABC):
    """The promises of an adapter about questions."""

    @abstractmethod
    def asking_place(self, tmp_path: Path) -> AbstractAsyncContextManager[AskingPlace]:
        """A fresh place."""

    def _ask(self, tmp_path: Path, case: Case) -> None:
        async def run() -> None:
            async with self.asking_place(tmp_path) as place:
                await case(place)

        asyncio.run(run())

    def test_what_is_accepted_is_done_once(self, tmp_path: Path) -> None:
        async def case(place: AskingPlace) -> None:
            async with place.receiver() as receiver:
                await receiver.submit(work("j", place.asks()))
                [wait] = await asked(receiver)
                assert (wait.key, wait.kind, bool(wait.title), bool(wait.action)) == ("j.1", "approval", True, True)
                assert place.done() == 0
                await receiver.adapter.answer(wait.question, ACCEPT)
                await receiver.adapter.answer(wait.question, ACCEPT)
                assert (await receiver.end("j.1")).result is Result.COMPLETED
                assert overs(receiver) == [wait.question]
            assert place.done() == 1

        self._ask(tmp_path, case)

    def test_what_is_declined_is_not_done_and_the_work_goes_on(self, tmp_path: Path) -> None:
        async def case(place: AskingPlace) -> None:
            async with place.receiver() as receiver:
                await receiver.submit(work("j", place.asks()))
                [wait] = await asked(receiver)
                await receiver.adapter.answer(wait.question, {**DECLINE, "note": "nobody was there"})
                assert (await receiver.end("j.1")).result is Result.COMPLETED
            assert place.done() == 0

        self._ask(tmp_path, case)

    def test_two_questions_are_answered_each_for_itself_in_any_order(self, tmp_path: Path) -> None:
        async def case(place: AskingPlace) -> None:
            async with place.receiver() as receiver:
                await receiver.submit(work("j", place.asks(2)))
                one, two = await asked(receiver, 2)
                assert one.question != two.question
                await receiver.adapter.answer(two.question, ACCEPT)
                await receiver.adapter.answer(one.question, DECLINE)
                assert (await receiver.end("j.1")).result is Result.COMPLETED
                assert sorted(overs(receiver)) == sorted([one.question, two.question])
            assert place.done() == 1

        self._ask(tmp_path, case)

    def test_an_interrupt_closes_what_is_asked_and_a_late_answer_does_nothing(self, tmp_path: Path) -> None:
        async def case(place: AskingPlace) -> None:
            async with place.receiver() as receiver:
                answer = await receiver.submit(work("j", place.asks()))
                [wait] = await asked(receiver)
                assert await receiver.adapter.interrupt(answer.execution)
                assert (await receiver.end("j.1")).result is Result.CANCELLED
                assert overs(receiver) == [wait.question]
                await receiver.adapter.answer(wait.question, ACCEPT)
                await receiver.adapter.recorded("j.1")
                again = await receiver.submit(work("k", place.asks()))
                new = (await asked(receiver, 2))[1]
                assert new.question != wait.question
                await receiver.adapter.answer(wait.question, ACCEPT)
                assert await receiver.adapter.interrupt(again.execution)
                await receiver.end("k.1")
            assert place.done() == 0

        self._ask(tmp_path, case)

    def test_a_question_of_a_dead_receiver_is_found_the_same_and_answered_by_the_next(self, tmp_path: Path) -> None:
        async def case(place: AskingPlace) -> None:
            async with place.receiver(detach=True) as first:
                answer = await first.submit(work("j", place.asks(2)))
                before = await asked(first, 2)
                await first.adapter.answer(before[0].question, ACCEPT)
                await first.until(WaitOver, "j.1")
            async with place.receiver(first.session) as second:
                found = await second.adapter.recover(answer.execution, work("j"))
                assert isinstance(found, StillRunning), found
                assert list(found.waits) == before[1:]
                await second.adapter.answer(before[0].question, DECLINE)
                await second.adapter.answer(before[1].question, ACCEPT)
                assert (await second.end("j.1")).result is Result.COMPLETED
            assert place.done() == 2
            assert place.starts() == ["j.1"]

        self._ask(tmp_path, case)
