"""Settling: a person says what became of a job whose outcome no program can know."""

import json
from enum import StrEnum

from relay_receiver.jobs.job import Job
from relay_receiver.jobs.outcome import Outcome
from relay_receiver.jobs.state import AT_THE_AGENT, JobState
from relay_receiver.jobs.text import clean
from relay_receiver.jobs.transitions import JobEvent
from relay_receiver.journal import jobs
from relay_receiver.journal.journal import Connection
from relay_receiver.receiver import results
from relay_receiver.wire.errors import RelayError


class Verb(StrEnum):
    """What a person may say of a job."""

    ACCEPT = "accept"
    """It was done: post this."""
    ABANDON = "abandon"
    """It is over: tell the requester."""
    RETRY = "retry"
    """Run it again, on this person's word."""


def settle(
    conn: Connection,
    job_id: str,
    verb: Verb,
    *,
    channel: str,
    text: str | None,
    reason: str | None,
    who: str,
    at: float,
) -> Job:
    """Settle one job in one transaction; what has to be posted is posted by the running receiver.

    Raises:
        RelayError: there is no such job, it is not one to settle, or the text to post is missing.
    """
    job = check(conn, job_id, verb, text=text)
    if job.state is JobState.FAILED:
        return _post_late(conn, job, channel=channel, text=text, who=who, at=at)
    if verb is Verb.RETRY:
        jobs.requeue(conn, job_id, JobEvent.RETRY, at=at, who=who, why=reason or "run again on a person's word")
        return jobs.set_columns(conn, job_id, cancel=None)
    if verb is Verb.ACCEPT:
        end = results.Ending(outcome=Outcome.COMPLETED, text=_accepted_text(job, text))
    else:
        end = results.Ending(outcome=Outcome.ABANDONED, text="", error=clean(reason or "a person gave it up"))
    return jobs.move(
        conn,
        job_id,
        JobEvent.OUTPUT,
        at=at,
        who=who,
        why=reason or verb.value,
        text=end.text or job.text,
        outcome=end.outcome.value,
        error=end.error,
        body=json.dumps(results.body(job, channel, end, run=job.run_claim is not None)),
    )


def check(conn: Connection, job_id: str, verb: Verb, *, text: str | None) -> Job:
    """The job, where `settle` would take this.

    Raises:
        RelayError: it would not.
    """
    job = jobs.get(conn, job_id)
    if job is None:
        raise RelayError(f"There is no job {job_id} here.", code="unknown_job", hint="relay receiver jobs")
    late = job.state is JobState.FAILED and job.result is None and job.body is None and verb is Verb.ACCEPT
    if job.state is not JobState.UNKNOWN and not late:
        raise RelayError(
            f"Job {job_id} is {job.state.value}: only a job whose outcome is unknown is settled.",
            code="not_unknown",
            hint=f"relay receiver job {job_id}",
        )
    if verb is Verb.ACCEPT:
        _accepted_text(job, text)
    return job


def cancel(conn: Connection, job_id: str, *, channel: str, who: str, at: float) -> Job:
    """Cancel a job: at once where it is queued, and its result says so; one at the agent is noted to be stopped.

    Raises:
        RelayError: there is no such job, it has ended, or its outcome is unknown.
    """
    job = jobs.get(conn, job_id)
    if job is None:
        raise RelayError(f"There is no job {job_id} here.", code="unknown_job", hint="relay receiver jobs")
    if job.state in AT_THE_AGENT:
        jobs.note(conn, job_id, at=at, who=who, why="asked to cancel")
        return jobs.set_columns(conn, job_id, cancel=who)
    if job.state is JobState.UNKNOWN:
        raise RelayError(
            f"The outcome of job {job_id} is unknown: it cannot be cancelled, a person settles it.",
            code="unknown_outcome",
            hint=f"relay receiver settle {job_id} --abandon --reason TEXT",
        )
    if job.state is not JobState.QUEUED:
        word = "its result is being posted" if job.state is JobState.OUTPUT else job.state.value.replace("_", " ")
        raise RelayError(
            f"Job {job_id} has ended already ({word}): there is nothing left to cancel.",
            code="ended",
            hint=f"relay receiver job {job_id}",
        )
    end = results.Ending(outcome=Outcome.CANCELLED, text="", error=f"by {who}")
    return jobs.move(
        conn,
        job_id,
        JobEvent.CANCEL,
        at=at,
        who=who,
        outcome=end.outcome.value,
        error=end.error,
        body=json.dumps(results.body(job, channel, end, run=False)),
    )


def cancel_queued(conn: Connection, job_id: str, *, channel: str, who: str, at: float) -> Job:
    """`cancel` where no receiver runs that could stop an agent.

    Raises:
        RelayError: as `cancel` does, or the job is at its agent.
    """
    job = jobs.get(conn, job_id)
    if job is not None and job.state in AT_THE_AGENT:
        raise RelayError(
            f"Job {job_id} is at its agent: a running receiver can cancel it.",
            code="not_queued",
            hint="relay receiver start",
        )
    return cancel(conn, job_id, channel=channel, who=who, at=at)


def _post_late(conn: Connection, job: Job, *, channel: str, text: str | None, who: str, at: float) -> Job:
    """Post again a result that the hub had refused for good."""
    end = results.Ending(outcome=Outcome.COMPLETED, text=_accepted_text(job, text))
    jobs.note(conn, job.id, at=at, who=who, why="accepted: the result is posted again")
    return jobs.set_columns(
        conn,
        job.id,
        text=end.text,
        outcome=end.outcome.value,
        body=json.dumps(results.body(job, channel, end, run=False)),
    )


def _accepted_text(job: Job, text: str | None) -> str:
    said = clean(text) if text is not None else job.text
    if not said:
        raise RelayError(
            f"The journal holds no text for job {job.id}: say what was done.",
            code="text_missing",
            hint=f'relay receiver settle {job.id} --accept --text "..."',
        )
    return said
