"""A hand-over that breaks: proof is asked for at once, then again and again; where there is some, nobody is told."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from support_parts import Bench, message

from relay_receiver.adapters.base import (
    Finished,
    HandoverLost,
    NeverStarted,
    Recovery,
    Result,
    StillRunning,
    Unprovable,
    Work,
)
from relay_receiver.jobs.job import job_id
from relay_receiver.receiver import runner as runners
from relay_receiver.receiver.inquiry import FIRST_LOOK_SECONDS, LOOK_CEILING
from relay_receiver.receiver.settle import Verb, settle

JOB = job_id("w", "a_me", "c", "m1")
UNPROVABLE = Unprovable(reason="nobody knows")


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


def answers(bench: Bench, *found: Recovery | None) -> list[str]:
    """What the adapter says of each question, in order; None is no answer. The attempts asked about."""
    asked: list[str] = []

    async def recover(execution: str | None, work: Work) -> Recovery:
        asked.append(work.key)
        answer = found[min(len(asked), len(found)) - 1]
        if answer is None:
            await asyncio.Event().wait()
        assert answer is not None
        return answer

    bench.adapter.recover = recover  # type: ignore[method-assign]
    return asked


def notices(bench: Bench) -> list[str]:
    return [post["content"] for post in bench.hub.posts() if post["kind"] == "message"]


@pytest.mark.parametrize(
    ("found", "handed_over"),
    [
        (NeverStarted(proof="nobody had claimed it"), 2),
        (StillRunning(execution="x"), 1),
        (Finished(key=f"{JOB}.1", result=Result.COMPLETED, text="did 1"), 1),
    ],
)
def test_proof_that_is_there_at_once_is_acted_on_and_nobody_is_told_unknown(
    tmp_path: Path, found: Recovery, handed_over: int
) -> None:
    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            b.adapter.answers = [HandoverLost("the pipe broke")]
            answers(b, found)
            b.arrive(message(1))
            if isinstance(found, StillRunning):
                await b.until(lambda: b.jobs() == {"m1": "running"})
                b.runner.take(Finished(key=f"{JOB}.1", result=Result.COMPLETED, text="did 1"))
            else:
                await b.until(lambda: b.jobs() == {"m1": "done"} or b.parts.situation.refused)
                b.clock += 2.0
                b.runner.kick()
            await b.until(lambda: b.jobs() == {"m1": "done"})
            assert notices(b) == []
            assert len(b.adapter.works) == handed_over

    run(scenario())


def test_what_certainly_did_not_start_is_not_tried_again_at_once(tmp_path: Path) -> None:
    """An adapter that loses each hand-over is not called without a pause."""

    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            b.adapter.answers = [HandoverLost("the pipe broke")] * 3
            answers(b, NeverStarted(proof="nobody had claimed it"))
            b.arrive(message(1))
            await b.until(lambda: b.parts.situation.retry_at)
            await b.runner.ask(lambda: asyncio.sleep(0))
            assert len(b.adapter.works) == 1
            assert b.jobs() == {"m1": "queued"}
            assert b.parts.situation.refused == "it certainly did not start: the pipe broke"

    run(scenario())


def test_an_unknown_job_is_looked_at_again_after_longer_and_longer_times(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            b.adapter.answers = [HandoverLost("the pipe broke")]
            asked = answers(b, UNPROVABLE)
            b.arrive(message(1))
            await b.until(lambda: notices(b))
            assert "the pipe broke; nobody knows" in notices(b)[0]
            assert len(asked) == 1
            waits = []
            for number in range(2, 13):
                waits.append(b.runner._hand.memory.look_again_at - b.parts.boot())
                b.clock += waits[-1]
                b.runner.kick()
                await b.until(lambda number=number: len(asked) == number)
                await b.until(lambda: b.runner._inquiry._open is None)
            assert waits[0] <= FIRST_LOOK_SECONDS
            assert FIRST_LOOK_SECONDS < waits[1] <= 2 * FIRST_LOOK_SECONDS
            assert LOOK_CEILING / 2 < waits[-1] <= LOOK_CEILING
            assert len(notices(b)) == 1

    run(scenario())


def test_proof_that_turns_up_at_a_later_look_frees_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            b.adapter.answers = [HandoverLost("the pipe broke")]
            answers(b, UNPROVABLE, Finished(key=f"{JOB}.1", result=Result.COMPLETED, text="after all"))
            b.arrive(message(1))
            await b.until(lambda: notices(b))
            b.clock += FIRST_LOOK_SECONDS
            b.runner.kick()
            await b.until(lambda: b.jobs() == {"m1": "done"})
            assert b.hub.posts()[-1]["content"] == "after all"

    run(scenario())


def test_an_adapter_that_does_not_answer_keeps_nobody_from_settling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runners, "AT_ONCE_SECONDS", 0.01)

    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            b.adapter.answers = [HandoverLost("the pipe broke")]
            asked = answers(b, None)
            b.arrive(message(1), message(2))
            await b.until(lambda: notices(b))
            b.clock += 2 * LOOK_CEILING
            b.runner.kick()

            async def settled() -> None:
                await b.parts.write(
                    settle, JOB, Verb.ABANDON, channel="c", text=None, reason="seen", who="os:me", at=b.clock
                )
                await b.runner.reload()

            await b.runner.ask(settled)
            await b.until(lambda: b.jobs() == {"m1": "abandoned", "m2": "done"})
            assert asked == [f"{JOB}.1"], "one question at a time"

    run(scenario())
