"""Questions to people and the state of their job: one transaction, the first decision, and what a restart finds."""

import json
from pathlib import Path
from typing import Any

import pytest
from support_journal import arrive, asked, job_of, opened, said, submitted

from relay_receiver.jobs.state import JobState
from relay_receiver.jobs.transitions import JobEvent
from relay_receiver.journal import approvals, jobs, waiting
from relay_receiver.journal.approvals import Approval, Decision
from relay_receiver.journal.journal import Journal, MissedTransition
from relay_receiver.journal.tables import ApprovalState


def running(path: Path) -> tuple[Journal, Any]:
    journal = opened(path)
    arrive(journal, said(1))
    job = submitted(journal, job_of(journal, 1))
    return journal, journal.write_now(jobs.move, job.id, JobEvent.ACCEPTED, at=21.0, who="adapter")


def ask(journal: Journal, *questions: Approval, at: float = 30.0) -> JobState:
    state = JobState.RUNNING
    for each in questions:
        job, _ = journal.write_now(waiting.ask, each, at=at)
        state = job.state
    return state


def row(journal: Journal, asked: Approval) -> Approval:
    found = journal.read_now(approvals.get, asked.id)
    assert found is not None
    return found


def accept(journal: Journal, asked: Approval, by: str = "Ann (p_1)") -> bool:
    return journal.write_now(approvals.decide, asked.id, Decision(state=ApprovalState.APPROVED, by=by), at=40.0)


def test_a_question_and_its_waiting_job_are_one_transaction(tmp_path: Path) -> None:
    journal, job = running(tmp_path)
    one = asked(job)
    assert ask(journal, one) is JobState.WAITING
    assert ask(journal, one) is JobState.WAITING
    assert row(journal, one) == one
    assert one.id == f"ask:{job.id}.1:q1"
    assert job_of(journal, 1).started_at == 30.0
    assert [each.target for each in journal.read_now(jobs.events, job.id)].count("waiting") == 1
    journal.close()


def test_a_question_of_a_job_that_is_not_at_the_agent_leaves_nothing(tmp_path: Path) -> None:
    journal, job = running(tmp_path)
    with pytest.raises(MissedTransition):
        ask(journal, asked(job.evolve(attempt=2)))
    journal.write_now(jobs.move, job.id, JobEvent.LOST, at=22.0, who="adapter")
    with pytest.raises(MissedTransition):
        ask(journal, asked(job))
    assert journal.read_now(approvals.of, job.id) == []
    journal.close()


def test_the_first_decision_stands_and_the_job_goes_on_with_its_last_answer(tmp_path: Path) -> None:
    journal, job = running(tmp_path)
    one, two = asked(job, "q1"), asked(job, "q2")
    ask(journal, one, two)
    assert accept(journal, one)
    assert not journal.write_now(
        approvals.decide, one.id, Decision(state=ApprovalState.DECLINED, by="Bob (p_2)"), at=41.0
    )
    found = row(journal, one)
    assert (found.state, found.decided_by, found.ended_at) == (ApprovalState.APPROVED, "Ann (p_1)", 40.0)
    assert [each.id for each in journal.read_now(approvals.pending, job.id)] == [two.id]
    assert journal.write_now(waiting.over, one.id, at=42.0) is None
    assert job_of(journal, 1).state is JobState.WAITING
    resumed = journal.write_now(waiting.over, two.id, at=43.0)
    assert resumed is not None
    assert resumed.state is JobState.RUNNING
    assert row(journal, two).state is ApprovalState.CLOSED
    assert journal.write_now(waiting.over, two.id, at=44.0) is None
    assert journal.read_now(approvals.unanswered) == []
    assert {each.id for each in journal.read_now(approvals.unsettled)} == {one.id, two.id}
    for each in (one, two):
        journal.write_now(approvals.settle, each.id)
    assert journal.read_now(approvals.unsettled) == []
    journal.close()


def test_an_input_keeps_its_form_and_its_answer(tmp_path: Path) -> None:
    journal, job = running(tmp_path)
    one = asked(job, kind="input", schema={"type": "object"}, approvers=("p_1",))
    ask(journal, one)
    journal.write_now(
        approvals.decide, one.id, Decision(state=ApprovalState.ANSWERED, by="Ann (p_1)", answer={"a": 1}), at=40.0
    )
    found = row(journal, one)
    assert (found.schema, found.approvers) == ('{"type": "object"}', '["p_1"]')
    assert json.loads(found.answer or "") == {"a": 1}
    journal.close()


@pytest.mark.parametrize("event", [JobEvent.OUTPUT, JobEvent.LOST, JobEvent.RETRY, JobEvent.ELSEWHERE])
def test_a_job_that_leaves_the_agent_closes_what_it_asked(tmp_path: Path, event: JobEvent) -> None:
    journal, job = running(tmp_path)
    unanswered, unused = asked(job, "q1"), asked(job, "q2")
    ask(journal, unanswered, unused)
    accept(journal, unused)
    if event is JobEvent.RETRY:
        journal.write_now(jobs.requeue, job.id, event, at=50.0, who="receiver", why="never started")
    else:
        journal.write_now(jobs.move, job.id, event, at=50.0, who="adapter")
    closed, kept = row(journal, unanswered), row(journal, unused)
    assert (closed.state, closed.told, closed.settled) == (ApprovalState.CLOSED, True, False)
    assert (kept.state, kept.told, kept.settled) == (ApprovalState.APPROVED, True, True)
    assert journal.read_now(approvals.untold, job.id) == []
    assert not accept(journal, unanswered)
    journal.close()


@pytest.mark.parametrize("before", [JobState.RUNNING, JobState.WAITING])
def test_a_restart_finds_what_is_pending_and_closes_what_is_not(tmp_path: Path, before: JobState) -> None:
    journal, job = running(tmp_path)
    gone, answered, kept, new = (asked(job, name) for name in ("gone", "answered", "kept", "new"))
    if before is JobState.WAITING:
        ask(journal, gone, answered, kept)
        accept(journal, answered)
    found = journal.write_now(waiting.found, job.id, 1, [kept, new], at=60.0)
    assert found.state is JobState.WAITING
    assert {each.id for each in journal.read_now(approvals.pending, job.id)} == {kept.id, new.id}
    if before is JobState.WAITING:
        assert row(journal, gone).state is ApprovalState.CLOSED
        assert (row(journal, answered).state, row(journal, answered).told) == (ApprovalState.APPROVED, True)
    assert journal.write_now(waiting.found, job.id, 1, [], at=61.0).state is JobState.RUNNING
    journal.close()


def test_the_time_that_was_waited_is_that_of_the_history(tmp_path: Path) -> None:
    journal, job = running(tmp_path)
    one, two = asked(job, "q1"), asked(job, "q2")
    ask(journal, one, at=100.0)
    journal.write_now(waiting.over, one.id, at=130.0)
    ask(journal, two, at=200.0)
    journal.write_now(jobs.note, job.id, at=205.0, who="ann", why="asked to cancel")
    assert journal.read_now(waiting.waited, job, at=250.0) == 80.0
    assert journal.read_now(waiting.waited, job.evolve(attempt=2), at=250.0) == 0.0
    journal.close()
