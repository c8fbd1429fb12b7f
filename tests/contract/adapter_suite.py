"""What every adapter keeps, whatever agent is behind it: a class to inherit, and the place that it needs.

Each adapter's own test file says how to make a place; `Receiver` is one life of a receiver in it.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from support_time import WITHIN

from relay_receiver.adapters.base import (
    Accepted,
    Adapter,
    AdapterEvent,
    AdapterUnusable,
    Finished,
    NeverStarted,
    Proofs,
    Refused,
    Result,
    Scope,
    StillRunning,
    Work,
)

T = TypeVar("T")


def work(job: str, prompt: str = "", *, attempt: int = 1, credential: Path | None = None) -> Work:
    return Work(job=job, attempt=attempt, prompt=prompt, message=f"m-{job}", credential=credential)


class Receiver:
    """An open adapter and all that it tells."""

    def __init__(self, adapter: Adapter, session: str | None) -> None:
        self.adapter = adapter
        self.session = session
        self.events: list[AdapterEvent] = []
        self._changed = asyncio.Condition()
        self.hearing = asyncio.create_task(self._hear(), name="events")

    async def _hear(self) -> None:
        async for event in self.adapter.events():
            async with self._changed:
                self.events.append(event)
                self._changed.notify_all()

    async def submit(self, job: Work) -> Accepted:
        answer = await self.adapter.submit(job)
        assert isinstance(answer, Accepted), answer
        return answer

    async def until(self, kind: type[T], key: str) -> T:
        """The first event of that kind of that attempt."""

        def found() -> T | None:
            return next((each for each in self.events if isinstance(each, kind) and each.key == key), None)

        async with asyncio.timeout(WITHIN), self._changed:
            await self._changed.wait_for(found)
        first = found()
        assert first is not None
        return first

    async def end(self, key: str) -> Finished:
        return await self.until(Finished, key)

    async def run(self, job: Work) -> Finished:
        await self.submit(job)
        return await self.end(job.key)

    def ends(self, key: str) -> list[Finished]:
        return [event for event in self.events if isinstance(event, Finished) and event.key == key]


class Place(ABC):
    """An agent of one kind, and the files of one binding with it."""

    @abstractmethod
    def adapter(self) -> AbstractAsyncContextManager[Adapter]:
        """An adapter that is not open yet; what it needs beside itself ends with it, the agent does not."""

    @abstractmethod
    def broken(self) -> AbstractAsyncContextManager[Adapter]:
        """An adapter whose agent cannot be started."""

    @abstractmethod
    def answers(self, text: str) -> str:
        """A prompt on which the agent answers with that text."""

    @abstractmethod
    def fails(self) -> str:
        """A prompt with which the agent fails."""

    @abstractmethod
    def runs(self) -> str:
        """A prompt on which the agent works until `release`."""

    @abstractmethod
    def release(self, text: str) -> None:
        """Let what runs answer with that text."""

    @abstractmethod
    async def killed(self, job: Work) -> tuple[str | None, str]:
        """A receiver is handed `job` and dies of SIGKILL once it is accepted; its session and execution."""

    @abstractmethod
    def starts(self) -> list[str]:
        """The key of each start of work in the agent, in order."""

    @abstractmethod
    async def idle(self) -> None:
        """Wait until the agent does nothing any more, where it can be seen from outside."""

    @asynccontextmanager
    async def receiver(self, session: str | None = None, *, detach: bool = False) -> AsyncIterator[Receiver]:
        """One life of a receiver."""
        async with self.adapter() as adapter:
            receiver = Receiver(adapter, await adapter.open(session))
            try:
                yield receiver
            finally:
                await adapter.close(detach=detach)
                async with asyncio.timeout(WITHIN):
                    await receiver.hearing


Case = Callable[[Place], Coroutine[Any, Any, None]]


async def _hand_over(adapter: Adapter, job: Work) -> tuple[Scope, str]:
    """How an adapter that cannot work says so: at once, or of each job, which then certainly did not start."""
    try:
        await adapter.open(None)
        answer = await adapter.submit(job)
    except AdapterUnusable as unusable:
        return Scope.BINDING, str(unusable)
    assert isinstance(answer, Refused)
    assert isinstance(await adapter.recover(None, job), NeverStarted)
    return answer.scope, answer.reason


class AdapterSuite(ABC):
    """The promises of an adapter. Inherit it, and say where it is to be tried."""

    TEXTS: ClassVar[tuple[str, ...]] = ("42", "Grüße, 世界 🌍", "first line\n\nlast line", "ä" * 50_000)

    @abstractmethod
    def place(self, tmp_path: Path) -> AbstractAsyncContextManager[Place]:
        """A fresh place."""

    def _run(self, tmp_path: Path, case: Case) -> None:
        async def run() -> None:
            async with self.place(tmp_path) as place:
                await case(place)

        asyncio.run(run())

    def test_it_says_what_it_proves(self, tmp_path: Path) -> None:
        async def case(place: Place) -> None:
            async with place.adapter() as adapter:
                assert isinstance(adapter.proves, Proofs)
                assert adapter.proves.note
                assert adapter.long_lived in {True, False}

        self._run(tmp_path, case)

    def test_an_answer_comes_whole_and_once(self, tmp_path: Path) -> None:
        async def case(place: Place) -> None:
            async with place.receiver() as receiver:
                for number, text in enumerate(self.TEXTS):
                    job = work(f"j{number}", place.answers(text))
                    end = await receiver.run(job)
                    assert (end.result, end.text.strip()) == (Result.COMPLETED, text)
                    await receiver.adapter.recorded(job.key)
            keys = [work(f"j{number}").key for number in range(len(self.TEXTS))]
            assert [event.key for event in receiver.events if isinstance(event, Finished)] == keys
            assert place.starts() == keys

        self._run(tmp_path, case)

    def test_an_accepted_attempt_names_its_execution(self, tmp_path: Path) -> None:
        async def case(place: Place) -> None:
            async with place.receiver() as receiver:
                answer = await receiver.submit(work("j", place.answers("a")))
                assert answer.execution
                await receiver.end("j.1")

        self._run(tmp_path, case)

    def test_the_session_of_before_is_taken_up_again(self, tmp_path: Path) -> None:
        async def case(place: Place) -> None:
            async with place.receiver() as first:
                await first.run(work("j", place.answers("a")))
                await first.adapter.recorded("j.1")
            async with place.receiver(first.session) as second:
                assert second.session == first.session
                assert (await second.run(work("k", place.answers("b")))).text.strip() == "b"

        self._run(tmp_path, case)

    def test_a_failure_has_a_reason(self, tmp_path: Path) -> None:
        async def case(place: Place) -> None:
            async with place.receiver() as receiver:
                end = await receiver.run(work("j", place.fails()))
                assert end.result is Result.FAILED
                assert end.reason
                assert "\n" not in end.reason
                await receiver.adapter.recorded("j.1")
                after = await receiver.run(work("k", place.answers("well again")))
                assert after.result is Result.COMPLETED

        self._run(tmp_path, case)

    def test_an_agent_that_cannot_start_is_a_refusal_of_the_binding(self, tmp_path: Path) -> None:
        async def case(place: Place) -> None:
            async with place.broken() as adapter:
                scope, reason = await _hand_over(adapter, work("j", place.answers("a")))
                assert scope is Scope.BINDING
                assert reason
                await adapter.close()
            assert place.starts() == []

        self._run(tmp_path, case)

    def test_an_interrupt_is_confirmed_once_the_work_has_ended(self, tmp_path: Path) -> None:
        async def case(place: Place) -> None:
            async with place.receiver() as receiver:
                answer = await receiver.submit(work("j", place.runs()))
                assert await receiver.adapter.interrupt(answer.execution)
                end = await receiver.end("j.1")
                assert end.result is Result.CANCELLED
                assert end.reason
                await place.idle()
                await receiver.adapter.recorded("j.1")
                after = await receiver.run(work("k", place.answers("next")))
                assert (after.result, after.text.strip()) == (Result.COMPLETED, "next")

        self._run(tmp_path, case)

    def test_an_interrupt_of_what_is_over_or_unknown_confirms_nothing(self, tmp_path: Path) -> None:
        async def case(place: Place) -> None:
            async with place.receiver() as receiver:
                answer = await receiver.submit(work("j", place.answers("a")))
                await receiver.end("j.1")
                await receiver.adapter.recorded("j.1")
                assert not await receiver.adapter.interrupt(answer.execution)
                assert not await receiver.adapter.interrupt("never heard of")
                assert len(receiver.ends("j.1")) == 1

        self._run(tmp_path, case)

    def test_an_answer_to_no_question_changes_nothing(self, tmp_path: Path) -> None:
        async def case(place: Place) -> None:
            async with place.receiver() as receiver:
                await receiver.adapter.answer("no question", {"decision": "approve"})
                assert (await receiver.run(work("j", place.answers("a")))).text.strip() == "a"

        self._run(tmp_path, case)

    def test_work_goes_on_while_its_receiver_is_dead_and_is_found_running(self, tmp_path: Path) -> None:
        async def case(place: Place) -> None:
            session, execution = await place.killed(work("j", place.runs()))
            async with place.receiver(session) as receiver:
                found = await receiver.adapter.recover(execution, work("j"))
                assert isinstance(found, StillRunning), found
                place.release("after the death")
                end = await receiver.end("j.1")
                assert (end.result, end.text.strip()) == (Result.COMPLETED, "after the death")
                assert len(receiver.ends("j.1")) == 1
            assert place.starts() == ["j.1"]

        self._run(tmp_path, case)

    def test_work_that_ended_while_its_receiver_was_dead_is_found_finished(self, tmp_path: Path) -> None:
        async def case(place: Place) -> None:
            session, execution = await place.killed(work("j", place.runs()))
            place.release("said to nobody")
            await place.idle()
            for _ in range(2):  # to look changes nothing
                async with place.receiver(session) as receiver:
                    found = await receiver.adapter.recover(execution, work("j"))
                    end = await receiver.end("j.1") if isinstance(found, StillRunning) else found
                    assert isinstance(end, Finished), end
                    assert (end.result, end.text.strip()) == (Result.COMPLETED, "said to nobody")
            assert place.starts() == ["j.1"]

        self._run(tmp_path, case)

    def test_work_found_running_can_be_interrupted(self, tmp_path: Path) -> None:
        async def case(place: Place) -> None:
            session, execution = await place.killed(work("j", place.runs()))
            async with place.receiver(session) as receiver:
                found = await receiver.adapter.recover(execution, work("j"))
                assert isinstance(found, StillRunning), found
                assert await receiver.adapter.interrupt(found.execution)
                assert (await receiver.end("j.1")).result is Result.CANCELLED
                await place.idle()

        self._run(tmp_path, case)

    def test_work_let_go_of_is_taken_up_by_the_next_receiver(self, tmp_path: Path) -> None:
        async def case(place: Place) -> None:
            async with place.receiver(detach=True) as first:
                answer = await first.submit(work("j", place.runs()))
            async with place.receiver(first.session) as second:
                found = await second.adapter.recover(answer.execution, work("j"))
                assert isinstance(found, StillRunning), found
                place.release("to the second")
                assert (await second.end("j.1")).text.strip() == "to the second"
            assert first.ends("j.1") == []
            assert place.starts() == ["j.1"]

        self._run(tmp_path, case)

    def test_a_close_ends_what_runs_and_the_events(self, tmp_path: Path) -> None:
        async def case(place: Place) -> None:
            async with place.receiver() as receiver:
                await receiver.submit(work("j", place.runs()))
            assert receiver.hearing.done()
            await place.idle()

        self._run(tmp_path, case)

    def test_an_attempt_that_was_never_handed_over_never_starts(self, tmp_path: Path) -> None:
        async def case(place: Place) -> None:
            async with place.receiver() as receiver:
                for _ in range(2):
                    found = await receiver.adapter.recover(None, work("j"))
                    assert isinstance(found, NeverStarted), found
                    assert found.proof
                end = await receiver.run(work("j", place.answers("second attempt"), attempt=2))
                assert end.text.strip() == "second attempt"
            assert place.starts() == ["j.2"]

        self._run(tmp_path, case)

    def test_what_is_recorded_may_be_recorded_again(self, tmp_path: Path) -> None:
        async def case(place: Place) -> None:
            async with place.receiver() as receiver:
                await receiver.adapter.recorded("never.1")
                await receiver.run(work("j", place.answers("a")))
                await receiver.adapter.recorded("j.1")
                await receiver.adapter.recorded("j.1")
                assert (await receiver.run(work("k", place.answers("b")))).text.strip() == "b"

        self._run(tmp_path, case)
