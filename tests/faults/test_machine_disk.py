"""No room, no right to write, or a journal that another holds: what is not stored is not acknowledged."""

import asyncio
import contextlib
import resource
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from support_parts import Bench, message
from support_world import World, never, until, world

from relay_receiver.adapters.base import Finished, Result
from relay_receiver.journal.journal import Journal
from relay_receiver.receiver import verbs
from relay_receiver.receiver.target import Target

NO_ROOM = 8192
"""A process may write no file beyond this: a write fails as on a disk that is full."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, Target]]:
    """A hub, and bob whose receiver has done a job."""
    with world(tmp_path_factory.mktemp("disk")) as w:
        bob = w.agent("bob")
        verbs.start(bob)
        w.until_stage(w.ask(bob, "task=first")["id"], "answered")
        yield w, bob


@pytest.fixture(autouse=True)
def at_home(place: tuple[World, Target], monkeypatch: pytest.MonkeyPatch) -> None:
    """One world for all cases of this file, with its receiver running at the start of each."""
    w, bob = place
    monkeypatch.setenv("RELAY_HOME", str(w.home))
    verbs.restart(bob)


@contextlib.contextmanager
def no_room(bob: Target) -> Iterator[None]:
    """The disk is full for the receiver's process, and has room again after the block."""
    pid = int(verbs.status(bob)["pid"])
    _, hard = before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (NO_ROOM, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


def test_what_finds_no_room_is_not_acknowledged_and_is_done_once_there_is(place: tuple[World, Target]) -> None:
    w, bob = place
    before = len(w.starts())
    with no_room(bob):
        asked = w.ask(bob, "task=waits")
        until(lambda: "journal" in (verbs.status(bob)["lastError"] or ""), what="a word of it")
        never(lambda: w.stage(asked["id"]) != "stored", what="an acknowledgement")
    w.until_stage(asked["id"], "answered")
    assert len(w.starts()) == before + 1
    assert verbs.status(bob)["needsPerson"] == []


def test_an_answer_that_finds_no_room_is_kept_by_its_keeper_and_posted_once_there_is(
    place: tuple[World, Target],
) -> None:
    w, bob = place
    before = len(w.starts())
    asked = w.ask(bob, "hold=full task=kept")
    w.until_stage(asked["id"], "running")
    with no_room(bob):
        w.release("full")
        until(lambda: "journal" in (verbs.status(bob)["lastError"] or ""), what="a word of it")
        assert w.stage(asked["id"]) == "running"
    w.until_stage(asked["id"], "answered")
    assert [each["content"] for each in w.results(asked["id"])] == ["did kept"]
    assert len(w.starts()) == before + 1


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Another process's transaction holds the journal for the length of the block."""
    with contextlib.closing(sqlite3.connect(folder / "journal.sqlite3", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


class Quick(Bench):
    """Waits only a moment for a locked journal."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.journal.close()
        self.journal = self.parts.journal = Journal.open(folder / "journal.sqlite3", busy=0.01)


def test_a_journal_that_is_locked_when_the_answer_comes_has_nothing_run_twice(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Quick(tmp_path) as b:
            with contextlib.ExitStack() as held:
                b.adapter.on_submit = lambda _: held.enter_context(locked(tmp_path))
                b.arrive(message(1))
                await b.until(lambda: "locked" in (b.parts.situation.last_error or ""))
                assert b.hub.posts() == []
                b.adapter.on_submit = lambda _: None
            await b.until(lambda: b.jobs() == {"m1": "done"})
            assert len(b.adapter.works) == len(b.hub.posts()) == 1

    asyncio.run(scenario())


def test_a_journal_that_is_locked_before_the_hand_over_has_nothing_handed_over(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Quick(tmp_path) as b:
            with contextlib.ExitStack() as held:
                b.hub.on_call = lambda name: held.enter_context(locked(tmp_path)) if name == "begin" else None
                b.arrive(message(1))
                await b.until(lambda: "locked" in (b.parts.situation.last_error or ""))
                b.hub.on_call = lambda _: None
                assert b.adapter.works == []
            await b.until(lambda: b.jobs() == {"m1": "done"})
            b.arrive(message(2))
            await b.until(lambda: b.jobs()["m2"] == "done")
            assert [work.message for work in b.adapter.works] == ["m1", "m2"]
            assert b.parts.situation.last_error

    asyncio.run(scenario())


def read_only(journal: Journal, word: str) -> None:
    """Have SQLite refuse writes as on a file system that was remounted read-only, or take them again."""
    driver = journal._conn.connection.driver_connection
    assert driver is not None
    journal._executor.submit(driver.execute, f"PRAGMA query_only = {word}").result()


def test_a_journal_that_turns_read_only_is_written_again_when_it_can_be(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            b.adapter.answers = [None]
            b.arrive(message(1))
            await b.until(lambda: b.jobs() == {"m1": "running"})
            read_only(b.journal, "ON")
            b.adapter.queue.put_nowait(Finished(key=b.adapter.works[0].key, result=Result.COMPLETED, text="late"))
            await b.until(lambda: "readonly" in (b.parts.situation.last_error or ""))
            assert b.hub.posts() == []
            read_only(b.journal, "OFF")
            await b.until(lambda: b.jobs() == {"m1": "done"})
            assert b.hub.posts()[0]["content"] == "late"

    asyncio.run(scenario())
