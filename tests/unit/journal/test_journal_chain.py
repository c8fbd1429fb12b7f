from pathlib import Path

import pytest
from support_journal import arrive, job_of, opened, said, submitted

from relay_receiver.jobs.transitions import JobEvent
from relay_receiver.journal import chain, jobs
from relay_receiver.journal.journal import Journal


def run(journal: Journal, number: int) -> None:
    """One whole turn."""
    job = submitted(journal, job_of(journal, number))
    journal.write_now(jobs.move, job.id, JobEvent.OUTPUT, at=30.0, who="adapter", outcome="quiet")
    journal.write_now(jobs.posted, job.id, result=None, at=31.0)


def following(journal: Journal) -> tuple[int | None, bool]:
    found = journal.read_now(jobs.next_queued)
    return (found.job.event if found.job else None, found.paused)


def test_agents_turns_end_at_the_limit_and_their_queue_is_kept(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    arrive(journal, *map(said, range(1, 6)))
    for number in (1, 2, 3):
        assert following(journal) == (number, False)
        run(journal, number)
    assert following(journal) == (None, True)
    assert journal.read_now(jobs.counts)["queued"] == 2
    journal.close()


def test_while_paused_peoples_jobs_run_first_and_in_their_order(tmp_path: Path) -> None:
    journal = opened(tmp_path, chain_count=3)
    arrive(journal, said(1), said(2, person=True), said(3), said(4, person=True))
    assert following(journal) == (2, True)
    run(journal, 2)
    assert following(journal) == (1, False)
    run(journal, 1)
    assert following(journal) == (3, False)
    journal.close()


def test_the_arrival_of_a_persons_message_lifts_no_pause_and_its_submission_does(tmp_path: Path) -> None:
    journal = opened(tmp_path, chain_count=3)
    arrive(journal, said(1), said(2, person=True), said(3, person=True, kind="message", to=None))
    assert journal.read_now(chain.load).count == 3
    job = submitted(journal, job_of(journal, 2))
    assert journal.read_now(chain.load).count == 0
    journal.write_now(jobs.requeue, job.id, JobEvent.REFUSED, at=1.0, who="adapter", why="busy")
    assert journal.read_now(chain.load).count == 0
    journal.close()


def test_two_persons_in_one_batch_do_not_clear_each_others_resume(tmp_path: Path) -> None:
    journal = opened(tmp_path, chain_count=3)
    arrive(journal, said(1, chain={"root": "far", "hop": 9}), said(2, person=True), said(3, person=True))
    run(journal, 2)
    assert following(journal) == (1, False)
    run(journal, 1)
    assert journal.read_now(chain.load).count == 1
    run(journal, 3)
    assert journal.read_now(chain.load).count == 0
    journal.close()


@pytest.mark.parametrize("how", ["resume", "a person's job"])
def test_a_far_chain_waits_and_goes_on_from_where_it_is(tmp_path: Path, how: str) -> None:
    journal = opened(tmp_path)
    arrive(journal, said(1, chain={"root": "far", "hop": 4}), said(2, chain={"root": "far", "hop": 5}))
    assert following(journal) == (None, True)
    if how == "resume":
        journal.write_now(chain.resume, at=1.0, who="ann")
        last = journal.read_now(jobs.events, job_of(journal, 1).id)[-1]
        assert (last.who, last.source, last.target) == ("ann", "queued", "queued")
    else:
        arrive(journal, said(3, person=True))
        run(journal, 3)
    assert dict(journal.read_now(chain.load).bases) == {"far": 4}
    assert following(journal) == (1, False)
    run(journal, 1)
    run(journal, 2)
    arrive(
        journal,
        said(4, chain={"root": "far", "hop": 7}),
        said(5, chain={"root": "far", "hop": 8}),
    )
    assert following(journal) == (4, False)
    run(journal, 4)
    assert following(journal) == (None, True)
    journal.close()


def test_the_base_of_one_chain_is_no_base_of_another(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    arrive(journal, said(1, chain={"root": "far", "hop": 9}))
    journal.write_now(chain.resume, at=1.0, who="ann")
    run(journal, 1)
    arrive(journal, said(2, chain={"root": "other", "hop": 9}))
    assert following(journal) == (None, True)
    assert dict(journal.read_now(chain.load, root="other").bases) == {}
    journal.close()


def test_resume_with_an_empty_queue_and_twice_is_fine(tmp_path: Path) -> None:
    journal = opened(tmp_path, chain_count=3)
    for _ in range(2):
        journal.write_now(chain.resume, at=1.0, who="ann")
    assert journal.read_now(chain.load).count == 0
    journal.close()


def test_the_count_survives_a_restart(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    arrive(journal, said(1))
    submitted(journal, job_of(journal, 1))
    journal.close()
    journal = opened(tmp_path)
    assert journal.read_now(chain.load).count == 1
    assert job_of(journal, 1).counted
    journal.close()
