"""Steps of the wall clock, an hour either way: no wait grows, no job is ended early, and healing skips nothing."""

import asyncio
import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support_parts import Bench, message
from support_world import world

from relay_receiver.adapters.base import Refused, Scope, StillRunning
from relay_receiver.jobs.state import JobState
from relay_receiver.journal import binding as bindings
from relay_receiver.journal import jobs
from relay_receiver.journal.journal import Journal
from relay_receiver.processes.identity import boot_seconds, identify
from relay_receiver.wire.message import seconds

HOUR = 3600.0


def test_a_back_off_is_no_longer_when_the_wall_clock_steps_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        bench = Bench(tmp_path)
        step = 0.0
        bench.parts.now = lambda: bench.clock + step
        async with bench as b:
            b.adapter.answers = [Refused(scope=Scope.BINDING, reason="busy")]
            b.arrive(message(1))
            await b.until(lambda: b.parts.situation.refused)
            step = -HOUR
            await b.until(lambda: b.jobs() == {"m1": "done"})

    asyncio.run(scenario())


@pytest.mark.parametrize("step", [-HOUR, HOUR])
def test_a_job_found_running_is_not_ended_by_a_step_of_the_wall_clock(tmp_path: Path, step: float) -> None:
    async def scenario() -> None:
        bench = Bench(tmp_path, ceiling=HOUR / 2)
        bench.clock = time.time()
        bench.parts.boot = boot_seconds
        bench.arrive(message(1))
        (job,) = bench.journal.read_now(jobs.list_jobs, limit=1)
        bench.journal.write_now(jobs.submit, job.id, holder="h1", fence="7", run_claim=job.claim, at=bench.clock - step)
        keeper = identify(os.getpid())
        assert keeper is not None
        bench.adapter.recovery = StillRunning(execution="x", keeper=keeper.to_json())
        async with bench as b:
            await b.until(lambda: b.runner.job is not None and b.runner.job.state is JobState.RUNNING)
            await b.runner.ask(lambda: asyncio.sleep(0))
            await b.runner.ask(lambda: asyncio.sleep(0))
            assert b.jobs() == {"m1": "running"}
            assert b.runner._hand.memory.interrupt is None

    asyncio.run(scenario())


def test_healing_goes_back_to_the_moment_of_configure_by_the_clock_of_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with world(tmp_path) as w:
        said = w.say("before anybody was bound")
        monkeypatch.setattr(time, "time", lambda: datetime.now(UTC).timestamp() + HOUR)
        bob = w.agent("bob")
        journal = Journal.open(bob.folder / "journal.sqlite3")
        found = journal.read_now(bindings.get)
        journal.close()
    assert found is not None
    assert found.configured_at == seconds(said["createdAt"])
