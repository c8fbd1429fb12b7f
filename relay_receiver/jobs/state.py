"""The states of a job, stored by value."""

from enum import StrEnum


class JobState(StrEnum):
    """Where one job is on its way from an inbound message to its one end."""

    QUEUED = "queued"
    SUBMITTING = "submitting"
    RUNNING = "running"
    WAITING = "waiting"
    OUTPUT = "output"
    UNKNOWN = "unknown"
    DONE = "done"
    QUIET = "quiet"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"
    DONE_ELSEWHERE = "done_elsewhere"


IN_FLIGHT = frozenset(
    {JobState.SUBMITTING, JobState.RUNNING, JobState.WAITING, JobState.OUTPUT, JobState.UNKNOWN},
)
"""At most one job of a binding is in one of these (a partial unique index holds it)."""

AT_THE_AGENT = frozenset({JobState.SUBMITTING, JobState.RUNNING, JobState.WAITING})
"""The agent may be working on the job; after a restart these are recovered, never submitted again."""

TERMINAL = frozenset(
    {
        JobState.DONE,
        JobState.QUIET,
        JobState.FAILED,
        JobState.CANCELLED,
        JobState.ABANDONED,
        JobState.WITHDRAWN,
        JobState.EXPIRED,
        JobState.DONE_ELSEWHERE,
    },
)

OPEN = frozenset(JobState) - TERMINAL
