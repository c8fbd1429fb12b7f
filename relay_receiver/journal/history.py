"""The history of jobs: append-only, in the transaction that makes the move."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, insert, select

from relay_receiver.jobs.state import JobState
from relay_receiver.jobs.text import clean
from relay_receiver.journal.tables import job_event

SHOWN = 1000
"""Entries of one job that are read at the most; the newest."""

_APPEND = insert(job_event)


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One line of a job's history. `source` is None where it was made, and `target` the same where nothing moved."""

    at: float
    source: str | None
    target: str
    attempt: int
    who: str
    """`receiver`, `adapter`, `hub`, `requester`, or which person."""
    why: str


def append(
    conn: Connection,
    job: str,
    *,
    source: JobState | None,
    target: JobState,
    attempt: int,
    at: float,
    who: str,
    why: str,
) -> None:
    """Write one line."""
    conn.execute(
        _APPEND,
        {
            "job": job,
            "source": source,
            "target": target,
            "attempt": attempt,
            "at": at,
            "who": clean(who),
            "why": clean(why),
        },
    )


def made(conn: Connection, jobs: Sequence[str], *, at: float) -> None:
    """Write that these jobs were queued."""
    conn.execute(
        _APPEND,
        [
            {
                "job": job,
                "source": None,
                "target": JobState.QUEUED,
                "attempt": 0,
                "at": at,
                "who": "receiver",
                "why": "",
            }
            for job in jobs
        ],
    )


def of(conn: Connection, job: str) -> list[Entry]:
    """The history of a job, oldest first; the newest `SHOWN` lines."""
    columns = job_event.c["at", "source", "target", "attempt", "who", "why"]
    rows = conn.execute(
        select(*columns).where(job_event.c.job == job).order_by(job_event.c.id.desc()).limit(SHOWN)
    ).all()
    return [Entry(**row._mapping) for row in reversed(rows)]  # noqa: SLF001 - SQLAlchemy's public name for it
