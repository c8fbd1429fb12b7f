import asyncio
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert
from support_journal import BINDING, arrive, job_of, machine, opened, said, statements, submitted, traced
from support_time import WITHIN

from relay_receiver.journal import binding as bindings
from relay_receiver.journal import jobs, messages, space
from relay_receiver.journal.journal import Connection, Journal, JournalError, JournalUnavailable
from relay_receiver.journal.tables import chain_base

ROOT = {"root": "r", "base": 1, "at": 1.0}


def put(conn: Connection) -> None:
    conn.execute(insert(chain_base), ROOT)


def count(conn: Connection) -> int:
    return conn.exec_driver_sql("SELECT count(*) FROM chain_base").scalar_one()


class Inline(Executor):
    """Runs each call at once, as a simulation does."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - it is the caller's
            done.set_exception(error)
        return done


def test_a_select_in_a_write_is_inside_begin_immediate(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    inside: list[str] = []

    def look(conn: Connection) -> None:
        conn.exec_driver_sql("SELECT 1 FROM binding")
        other = sqlite3.connect(tmp_path / "journal.sqlite3", timeout=0, isolation_level=None)
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            inside.append(str(error))
        finally:
            other.close()

    with traced(journal) as seen:
        journal.write_now(look)
    assert inside == ["database is locked"]
    assert seen == ["BEGIN IMMEDIATE", "SELECT 1 FROM binding", "COMMIT"]
    journal.close()


def test_a_read_is_one_state_and_never_commits(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    with traced(journal) as seen:
        journal.read_now(put)
    assert (seen[0], seen[-1]) == ("BEGIN", "ROLLBACK")
    assert journal.read_now(count) == 0
    journal.close()


def test_a_failing_write_leaves_nothing(tmp_path: Path) -> None:
    journal = opened(tmp_path)

    def fail(conn: Connection) -> None:
        put(conn)
        raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        journal.write_now(fail)
    assert journal.read_now(count) == 0
    journal.write_now(put)
    assert journal.read_now(count) == 1
    journal.close()


def test_a_broken_rule_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    journal.write_now(put)
    with pytest.raises(JournalError) as refused:
        journal.write_now(put)
    assert refused.value.code == "journal_refused"
    assert journal.read_now(count) == 1
    journal.close()


def test_a_locked_journal_is_unavailable_and_the_same_write_can_be_repeated(tmp_path: Path) -> None:
    opened(tmp_path).close()
    path = tmp_path / "journal.sqlite3"
    journal = Journal.open(path, machine=machine, busy=0.01)
    arrive(journal, said(1))
    job = job_of(journal, 1)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for _ in range(2):
        with pytest.raises(JournalUnavailable):
            submitted(journal, job)
        assert job_of(journal, 1) == job
    other.execute("ROLLBACK")
    assert submitted(journal, job).attempt == 1
    other.close()
    journal.close()


def test_a_full_disk_is_unavailable_and_the_same_write_can_be_repeated(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    pages = journal.read_now(lambda conn: conn.exec_driver_sql("PRAGMA page_count").scalar_one())
    journal.read_now(lambda conn: conn.exec_driver_sql(f"PRAGMA max_page_count = {pages}").scalar_one())
    arrived = [said(number, content="x" * 4000) for number in range(1, 30)]
    for _ in range(2):
        with pytest.raises(JournalUnavailable) as refused:
            arrive(journal, *arrived)
        assert "full" in refused.value.sentence
        assert journal.read_now(messages.newest) is None
        assert journal.read_now(bindings.get) == BINDING
    journal.read_now(lambda conn: conn.exec_driver_sql("PRAGMA max_page_count = 1000000").scalar_one())
    assert arrive(journal, *arrived).jobs == 29
    journal.close()


def test_a_commit_that_the_disk_refuses_is_unavailable(tmp_path: Path) -> None:
    code = """
import resource, sys
from pathlib import Path
from support_journal import arrive, machine, said
from relay_receiver.journal import binding as bindings, messages
from relay_receiver.journal.journal import Journal, JournalUnavailable
journal = Journal.open(Path(sys.argv[1]), machine=machine)
arrive(journal, said(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
big = [said(n, content="y" * 60000) for n in range(2, 22)]
try:
    arrive(journal, *big)
except JournalUnavailable as error:
    print(error.code)
print(journal.read_now(messages.newest).event, journal.read_now(bindings.get).watermark)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(arrive(journal, *big).jobs, journal.read_now(bindings.get).watermark)
journal.close()
"""
    opened(tmp_path).close()
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "journal.sqlite3", str(200_000)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
        preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
    )
    assert done.stdout.splitlines() == ["journal_unavailable", "1 1", "20 21"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_a_read_only_journal_is_unavailable(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    driver = journal._conn.connection.driver_connection
    assert driver is not None
    driver.execute("PRAGMA query_only = ON")
    with pytest.raises(JournalUnavailable):
        journal.write_now(put)
    driver.execute("PRAGMA query_only = OFF")
    journal.write_now(put)
    journal.close()


def test_a_cancelled_write_is_finished_before_the_cancellation_goes_on(tmp_path: Path) -> None:
    async def run() -> None:
        begun, go = threading.Event(), threading.Event()

        def slow(conn: Connection) -> None:
            begun.set()
            go.wait(WITHIN)
            put(conn)

        task = asyncio.ensure_future(journal.write(slow))
        await asyncio.to_thread(begun.wait, WITHIN)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
        assert not task.done()
        go.set()
        with pytest.raises(asyncio.CancelledError) as ended:
            await task
        assert ended.value.__cause__ is None
        assert await journal.read(count) == 1

    journal = opened(tmp_path)
    asyncio.run(run())
    journal.close()


def test_a_cancelled_write_that_failed_says_so(tmp_path: Path) -> None:
    async def run() -> BaseException | None:
        begun, go = threading.Event(), threading.Event()

        def slow(conn: Connection) -> None:
            begun.set()
            go.wait(WITHIN)
            put(conn)

        async def guarded() -> BaseException | None:
            try:
                await journal.write(slow)
            except asyncio.CancelledError as error:
                return error.__cause__
            return None

        task = asyncio.ensure_future(guarded())
        await asyncio.to_thread(begun.wait, WITHIN)
        task.cancel()
        go.set()
        return await task

    journal = opened(tmp_path)
    journal.write_now(put)
    assert isinstance(asyncio.run(run()), JournalError)
    journal.close()


def test_a_write_that_waits_behind_another_is_made_although_its_task_was_cancelled(tmp_path: Path) -> None:
    async def run() -> None:
        begun, go = threading.Event(), threading.Event()

        def block(_conn: Connection) -> None:
            begun.set()
            go.wait(WITHIN)

        first = asyncio.ensure_future(journal.write(block))
        await asyncio.to_thread(begun.wait, WITHIN)
        second = asyncio.ensure_future(journal.write(put))
        await asyncio.sleep(0)
        second.cancel()
        go.set()
        await first
        with pytest.raises(asyncio.CancelledError):
            await second
        assert await journal.read(count) == 1

    journal = opened(tmp_path)
    asyncio.run(run())
    journal.close()


def test_writes_of_many_tasks_go_one_after_the_other(tmp_path: Path) -> None:
    async def run() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(1, 41):
                group.create_task(
                    journal.write(messages.intake, [said(number)], cursor=f"{number}", watermark=number, at=1.0)
                )

    journal = opened(tmp_path)
    asyncio.run(run())
    assert journal.read_now(jobs.counts)["queued"] == 40
    journal.close()


def test_the_executor_is_a_parameter(tmp_path: Path) -> None:
    async def run(journal: Journal) -> int:
        await journal.write(put)
        return await journal.read(count)

    opened(tmp_path).close()
    journal = Journal.open(tmp_path / "journal.sqlite3", executor=Inline(), machine=machine)
    assert asyncio.run(run(journal)) == 1
    journal.close()


def test_one_commit_for_a_whole_batch(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    with traced(journal) as seen:
        arrive(journal, *map(said, range(1, 51)))
    assert seen.count("COMMIT") == 1
    journal.close()


def test_nothing_is_written_when_nothing_changes(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    arrive(journal, said(1))
    job = job_of(journal, 1)
    wal = tmp_path / "journal.sqlite3-wal"
    before = (wal.stat().st_size, wal.stat().st_mtime_ns)
    with statements(journal) as seen:
        arrive(journal, said(1))
        journal.write_now(bindings.note_position, "1.a", 1)
        journal.write_now(bindings.change, session=None, env=("TOKEN",))
        journal.write_now(jobs.set_columns, job.id, notified=False, cancel=None)
        journal.write_now(jobs.run_closed, job.id)
        journal.write_now(messages.promote, at=1.0)
        journal.write_now(messages.prune, keep_count=1, keep_age=1e8, at=1.0)
        journal.write_now(space.give_back)
        journal.read_now(jobs.next_queued)
    assert (wal.stat().st_size, wal.stat().st_mtime_ns) == before
    assert not [statement for statement, _ in seen if statement.startswith(("INSERT", "UPDATE"))]
    journal.close()
