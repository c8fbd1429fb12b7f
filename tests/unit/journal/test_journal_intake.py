from pathlib import Path
from typing import Any

import pytest
from support_journal import ME, arrive, job_of, opened, said, statements

from relay_receiver.jobs.job import Job, job_id
from relay_receiver.jobs.state import JobState
from relay_receiver.jobs.transitions import JobEvent
from relay_receiver.journal import binding as bindings
from relay_receiver.journal import chain, history, jobs, messages, room
from relay_receiver.journal.journal import Connection, Journal
from relay_receiver.wire.message import Message, seconds


def queued(journal: Journal) -> list[int]:
    return sorted(job.event for job in journal.read_now(jobs.list_jobs, limit=10_000))


def position(journal: Journal) -> tuple[Any, Any]:
    binding = journal.read_now(bindings.get)
    assert binding is not None
    return binding.cursor, binding.watermark


def whole_life(conn: Connection, job: Job) -> None:
    jobs.submit(conn, job.id, holder="h1", fence="f1", run_claim=job.claim, at=20.0)
    jobs.move(conn, job.id, JobEvent.OUTPUT, at=30.0, who="adapter", outcome="completed", body="{}")
    jobs.posted(conn, job.id, result=f"answer-{job.event}", at=31.0)


def finish(journal: Journal, number: int) -> None:
    """Take one job all the way, in one commit."""
    journal.write_now(whole_life, job_of(journal, number))


def drain(conn: Connection) -> list[int]:
    """Take every job all the way, in the order of the queue; their numbers."""
    done = []
    while (job := jobs.next_queued(conn).job) is not None:
        whole_life(conn, job)
        done.append(job.event)
    return done


def test_a_batch_its_jobs_and_its_cursor_are_one_commit(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    came = arrive(journal, said(1), said(2, to="somebody"), said(3, kind="result"), said(4, person=True))
    assert came == messages.Intake(new=4, jobs=2, received=0)
    assert queued(journal) == [1, 4]
    assert position(journal) == ("4.a", 4)
    job = job_of(journal, 1)
    assert job.id == job_id("w1", ME, "c1", "m1")
    assert (job.state, job.by_agent, job.request, job.root, job.hop) == (JobState.QUEUED, True, True, "r1", 1)
    assert len(job.claim) == 32 != job_of(journal, 4).claim
    assert [(one.source, one.target) for one in journal.read_now(jobs.events, job.id)] == [(None, "queued")]
    journal.close()


def test_a_failing_intake_leaves_no_cursor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = opened(tmp_path)

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("out of luck")

    with monkeypatch.context() as broken:
        broken.setattr(history, "made", fail)
        with pytest.raises(OSError, match="out of luck"):
            arrive(journal, said(1))
    assert position(journal) == (None, None)
    assert journal.read_now(messages.newest) is None
    assert arrive(journal, said(1)).jobs == 1
    journal.close()


def test_what_is_known_by_id_is_ignored_whatever_its_number(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    arrive(journal, said(1), said(1), said(2))
    again = arrive(journal, said(1), said(7, id="m2"), said(3), said(3))
    assert again == messages.Intake(new=1, jobs=1, received=0)
    assert queued(journal) == [1, 2, 3]
    assert position(journal) == ("7.a", 7)
    assert journal.read_now(messages.known, "m2", 2)
    assert not journal.read_now(messages.known, "m2", 7)
    assert not journal.read_now(messages.known, "m9", 9)
    journal.close()


def test_numbers_that_come_again_after_a_restore_of_the_hub_are_other_messages(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    arrive(journal, said(1), said(2))
    assert arrive(journal, said(2, id="other")).jobs == 1
    assert queued(journal) == [1, 2, 2]
    journal.close()


def test_what_belongs_to_another_channel_is_not_ours(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    assert arrive(journal, said(1, channel="c2"), said(2)) == messages.Intake(new=1, jobs=1, received=0)
    assert queued(journal) == [2]
    assert position(journal) == ("2.a", 2)
    journal.close()


def test_a_message_comes_back_as_it_came(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    message = said(
        5,
        kind="message",
        content='snow \u2603 <<<\n\ufffd"',
        to=None,
        mentions=["a", "b"],
        replyTo="m1",
        operationId="op",
        outcome="failed",
        attachments=[{"id": "sha", "name": "n", "size": 3}],
        expiresAt="2026-02-01T00:00:00.000Z",
        notice=True,
    )
    arrive(journal, message)
    assert journal.read_now(messages.get, "m5") == message
    assert journal.read_now(messages.newest) == message
    assert journal.read_now(messages.get, "m6") is None
    journal.close()


def test_context_is_the_newest_before_an_event_oldest_first(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    arrive(journal, *map(said, range(1, 21)))
    found = journal.read_now(messages.context, before_event=15, count=4)
    assert [each.event for each in found] == [11, 12, 13, 14]
    journal.close()


@pytest.mark.parametrize(("wake", "expected"), [("manual", []), ("addressed", [1, 3]), ("all", [1, 2, 3])], ids=str)
def test_the_setting_decides_what_wakes(tmp_path: Path, wake: str, expected: list[int]) -> None:
    journal = opened(tmp_path, wake=wake)
    arrive(
        journal,
        said(1),
        said(2, kind="message", to=None),
        said(3, kind="message", to=None, mentions=[ME]),
        said(4, kind="result", mentions=[ME]),
        said(5, kind="message", mentions=[ME], notice=True),
        said(6, author={"id": ME, "name": "Me", "kind": "agent"}),
        said(7, kind="a kind of a later protocol", to=ME, mentions=[ME]),
    )
    assert queued(journal) == expected
    journal.close()


def test_a_changed_setting_replays_nothing(tmp_path: Path) -> None:
    journal = opened(tmp_path, wake="manual")
    arrive(journal, said(1))
    journal.write_now(bindings.change, wake="all")
    arrive(journal, said(1), said(2))
    assert queued(journal) == [2]
    journal.close()


@pytest.mark.parametrize(
    ("expires", "jobs_made"),
    [("1970-01-01T00:00:09.999Z", 0), ("1970-01-01T00:00:10.001Z", 1), ("when it suits", 1), ("+9999-99", 1)],
)
def test_an_expired_request_is_stored_and_makes_no_job(tmp_path: Path, expires: str, jobs_made: int) -> None:
    journal = opened(tmp_path)
    assert arrive(journal, said(1, expiresAt=expires), at=10.0) == messages.Intake(new=1, jobs=jobs_made, received=0)
    assert journal.read_now(messages.get, "m1") is not None
    journal.close()


def test_a_flood_of_agents_during_a_pause_loses_nothing_and_shuts_no_person_out(tmp_path: Path) -> None:
    journal = opened(tmp_path, chain_limit=0)
    for first in range(1, 601, 50):
        arrive(journal, *(said(number) for number in range(first, first + 50)))
    counted = journal.read_now(jobs.counts)
    assert (counted["queued"], counted["received"]) == (256, 344)
    assert queued(journal) == list(range(1, 257))
    arrive(journal, *(said(number, person=True) for number in range(1001, 1301)))
    counted = journal.read_now(jobs.counts)
    assert (counted["queued"], counted["received"]) == (512, 388)
    following = journal.read_now(jobs.next_queued)
    assert following.paused
    assert following.job is not None
    assert following.job.event == 1001

    journal.write_now(bindings.change, chain_limit=10_000)
    done = journal.write_now(drain)
    assert done == [*range(1, 601), *range(1001, 1301)]
    assert journal.read_now(jobs.counts)["received"] == 0
    journal.close()


def test_a_newer_wake_never_overtakes_one_that_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "AGENT_JOBS", 2)
    journal = opened(tmp_path)
    arrive(journal, *map(said, range(1, 6)))
    monkeypatch.setattr(room, "AGENT_JOBS", 4)
    came = arrive(journal, said(9))
    assert (came.jobs, came.received) == (2, 1)
    assert queued(journal) == [1, 2, 3, 4]
    journal.close()


@pytest.mark.parametrize("event", [JobEvent.CANCEL, JobEvent.EXPIRE, JobEvent.WITHDRAW, JobEvent.ELSEWHERE])
def test_whatever_ends_a_job_gives_its_room_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, event: JobEvent
) -> None:
    monkeypatch.setattr(room, "AGENT_JOBS", 2)
    journal = opened(tmp_path)
    arrive(journal, *map(said, range(1, 5)))
    journal.write_now(jobs.move, job_of(journal, 1).id, event, at=11.0, who="receiver")
    assert queued(journal) == [1, 2, 3]
    journal.close()


def test_what_expired_while_it_waited_takes_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "AGENT_JOBS", 1)
    journal = opened(tmp_path)
    late = {"expiresAt": "1970-01-01T00:01:00.000Z"}
    arrive(journal, said(1), *(said(number, **late) for number in range(2, 10)), said(10))
    journal.write_now(jobs.move, job_of(journal, 1).id, JobEvent.CANCEL, at=100.0, who="ann")
    assert queued(journal) == [1, 10]
    assert journal.read_now(jobs.counts)["received"] == 0
    journal.close()


def full(path: Path, rows: int) -> Journal:
    """A journal with so many messages and ended jobs, with all caps in use."""
    journal = opened(path)
    for first in range(1, rows + 1, 200):
        arrive(journal, *(said(number) for number in range(first, first + 200)))
        journal.write_now(
            lambda conn: conn.exec_driver_sql("UPDATE job SET state = 'done', result = 'x' WHERE state = 'queued'")
        )
    return journal


def page(first: int) -> list[Message]:
    return [said(number) for number in range(first, first + 50)]


def test_a_page_takes_as_many_statements_however_much_is_stored(tmp_path: Path) -> None:
    for name in ("empty", "stored"):
        (tmp_path / name).mkdir()
    empty, stored = full(tmp_path / "empty", 0), full(tmp_path / "stored", 4000)
    run: dict[str, int] = {}
    for name, journal in (("empty", empty), ("stored", stored)):
        with statements(journal) as seen:
            assert arrive(journal, *page(10_001)).jobs == 50
        run[name] = len(seen)
    assert run["empty"] == run["stored"] <= 9
    empty.close()
    stored.close()


def test_pruning_keeps_what_is_new_open_or_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "AGENT_JOBS", 2)
    journal = opened(tmp_path, wake="all")
    arrive(journal, *map(said, range(1, 4)), at=10.0)
    arrive(journal, *(said(number, kind="result") for number in range(4, 31)), at=10.0)
    arrive(journal, *(said(number, kind="result") for number in range(31, 41)), at=1000.0)
    finish(journal, 1)
    gone = 0
    while step := journal.write_now(messages.prune, keep_count=10, keep_age=None, at=1000.0, most=7):
        assert step <= 14
        gone += step
    assert events(journal) == [1, 2, 3, *range(31, 41)]
    assert gone == 27

    cancelled = job_of(journal, 3).id
    journal.write_now(jobs.move, cancelled, JobEvent.CANCEL, at=20.0, who="ann", outcome="cancelled", body="{}")
    while journal.write_now(messages.prune, keep_count=0, keep_age=None, at=1e6):
        pass
    assert events(journal) == [1, 2, 3], "a hub that is restored may have lost the results of the newest jobs"
    monkeypatch.setattr(jobs, "REPOSTED", 0)
    while journal.write_now(messages.prune, keep_count=0, keep_age=None, at=1e6):
        pass
    assert events(journal) == [2, 3]
    journal.write_now(jobs.set_columns, cancelled, result="answer")
    while journal.write_now(messages.prune, keep_count=0, keep_age=None, at=1e6):
        pass
    assert [job.event for job in journal.read_now(jobs.list_jobs, limit=9)] == [2]
    assert job_of(journal, 1) is None
    assert job_of(journal, 2) is not None
    assert journal.read_now(lambda conn: conn.exec_driver_sql("PRAGMA foreign_key_check").all()) == []
    journal.close()


def events(journal: Journal) -> list[int]:
    return [each.event for each in journal.read_now(messages.context, before_event=10_000, count=10_000)]


def test_what_is_too_old_goes_however_little_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "REPOSTED", 1)
    journal = opened(tmp_path)
    arrive(journal, said(1), said(2), said(3, kind="result"), at=10.0)
    arrive(journal, said(4), said(5, kind="result"), at=1000.0)
    for number in (1, 2, 4):
        finish(journal, number)
    while journal.write_now(messages.prune, keep_count=1000, keep_age=100.0, at=1000.0):
        pass
    assert events(journal) == [4, 5]
    while journal.write_now(messages.prune, keep_count=1000, keep_age=100.0, at=2000.0):
        pass
    assert events(journal) == [4], "its job is the newest one"
    journal.close()


def test_history_is_not_read_again_from_behind_what_was_forgotten(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    times = [f"2026-01-01T00:00:0{number}.000Z" for number in range(5)]
    arrive(journal, *(said(number, kind="result", createdAt=times[number]) for number in range(1, 5)))
    journal.write_now(messages.prune, keep_count=2, keep_age=None, at=20.0)
    found = journal.read_now(bindings.get)
    assert found is not None
    assert found.configured_at == seconds(times[2])
    journal.close()


def test_pruning_looks_at_a_part_at_a_time_and_gets_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "PRUNE_WINDOW", 5)
    monkeypatch.setattr(jobs, "REPOSTED", 1)
    journal = opened(tmp_path)
    arrive(journal, *map(said, range(1, 31)))
    for number in range(4, 31):
        finish(journal, number)
    steps = []
    while step := journal.write_now(messages.prune, keep_count=2, keep_age=None, at=1e6, most=3):
        steps.append(step)
    assert max(steps) <= 6
    assert queued(journal) == [1, 2, 3, 29, 30]
    journal.close()


def test_pruning_forgets_only_chains_that_wait_nowhere(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    arrive(journal, said(1, chain={"root": "over", "hop": 9}), said(2, chain={"root": "waits", "hop": 7}), said(3))
    journal.write_now(chain.resume, at=10.0, who="ann")
    journal.write_now(jobs.move, job_of(journal, 1).id, JobEvent.CANCEL, at=11.0, who="ann")
    journal.write_now(messages.prune, keep_count=1, keep_age=None, at=11.0 + jobs.CHAIN_SECONDS)
    assert journal.read_now(chain.load).bases == {"waits": 6, "r3": 0}
    journal.close()
