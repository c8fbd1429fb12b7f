"""One job: an inbound message that wakes this agent, on its way to one result."""

import hashlib
from dataclasses import dataclass, replace
from typing import Any, Self

from relay_receiver.jobs.state import JobState


def job_id(workspace: str, agent: str, channel: str, message: str) -> str:
    """The id of the job that `message` makes for `agent`: the same on every machine and after every restore."""
    text = f"{workspace}\x00{agent}\x00{channel}\x00{message}"
    return "j" + hashlib.sha256(text.encode()).hexdigest()[:31]


def operation_id(job: str) -> str:
    """The operation id under which the one result of a job is posted, whatever the attempt."""
    return f"receiver:{job}"


def notice_id(job: str, attempt: int) -> str:
    """The operation id of the notice that tells the requester of an unknown outcome."""
    return f"receiver-notice:{job}:{attempt}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A row of the journal's `job` table. Times are seconds since the epoch, UTC."""

    id: str
    message: str
    event: int
    state: JobState
    by_agent: bool
    """True when an agent wrote the message, so that the chain guard counts the job."""
    request: bool
    """True for `kind=request`: it always ends visibly."""
    author: str
    root: str
    hop: int
    attempt: int
    claim: str
    """Random, new each time the job enters `queued`; the hub's key for one hand-over."""
    fence: str | None
    holder: str | None
    """Holder and fence of the begin, under which the result is posted."""
    run_claim: str | None
    """The claim whose run may still be open at the hub; closed before the next begin."""
    execution: str | None
    """The adapter's reference to the hand-over, opaque here."""
    keeper: str | None
    """Identity of the keeper process as JSON, see `processes.identity`."""
    counted: bool
    """True once the chain counter counted this job."""
    text: str | None
    outcome: str | None
    error: str | None
    evidence: str | None
    """What is known about an outcome that cannot be proven, as JSON."""
    body: str | None
    """The exact POST body of the result as JSON."""
    result: str | None
    """The id of the result message at the hub."""
    result_event: int | None
    """Its event number there."""
    cancel: str | None
    """Who asked to cancel it, while that is not done yet."""
    notified: bool
    """True once the requester was told of an unknown outcome of this attempt."""
    usage: str | None
    expires_at: float | None
    created_at: float
    submitted_at: float | None
    started_at: float | None
    """When the first item of the agent proved the start."""
    ended_at: float | None

    def evolve(self, **changes: Any) -> Self:  # noqa: ANN401 - any field of its own type
        """A copy with `changes`."""
        return replace(self, **changes)
