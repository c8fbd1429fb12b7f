"""A job that waits for people: its questions and its state move in one transaction."""

from collections.abc import Sequence

from sqlalchemy import Connection

from relay_receiver.jobs.job import Job
from relay_receiver.jobs.state import AT_THE_AGENT, JobState
from relay_receiver.jobs.transitions import JobEvent
from relay_receiver.journal import approvals, history, jobs
from relay_receiver.journal.approvals import Approval
from relay_receiver.journal.errors import MissedTransition


def ask(conn: Connection, asked: Approval, *, at: float) -> tuple[Job, Approval]:
    """Record a question of a running job, which waits from now on; one that is known stays as it is.

    Raises:
        MissedTransition: the job is not at the agent, or in another attempt.
    """
    job = _at_agent(conn, asked.job, asked.attempt)
    found = approvals.ask(conn, asked)
    if not found.told and job.state is not JobState.WAITING:
        began = at if job.started_at is None else job.started_at  # to ask proves that it began
        job = jobs.move(conn, job.id, JobEvent.WAIT, at=at, who="adapter", why=asked.title, started_at=began)
    return job, found


def over(conn: Connection, approval_id: str, *, at: float) -> Job | None:
    """The agent waits no longer for this; the job, where it is still at the agent, goes on with the last question."""
    found = approvals.get(conn, approval_id)
    if found is None or found.told:
        return None
    approvals.over(conn, approval_id, at=at)
    return _resume(conn, found.job, at=at)


def found(conn: Connection, job_id: str, attempt: int, asked: Sequence[Approval], *, at: float) -> Job:
    """What a job is found to wait for, after a restart: all that, and nothing else.

    Raises:
        MissedTransition: the job is not at the agent, or in another attempt.
    """
    _at_agent(conn, job_id, attempt)
    waits = {each.id for each in asked}
    for each in approvals.untold(conn, job_id):
        if each.id not in waits:
            approvals.over(conn, each.id, at=at)
    for each in asked:
        ask(conn, each, at=at)
    return _resume(conn, job_id, at=at) or _at_agent(conn, job_id, attempt)


def waited(conn: Connection, job: Job, *, at: float) -> float:
    """Seconds that this attempt of a job has waited for people so far, by the times of its history."""
    total, since = 0.0, None
    for entry in history.of(conn, job.id):
        if entry.attempt != job.attempt:
            continue
        if entry.target == JobState.WAITING and since is None:
            since = entry.at
        elif entry.target != JobState.WAITING and since is not None:
            total, since = total + max(0.0, entry.at - since), None
    return total if since is None else total + max(0.0, at - since)


def _resume(conn: Connection, job_id: str, *, at: float) -> Job | None:
    job = jobs.get(conn, job_id)
    if job is None or job.state is not JobState.WAITING or approvals.untold(conn, job_id):
        return None
    return jobs.move(conn, job_id, JobEvent.RESUME, at=at, who="adapter")


def _at_agent(conn: Connection, job_id: str, attempt: int) -> Job:
    job = jobs.get(conn, job_id)
    if job is None or job.state not in AT_THE_AGENT or job.attempt != attempt:
        raise MissedTransition(job_id, expected=JobState.RUNNING, found=None if job is None else job.state)
    return job
