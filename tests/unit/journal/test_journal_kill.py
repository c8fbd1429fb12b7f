import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support_journal import arrive, machine, opened, said

from relay_receiver.jobs.state import JobState
from relay_receiver.journal import binding as bindings
from relay_receiver.journal import jobs, messages
from relay_receiver.journal.journal import Journal, adopt

WRITER = """
import sys
from pathlib import Path
from support_journal import arrive, job_of, machine, said
from relay_receiver.jobs.transitions import JobEvent
from relay_receiver.journal import jobs, messages
from relay_receiver.journal.journal import Journal, adopt

journal = Journal.open(Path(sys.argv[1]), machine=machine)
newest = journal.read_now(messages.newest)
number = newest.event if newest else 0
while True:
    batch = [said(number + step, person=True) for step in range(1, 6)]
    number += 5
    arrive(journal, *batch)
    print("stored", number, flush=True)
    job = journal.read_now(jobs.in_flight)
    if job is None:
        job = journal.read_now(jobs.next_queued).job
        job = journal.write_now(jobs.submit, job.id, holder="h", fence="f", run_claim=job.claim, at=1.0)
        print("submitted", job.id, job.attempt, flush=True)
    if job.state.value == "submitting":
        journal.write_now(jobs.move, job.id, JobEvent.OUTPUT, at=2.0, who="adapter", outcome="completed", body="{}")
        print("output", job.id, job.attempt, flush=True)
    journal.write_now(jobs.posted, job.id, result="r", at=3.0)
    print("posted", job.id, job.attempt, flush=True)
"""
STEPS = {"submitted": 1, "output": 2, "posted": 3}
STATES = {"submitting": 1, "output": 2, "done": 3}


def killed_somewhere(path: Path, chance: random.Random) -> list[str]:
    """Let a process write, kill it at a random moment, and return what it said that it had committed."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, path],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    ) as child:
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(chance.randrange(1, 60))]
        child.kill()
        lines += child.stdout.readlines()
    assert child.returncode == -signal.SIGKILL
    return [line for line in lines if line.endswith("\n")]


@pytest.mark.parametrize("seed", range(3))
def test_what_was_said_to_be_committed_survives_kill_9(tmp_path: Path, seed: int) -> None:
    opened(tmp_path).close()
    path = tmp_path / "journal.sqlite3"
    chance = random.Random(seed)  # noqa: S311 - a moment to kill at
    stored = 0
    steps: dict[str, int] = {}
    for _ in range(3):
        for line in killed_somewhere(path, chance):
            what, *rest = line.split()
            if what == "stored":
                stored = int(rest[0])
            else:
                steps[rest[0]] = STEPS[what]
        assert stored
        journal = Journal.open(path, machine=machine)
        assert journal.read_now(lambda conn: conn.exec_driver_sql("PRAGMA integrity_check").scalar_one()) == "ok"
        newest, binding = journal.read_now(messages.newest), journal.read_now(bindings.get)
        assert newest is not None
        assert binding is not None
        assert newest.event >= stored
        assert (binding.cursor, binding.watermark) == (f"{newest.event}.a", newest.event)
        known = {job.id: job for job in journal.read_now(jobs.list_jobs, limit=100_000)}
        waiting = journal.read_now(jobs.counts)["received"]
        assert sorted(job.event for job in known.values()) == list(range(1, newest.event - waiting + 1))
        for job, step in steps.items():
            assert STATES[known[job].state.value] >= step
        for job in known.values():
            history = journal.read_now(jobs.events, job.id)
            assert history[-1].target == job.state
            assert job.attempt == (0 if job.state is JobState.QUEUED else 1)
        journal.close()


def test_a_log_that_was_torn_anywhere_gives_a_state_that_was_committed(tmp_path: Path) -> None:
    """What a machine that lost its power may leave: the log, cut at any byte."""
    journal = opened(tmp_path)
    committed = {(None, 0)}
    for number in range(1, 31, 3):
        arrive(journal, said(number), said(number + 1), said(number + 2))
        committed.add((f"{number + 2}.a", number + 2))
    data = (tmp_path / "journal.sqlite3").read_bytes()
    log = (tmp_path / "journal.sqlite3-wal").read_bytes()
    journal.close()
    chance = random.Random(1)  # noqa: S311 - where it is cut
    seen = set()
    for turn, cut in enumerate([0, len(log), *(chance.randrange(len(log)) for _ in range(30))]):
        path = tmp_path / str(turn) / "journal.sqlite3"
        path.parent.mkdir()
        path.write_bytes(data)
        path.with_name(f"{path.name}-wal").write_bytes(log[:cut])
        adopt(path, machine=machine)
        torn = Journal.open(path, machine=machine)
        binding, newest = torn.read_now(bindings.get), torn.read_now(messages.newest)
        if binding is not None:
            last = newest.event if newest else 0
            assert (binding.cursor, last) in committed
            assert len(torn.read_now(jobs.list_jobs, limit=100)) == last
            seen.add(last)
        torn.close()
    assert 30 in seen
    assert len(seen) > 3
