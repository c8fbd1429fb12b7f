"""Inquiries: when the adapter is asked what became of a job, and how long its answer is waited for."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from relay_receiver.adapters.base import Recovery
from relay_receiver.jobs import backoff
from relay_receiver.jobs.job import Job
from relay_receiver.jobs.state import AT_THE_AGENT, JobState
from relay_receiver.receiver import recovery
from relay_receiver.receiver.hand import Hand
from relay_receiver.receiver.parts import Parts
from relay_receiver.receiver.watch import Watch

AT_ONCE_SECONDS = 10.0
"""How long a lost hand-over waits for proof before its requester is told that nobody can know."""
FIRST_LOOK_SECONDS = 2.0
"""After so long an unknown job is looked at again; twice as long each time after that."""
LOOK_CEILING = 300.0

Later = Callable[[Callable[[], Coroutine[Any, Any, None]]], None]
Beside = Callable[[Coroutine[Any, Any, None], str], Any]


class Inquiry:
    """Asks about the job in hand, one question at a time. Answers that come late are heard between two steps."""

    def __init__(self, parts: Parts, hand: Hand, watch: Watch, *, later: Later, beside: Beside) -> None:
        self._parts = parts
        self._hand = hand
        self._watch = watch
        self._later = later
        self._beside = beside
        self._open: str | None = None
        """The attempt whose answer is still to come."""

    async def now(self, *, lost: str = "", within: float | None = None) -> None:
        """Ask, wait for the answer, and act on it.

        Args:
            lost: how the hand-over was lost, where it was.
            within: seconds, after which the job is unknown until the answer comes.
        """
        answer = self._ask()
        await asyncio.wait({answer}, timeout=within)
        if answer.done():
            await recovery.act(self._parts, self._hand, self._watch, answer.result(), lost=lost)
        else:
            self._act_later(answer)
            await self._hand.lose(lost or "the adapter does not say what became of it")

    def look(self) -> float:
        """Ask again about an unknown job, unless an answer is still to come; seconds until the next look."""
        memory = self._hand.memory
        memory.looks += 1
        if memory.looks > 1 and self._open != _key(self._hand.held()):
            self._act_later(self._ask())
        return backoff.delay(memory.looks, jitter=1.0, first=FIRST_LOOK_SECONDS, ceiling=LOOK_CEILING)

    def _ask(self) -> asyncio.Future[Recovery]:
        job = self._hand.held()
        answer: asyncio.Future[Recovery] = asyncio.get_running_loop().create_future()
        self._open = _key(job)
        self._beside(self._answer(job, answer), f"recover {_key(job)}")
        return answer

    async def _answer(self, job: Job, answer: asyncio.Future[Recovery]) -> None:
        found = await recovery.ask(self._parts, job)
        if self._open == _key(job):
            self._open = None
        answer.set_result(found)

    def _act_later(self, answer: asyncio.Future[Recovery]) -> None:
        key = _key(self._hand.held())

        async def act() -> None:
            job = self._hand.job
            if job is not None and _key(job) == key and job.state in AT_THE_AGENT | {JobState.UNKNOWN}:
                await recovery.act(self._parts, self._hand, self._watch, answer.result())

        answer.add_done_callback(lambda _: self._later(act))


def _key(job: Job) -> str:
    return f"{job.id}.{job.attempt}"
