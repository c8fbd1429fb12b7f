"""Whether a journal is whole: read beside a running receiver, and never written to."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from relay_receiver.journal.snapshot import snapshot

SHOWN = 20
"""Faults of one kind that are told, at the most."""
_JOBS_APART = """
SELECT job.id, job.state, last.target FROM job LEFT JOIN job_event AS last
ON last.id = (SELECT max(id) FROM job_event WHERE job_event.job = job.id) WHERE last.target IS NOT job.state LIMIT ?
"""


def verify(path: Path) -> list[str]:
    """What is wrong with a journal, a sentence each; empty where it is whole.

    Looked at are the file's pages and indexes, what its rows refer to, and that each job is where its history says.

    Raises:
        JournalError: it is not there, is no journal, or cannot be read now.
    """
    with snapshot(path) as connection:
        return list(_faults(connection))


def _faults(connection: sqlite3.Connection) -> Iterator[str]:
    for (found,) in connection.execute(f"PRAGMA integrity_check({SHOWN})"):
        if found != "ok":
            yield f"The file is damaged: {found}."
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check").fetchmany(SHOWN):
        yield f"Row {row} of {table} refers to a {parent} that is not there."
    for job, state, last in connection.execute(_JOBS_APART, (SHOWN,)):
        yield f"Job {job} is {state}, and its history ends with {last}."
