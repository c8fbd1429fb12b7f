"""What can be wrong with a journal.

JournalError
├── CopiedState         it was copied or restored: `adopt` it
├── NewerSchema         a newer version of the program wrote it
├── JournalUnavailable  locked, full or read-only: repeat the same write
├── JournalCorrupt      it is damaged, or no journal
└── MissedTransition    a job was not in the state that a move expected
"""

import sqlite3

from sqlalchemy import exc

from relay_receiver.jobs.state import JobState
from relay_receiver.wire.errors import RelayError

_UNAVAILABLE = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PERM,
    },
)
_CORRUPT = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_PRIMARY = 0xFF
"""SQLite's extended result codes carry the primary one in their lowest byte."""


class JournalError(RelayError):
    """The journal cannot do what was asked."""


class CopiedState(JournalError):  # noqa: N818 - it says what is the matter
    """This journal is a copy, or was restored: running it could do work twice."""


class NewerSchema(JournalError):  # noqa: N818 - it says what is the matter
    """A newer version of the program wrote this journal."""


class JournalUnavailable(JournalError):  # noqa: N818 - it says what is the matter
    """The journal cannot be read or written now; nothing changed, and the same call may be repeated."""


class JournalCorrupt(JournalError):  # noqa: N818 - it says what is the matter
    """The file is damaged, or it is no journal."""


class MissedTransition(JournalError):  # noqa: N818 - it says what is the matter
    """A job was not in the state from which it should have been moved."""

    def __init__(self, job: str, *, expected: JobState | None, found: JobState | None) -> None:
        where = f"is {found.value}" if found else "is not in the journal"
        wanted = f", and not {expected.value} as expected" if expected and found else ""
        super().__init__(
            f"Job {job} {where}{wanted}.",
            code="missed_transition",
            job=job,
            expected=expected and expected.value,
            found=found and found.value,
        )


def translate(error: exc.DBAPIError | sqlite3.Error, path: object) -> JournalError:
    """The error that a person can use, for one of the database.

    Args:
        path: the journal's file.
    """
    cause = error.orig if isinstance(error, exc.DBAPIError) else error
    code = getattr(cause, "sqlite_errorcode", None)
    primary = None if code is None else code & _PRIMARY
    if primary in _UNAVAILABLE:
        return JournalUnavailable(
            f"The journal {path} cannot be used now: {cause}.",
            code="journal_unavailable",
            hint="It is tried again; look at free disk space, permissions, and who else has the file open.",
        )
    if primary in _CORRUPT:
        return JournalCorrupt(
            f"The file {path} is damaged, or is no journal: {cause}.",
            code="journal_corrupt",
            hint="Move it aside, then restore a backup and relay receiver adopt, or else relay receiver configure",
        )
    return JournalError(f"The journal {path} refused a change: {cause}.", code="journal_refused")
