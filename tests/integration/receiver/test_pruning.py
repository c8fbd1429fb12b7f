"""Forgetting by policy: at the start, now and then, never what is open; and the settings that say what stays."""

import asyncio
import json
from pathlib import Path

import pytest
from support_parts import Bench, message
from support_world import world

from relay_receiver.cli import main
from relay_receiver.journal import jobs, messages, space
from relay_receiver.receiver import pruning, verbs
from relay_receiver.receiver.pruning import DAY, Pruning


def stored(bench: Bench) -> list[int]:
    return [each.event for each in bench.journal.read_now(messages.context, before_event=10_000, count=10_000)]


def store(bench: Bench, *numbers: int, at: float, kind: str = "message") -> None:
    said = [message(number, kind=kind, content="x" * 4000) for number in numbers]
    bench.journal.write_now(messages.intake, said, cursor=f"{numbers[-1]}.aa", watermark=numbers[-1], at=at)


async def until_stored(bench: Bench, wanted: list[int]) -> None:
    task = asyncio.create_task(Pruning(bench.parts).run())
    await bench.until(lambda: stored(bench) == wanted and bench.parts.binding.configured_at > 0.0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_it_looks_at_the_start_and_keeps_what_is_open(tmp_path: Path) -> None:
    bench = Bench(tmp_path, keep_messages=3)
    store(bench, 1, at=1.0, kind="request")
    store(bench, *range(2, 10), at=1.0)
    asyncio.run(until_stored(bench, [1, 7, 8, 9]))
    assert bench.jobs() == {"m1": "queued"}


def test_it_looks_again_while_nothing_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "EVERY_SECONDS", 0.001)
    bench = Bench(tmp_path, keep_days=2)
    store(bench, 1, 2, at=bench.clock)

    async def scenario() -> None:
        task = asyncio.create_task(Pruning(bench.parts).run())
        looked = 0
        prune = messages.prune

        def counted(*given: object, **more: object) -> int:
            nonlocal looked
            looked += 1
            return prune(*given, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(messages, "prune", counted)
        await bench.until(lambda: looked > 2)
        assert stored(bench) == [1, 2]
        bench.clock += 2 * DAY
        await bench.until(lambda: stored(bench) == [])
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(scenario())


def test_where_nothing_may_go_nothing_is_written(tmp_path: Path) -> None:
    bench = Bench(tmp_path, keep_days=2)
    store(bench, *range(1, 10), at=bench.clock)
    wal = bench.journal.path.with_name(f"{bench.journal.path.name}-wal")
    before = (wal.stat().st_size, wal.stat().st_mtime_ns)
    asyncio.run(Pruning(bench.parts).forget())
    assert (wal.stat().st_size, wal.stat().st_mtime_ns) == before


def test_the_file_shrinks_once_most_of_it_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space, "GIVE_BACK_FROM", 10)
    monkeypatch.setattr(space, "GIVE_BACK_PAGES", 50)
    bench = Bench(tmp_path, keep_messages=10)
    store(bench, *range(1, 301), at=1.0)
    asyncio.run(Pruning(bench.parts).forget())
    assert len(stored(bench)) == 10
    pages = bench.journal.read_now(lambda conn: conn.exec_driver_sql("PRAGMA page_count").scalar_one())
    bench.journal.close()  # checkpoints
    assert bench.journal.path.stat().st_size == pages * 4096 < 100 * 4096


def test_the_newest_answers_stay_whatever_the_policy(tmp_path: Path) -> None:
    bench = Bench(tmp_path, keep_messages=1, keep_days=1)
    store(bench, *range(1, jobs.REPOSTED + 3), at=1.0, kind="request")
    bench.journal.write_now(
        lambda conn: conn.exec_driver_sql("UPDATE job SET state = 'done', result = 'r', ended_at = 2.0")
    )
    asyncio.run(Pruning(bench.parts).forget())
    assert stored(bench) == list(range(3, jobs.REPOSTED + 3))


def test_what_stays_is_a_setting_that_is_shown(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with world(tmp_path) as w:
        bob = w.agent("bob", keep_days=9)
        assert (verbs.status(bob)["keepMessages"], verbs.status(bob)["keepDays"]) == (1000, 9)
        verbs.start(bob)
        words = ["--profile", "bob", "receiver", "settings"]
        assert main.run([*words, "--keep-messages", "200", "--keep-days", "0", "--output", "json"]) == 0
        answer = json.loads(capfd.readouterr().out)
        assert (answer["keepMessages"], answer["keepDays"]) == (200, None)
        assert main.run([*words, "--output", "text"]) == 0
        assert "keeps: the newest 200 messages, and what is open" in capfd.readouterr().out
        assert main.run([*words, "--keep-messages", "5"]) == 2
        assert verbs.status(bob)["keepMessages"] == 200
