"""What a job came to, as the requester is told it."""

from enum import StrEnum

from relay_receiver.jobs.state import JobState


class Outcome(StrEnum):
    """The `outcome` of a result message and of a run at the hub."""

    COMPLETED = "completed"
    QUIET = "quiet"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"


END_STATE = {
    Outcome.COMPLETED: JobState.DONE,
    Outcome.QUIET: JobState.QUIET,
    Outcome.FAILED: JobState.FAILED,
    Outcome.CANCELLED: JobState.CANCELLED,
    Outcome.ABANDONED: JobState.ABANDONED,
}
"""The terminal state that a job in `output` reaches once its result is at the hub."""

WIRE_OUTCOME = {
    Outcome.COMPLETED: "completed",
    Outcome.QUIET: "quiet",
    Outcome.FAILED: "failed",
    Outcome.CANCELLED: "cancelled",
    Outcome.ABANDONED: "failed",
}
"""What the hub is told; an abandoned job shows as failed, with the reason."""
