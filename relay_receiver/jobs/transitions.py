"""The one table of a job's moves. Whoever moves a job names an event; the table says where it leads."""

from enum import StrEnum

from relay_receiver.jobs.outcome import END_STATE, Outcome
from relay_receiver.jobs.state import JobState as S


class JobEvent(StrEnum):
    """What can happen to a job."""

    SUBMIT = "submit"
    """The intent to call the adapter is committed; the call follows."""
    ACCEPTED = "accepted"
    """The adapter took the job, or recovery found it running."""
    WAIT = "wait"
    """The agent waits for a person."""
    RESUME = "resume"
    """The person's answer went back to the agent."""
    REFUSED = "refused"
    """The adapter certainly did not start it: back to the queue, order kept."""
    OUTPUT = "output"
    """The end is known and the exact result is stored, not yet posted."""
    POSTED = "posted"
    """The hub stored the result, or refused it for good."""
    LOST = "lost"
    """The outcome cannot be known: only a person or later proof moves it on."""
    RETRY = "retry"
    """A person wants a new attempt, or it is proven that this one never started."""
    CANCEL = "cancel"
    WITHDRAW = "withdraw"
    EXPIRE = "expire"
    ELSEWHERE = "elsewhere"
    """The hub says that this message was run by another holder, or closed by a person."""
    ABANDON = "abandon"
    """The hub says that a person settled this run as abandoned."""


class TransitionError(Exception):
    """A move that the table does not have."""

    def __init__(self, state: S, event: JobEvent) -> None:
        super().__init__(f"a job that is {state.value} cannot take the event {event.value}")
        self.state = state
        self.event = event


TABLE: dict[tuple[S, JobEvent], S] = {
    (S.QUEUED, JobEvent.SUBMIT): S.SUBMITTING,
    (S.QUEUED, JobEvent.CANCEL): S.CANCELLED,
    (S.QUEUED, JobEvent.WITHDRAW): S.WITHDRAWN,
    (S.QUEUED, JobEvent.EXPIRE): S.EXPIRED,
    (S.QUEUED, JobEvent.ELSEWHERE): S.DONE_ELSEWHERE,
    (S.SUBMITTING, JobEvent.ACCEPTED): S.RUNNING,
    (S.SUBMITTING, JobEvent.REFUSED): S.QUEUED,
    (S.SUBMITTING, JobEvent.RETRY): S.QUEUED,
    (S.SUBMITTING, JobEvent.OUTPUT): S.OUTPUT,
    (S.SUBMITTING, JobEvent.LOST): S.UNKNOWN,
    (S.RUNNING, JobEvent.WAIT): S.WAITING,
    (S.RUNNING, JobEvent.REFUSED): S.QUEUED,
    (S.RUNNING, JobEvent.RETRY): S.QUEUED,
    (S.RUNNING, JobEvent.OUTPUT): S.OUTPUT,
    (S.RUNNING, JobEvent.LOST): S.UNKNOWN,
    (S.WAITING, JobEvent.RESUME): S.RUNNING,
    (S.WAITING, JobEvent.RETRY): S.QUEUED,
    (S.WAITING, JobEvent.OUTPUT): S.OUTPUT,
    (S.WAITING, JobEvent.LOST): S.UNKNOWN,
    (S.UNKNOWN, JobEvent.ACCEPTED): S.RUNNING,
    (S.UNKNOWN, JobEvent.RETRY): S.QUEUED,
    (S.UNKNOWN, JobEvent.OUTPUT): S.OUTPUT,
}
for _state in (S.SUBMITTING, S.RUNNING, S.WAITING, S.UNKNOWN, S.OUTPUT):
    TABLE[_state, JobEvent.ELSEWHERE] = S.DONE_ELSEWHERE
    TABLE[_state, JobEvent.ABANDON] = S.ABANDONED


def advance(state: S, event: JobEvent) -> S:
    """The state that `event` leads to. `POSTED` needs the job's outcome: see `posted_state`.

    Raises:
        TransitionError: the table has no such move.
    """
    try:
        return TABLE[state, event]
    except KeyError:
        raise TransitionError(state, event) from None


def posted_state(state: S, outcome: str, *, deliverable: bool = True) -> S:
    """The end that a job in `output` reaches when its result is stored at the hub, or can never be.

    Raises:
        TransitionError: the job is not in `output`.
        ValueError: the outcome is none of `Outcome`.
    """
    if state is not S.OUTPUT:
        raise TransitionError(state, JobEvent.POSTED)
    if not deliverable:
        return S.FAILED
    return END_STATE[Outcome(outcome)]
