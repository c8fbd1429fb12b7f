import itertools
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update
from support_journal import arrive, job_of, opened, said, submitted

from relay_receiver.jobs.outcome import END_STATE, Outcome
from relay_receiver.jobs.state import IN_FLIGHT, JobState
from relay_receiver.jobs.transitions import TABLE, JobEvent, TransitionError
from relay_receiver.journal import chain, jobs
from relay_receiver.journal.journal import Journal, JournalError, MissedTransition
from relay_receiver.journal.tables import job as job_table


def force(journal: Journal, job: Any, state: JobState) -> None:
    """Put a job into a state, past the table of moves."""
    journal.write_now(lambda conn: conn.exec_driver_sql("UPDATE job SET state = ? WHERE id = ?", (state.value, job.id)))


def one_job(path: Path) -> tuple[Journal, Any]:
    journal = opened(path)
    arrive(journal, said(1))
    return journal, job_of(journal, 1)


def output(journal: Journal, job: Any, **columns: Any) -> Any:
    given = {"outcome": "completed", "body": "{}", "text": "done"} | columns
    return journal.write_now(jobs.move, job.id, JobEvent.OUTPUT, at=30.0, who="adapter", **given)


def test_every_pair_of_state_and_event_moves_as_the_table_says_or_not_at_all(tmp_path: Path) -> None:
    journal, job = one_job(tmp_path)
    for state, event in itertools.product(JobState, JobEvent):
        force(journal, job, state)
        past = len(journal.read_now(jobs.events, job.id))
        if target := TABLE.get((state, event)):
            moved = journal.write_now(jobs.move, job.id, event, at=5.0, who="receiver", why="because")
            last = journal.read_now(jobs.events, job.id)[-1]
            assert moved.state is target
            assert moved == job_of(journal, 1)
            assert (last.source, last.target, last.who, last.why) == (state, target, "receiver", "because")
        else:
            with pytest.raises(TransitionError):
                journal.write_now(jobs.move, job.id, event, at=5.0, who="receiver")
            assert job_of(journal, 1).state is state
            assert len(journal.read_now(jobs.events, job.id)) == past
    journal.close()


def test_a_move_from_another_state_than_expected_is_an_error(tmp_path: Path) -> None:
    journal, job = one_job(tmp_path)
    with pytest.raises(MissedTransition) as missed:
        journal.write_now(
            jobs.move, job.id, JobEvent.CANCEL, at=1.0, who="ann", expect=JobState.RUNNING, error="by ann"
        )
    assert missed.value.data == {"job": job.id, "expected": "running", "found": "queued"}
    with pytest.raises(MissedTransition):
        journal.write_now(jobs.move, "nobody", JobEvent.CANCEL, at=1.0, who="ann")
    assert job_of(journal, 1) == job
    journal.close()


def test_the_update_itself_is_guarded_by_the_state(tmp_path: Path) -> None:
    journal, job = one_job(tmp_path)
    stale = job.evolve(state=JobState.RUNNING)
    with pytest.raises(MissedTransition) as missed:
        journal.write_now(jobs._move, stale, JobState.OUTPUT, at=1.0, who="x", why="", outcome="completed")
    assert missed.value.data["found"] == "queued"
    assert job_of(journal, 1) == job
    journal.close()


def test_one_job_is_in_flight_at_most(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    arrive(journal, said(1), said(2))
    first, second = job_of(journal, 1), job_of(journal, 2)
    assert journal.read_now(jobs.in_flight) is None
    for state in IN_FLIGHT:
        force(journal, first, state)
        with pytest.raises(JournalError):
            submitted(journal, second)
        assert job_of(journal, 2) == second
        in_flight = journal.read_now(jobs.in_flight)
        assert in_flight is not None
        assert in_flight.id == first.id
    journal.close()


def test_submit_commits_attempt_chain_count_and_run(tmp_path: Path) -> None:
    journal, job = one_job(tmp_path)
    moved = submitted(journal, job, at=20.0)
    assert moved == job_of(journal, 1)
    assert moved.state is JobState.SUBMITTING
    assert (moved.attempt, moved.counted, moved.submitted_at) == (1, True, 20.0)
    assert (moved.holder, moved.fence, moved.run_claim) == ("h1", "f1", job.claim)
    assert journal.read_now(chain.load).count == 1
    with pytest.raises(MissedTransition):
        submitted(journal, job)
    assert journal.read_now(chain.load).count == 1
    journal.close()


@pytest.mark.parametrize("event", [JobEvent.REFUSED, JobEvent.RETRY])
def test_back_in_the_queue_it_keeps_its_order_and_its_open_run_and_counts_once(tmp_path: Path, event: JobEvent) -> None:
    journal = opened(tmp_path)
    arrive(journal, said(1), said(2))
    job = submitted(journal, job_of(journal, 1))
    journal.write_now(jobs.set_columns, job.id, execution="e", keeper="{}", started_at=21.0, notified=True, text="t")
    back = journal.write_now(jobs.requeue, job.id, event, at=22.0, who="adapter", why="busy")
    assert back.state is JobState.QUEUED
    assert back.claim not in {job.claim, ""}
    assert back.run_claim == job.run_claim
    assert (back.execution, back.keeper, back.started_at, back.text, back.notified) == (None, None, None, None, False)
    following = journal.read_now(jobs.next_queued)
    assert following.job == back
    closed = journal.write_now(jobs.run_closed, job.id)
    assert closed.run_claim is None
    again = submitted(journal, closed)
    assert again.attempt == 2
    assert again.run_claim == back.claim
    assert journal.read_now(chain.load).count == 1
    journal.close()


def test_a_run_that_is_closed_already_is_not_kept(tmp_path: Path) -> None:
    journal, job = one_job(tmp_path)
    job = submitted(journal, job)
    back = journal.write_now(jobs.requeue, job.id, JobEvent.REFUSED, at=1.0, who="hub", why="", keep_run=False)
    assert back.run_claim is None
    journal.close()


def test_only_refused_and_retry_queue_a_job_again(tmp_path: Path) -> None:
    journal, job = one_job(tmp_path)
    submitted(journal, job)
    with pytest.raises(TransitionError):
        journal.write_now(jobs.requeue, job.id, JobEvent.OUTPUT, at=1.0, who="x", why="")
    assert job_of(journal, 1).state is JobState.SUBMITTING
    journal.close()


@pytest.mark.parametrize("outcome", Outcome)
def test_a_posted_result_ends_the_job_by_its_outcome(tmp_path: Path, outcome: Outcome) -> None:
    journal, job = one_job(tmp_path)
    submitted(journal, job)
    before = output(journal, job, outcome=outcome.value)
    assert before.ended_at == 30.0
    ended = journal.write_now(jobs.posted, job.id, result="answer", at=31.0)
    assert ended.state is END_STATE[outcome]
    assert (ended.result, ended.run_claim, ended.ended_at) == ("answer", None, 30.0)
    assert journal.read_now(jobs.unposted) == []
    with pytest.raises(MissedTransition):
        journal.write_now(jobs.posted, job.id, result="answer", at=31.0)
    journal.close()


def test_a_result_that_can_never_be_delivered_fails_and_keeps_its_text(tmp_path: Path) -> None:
    journal, job = one_job(tmp_path)
    submitted(journal, job)
    output(journal, job)
    ended = journal.write_now(jobs.posted, job.id, result=None, at=31.0, deliverable=False, why="too odd")
    assert (ended.state, ended.text, ended.error, ended.body) == (JobState.FAILED, "done", "too odd", None)
    assert journal.read_now(jobs.unposted) == []
    late = journal.write_now(jobs.set_columns, job.id, body='{"late": 1}')
    assert journal.read_now(jobs.unposted) == [late]
    journal.write_now(jobs.set_columns, job.id, result="answer")
    assert journal.read_now(jobs.unposted) == []
    journal.close()


def test_cancelled_in_the_queue_it_is_posted_and_done_elsewhere_it_is_not(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    arrive(journal, said(1), said(2))
    cancelled = journal.write_now(
        jobs.move, job_of(journal, 1).id, JobEvent.CANCEL, at=11.0, who="ann", outcome="cancelled", body="{}"
    )
    assert cancelled.ended_at == 11.0
    assert journal.read_now(jobs.unposted) == [cancelled]
    job = submitted(journal, job_of(journal, 2))
    output(journal, job)
    journal.write_now(jobs.move, job.id, JobEvent.ELSEWHERE, at=40.0, who="hub")
    assert journal.read_now(jobs.unposted) == [cancelled]
    journal.close()


def test_the_state_is_no_column_to_set(tmp_path: Path) -> None:
    journal, job = one_job(tmp_path)
    with pytest.raises(ValueError, match="by a move"):
        journal.write_now(jobs.set_columns, job.id, state="done")
    with pytest.raises(LookupError):
        journal.write_now(jobs.set_columns, "nobody", text="x")
    with pytest.raises(LookupError):
        journal.write_now(jobs.note, "nobody", at=1.0, who="x", why="x")
    journal.close()


@pytest.mark.parametrize(("column", "value"), [("state", "lost"), ("outcome", "fine")])
def test_what_is_no_value_of_an_enum_is_refused_by_the_database(tmp_path: Path, column: str, value: str) -> None:
    journal, _ = one_job(tmp_path)
    with pytest.raises(JournalError, match="ck_job_"):
        journal.write_now(lambda conn: conn.execute(update(job_table).values({column: value})))
    journal.close()


def test_history_is_append_only_and_notes_move_nothing(tmp_path: Path) -> None:
    journal, job = one_job(tmp_path)
    journal.write_now(jobs.note, job.id, at=5.0, who="ann", why="looked at it")
    last = journal.read_now(jobs.events, job.id)[-1]
    assert (last.source, last.target, last.why) == ("queued", "queued", "looked at it")
    with pytest.raises(JournalError, match="append-only"):
        journal.write_now(lambda conn: conn.exec_driver_sql("UPDATE job_event SET why = 'never'"))
    journal.close()


def test_text_that_no_database_takes_is_cleaned(tmp_path: Path) -> None:
    journal, job = one_job(tmp_path)
    journal.write_now(jobs.move, job.id, JobEvent.CANCEL, at=1.0, who="an\udcffn", why="\x00", error="\ud800")
    assert job_of(journal, 1).error == "\ufffd"
    assert journal.read_now(jobs.events, job.id)[-1].who == "an\ufffdn"
    journal.close()


def test_how_many_are_ahead(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    arrive(journal, *map(said, range(1, 6)))
    assert [journal.read_now(jobs.ahead, job_of(journal, n).id) for n in range(1, 6)] == [0, 1, 2, 3, 4]
    submitted(journal, job_of(journal, 3))
    assert [journal.read_now(jobs.ahead, job_of(journal, n).id) for n in (1, 2, 4)] == [1, 2, 3]
    assert journal.read_now(jobs.ahead, "nobody") == 0
    journal.close()


def test_lists_and_counts(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    arrive(journal, *map(said, range(1, 6)))
    journal.write_now(jobs.move, job_of(journal, 5).id, JobEvent.CANCEL, at=1.0, who="ann")
    submitted(journal, job_of(journal, 1))
    assert [job.event for job in journal.read_now(jobs.list_jobs, limit=3)] == [5, 4, 3]
    assert [job.event for job in journal.read_now(jobs.list_jobs, limit=9, open_only=True)] == [4, 3, 2, 1]
    counted = journal.read_now(jobs.counts)
    assert {state: number for state, number in counted.items() if number} == {"queued": 3, "submitting": 1}
    journal.close()


def test_expired_jobs_are_found_while_they_are_queued(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    late = {"expiresAt": "1970-01-01T00:01:00.000Z"}
    arrive(journal, said(1, **late), said(2), said(3, **late), said(4, expiresAt="1970-01-01T00:00:30.000Z"))
    submitted(journal, job_of(journal, 1))
    assert journal.read_now(jobs.expired, 29.9) == []
    assert [job.event for job in journal.read_now(jobs.expired, 60.0)] == [4, 3]
    journal.close()
