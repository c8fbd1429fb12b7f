"""Power cuts: the journal as a disk would have it, cut after each commit, opens clean and never lags what was done."""

import contextlib
import shutil
import signal
import sqlite3
from pathlib import Path

import psutil
from support_faults import CrashWorld, crash_world
from support_power import clean, commits, read, write
from support_world import until

from relay_receiver.journal.journal import Journal, adopt
from relay_receiver.receiver.target import JOURNAL
from relay_receiver.testing.trials import AT_START

NEWEST = 4
"""Cuts at each point: those further back were the newest ones at the points before."""


def cut_open(folder: Path, database: bytes, wal: bytes) -> dict[str, tuple[str, list[str]]]:
    """Open a cut journal as a person does after a power cut; each job's state, and the states its history tells."""
    path = folder / JOURNAL
    write(path, database, wal)
    adopt(path)
    Journal.open(path).close()
    with clean(path) as conn:
        jobs = dict(conn.execute("select message, state from job").fetchall())
        told = {m: [] for m in jobs}
        rows = conn.execute("select job.message, target from job_event join job on job.id = job order by job_event.id")
        for message, state in rows.fetchall():
            told[message].append(state)
    shutil.rmtree(folder)
    return {message: (jobs[message], told[message]) for message in jobs}


def stored(c: CrashWorld) -> int:
    """How many messages the journal has."""
    with contextlib.closing(sqlite3.connect(c.target.folder / JOURNAL)) as conn:
        return int(conn.execute("select count(*) from message").fetchone()[0])


def freeze(c: CrashWorld, point: str, text: str) -> tuple[str, int]:
    """A request during which the receiver stands still at a point; its message, and the process."""
    until(lambda: stored(c) == len(c.person.history()), what="a receiver that has all there is")
    plan = c.faults.plan(point, "stop")
    message = c.ask(text)
    _, pid, _ = until(lambda: c.faults.hit(plan), what=point)
    until(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED, what="a process that stands still")
    return message, pid


def test_every_copy_of_the_journal_opens_clean_and_knows_what_was_acknowledged_started_and_posted(
    tmp_path: Path,
) -> None:
    with crash_world(tmp_path / "w") as c:
        c.end(c.ask("please task=first"))
        ordinary = sorted(p for p in c.faults.seen() if p.startswith(("journal.", "adapter.", "acknowledge.")))
        looked = 0
        for point in ordinary:
            if point.startswith(AT_START):
                continue
            message, pid = freeze(c, point, "please task=cut")
            try:
                database, wal = read(c.target.folder / JOURNAL)
                if point == "journal.store.before":
                    # An acknowledgement that was sent too early comes about in this time.
                    with contextlib.suppress(AssertionError):
                        until(lambda message=message: c.person.stage(message) != "stored", seconds=0.5)
                started, stage = c.starts()[message], c.person.stage(message)
                for number, length in enumerate(commits(wal)[-NEWEST:]):
                    found = cut_open(tmp_path / f"cut-{looked}-{number}", database, wal[:length])
                    assert all(state == told[-1] for state, told in found.values())
                state = found.get(message, ("nowhere", []))[0]
                if stage != "stored":
                    assert state != "nowhere", f"{point}: it was acknowledged, and the journal does not know it"
                if started:
                    assert state not in {"nowhere", "queued"}, f"{point}: it was started, and the journal says {state}"
                if stage == "answered":
                    assert state in {"output", "done"}, f"{point}: it was posted, and the journal says {state}"
                looked += 1
            finally:
                psutil.Process(pid).send_signal(signal.SIGCONT)
            assert c.end(message) == "answered"
        assert looked >= 8
        assert c.faults_found() == []
