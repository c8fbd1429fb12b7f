"""What is true of a running receiver just now, and never stored: connection, lease, refusals, last error."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from relay_receiver.jobs.job import Job
from relay_receiver.wire.errors import RelayError
from relay_receiver.wire.message import iso


class LeaseState(StrEnum):
    """Whether this process may take new work."""

    NONE = "none"
    """The hub was not reached yet."""
    HELD = "held"
    LAPSED = "lapsed"
    """It could not be renewed in time; the hub is away."""
    STANDBY = "standby"
    """Another holder has it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """Why a part of the receiver does not work; it is tried again and again."""

    sentence: str
    hint: str

    @classmethod
    def of(cls, part: str, error: Exception) -> Self:
        """What an error says, for a person."""
        if isinstance(error, RelayError):
            return cls(sentence=error.sentence, hint=error.hint or "relay receiver logs")
        return cls(sentence=f"The {part} fails: {error!r}.", hint="relay receiver logs")


@dataclass(kw_only=True)
class Situation:
    """Shared by the parts of one receiver process; all of them run in one event loop."""

    lease: LeaseState = LeaseState.NONE
    reconciled: bool = False
    """Whether the run that the hub holds open was looked at since the lease was taken."""
    fence: str | None = None
    lease_until: float = 0.0
    """Boot time, seconds, at which the lease ends unless renewed."""
    hub_clock: float | None = None
    """The hub's clock at boot time 0, in seconds since the epoch, as far as the last renewal told."""
    unauthorized: bool = False
    hub_error: str | None = None
    """Why the hub is not reached just now, one sentence."""
    transport: str = "none"
    transport_why: str = "not connected yet"
    adapter_error: str | None = None
    """Why the adapter cannot work, one sentence."""
    adapter_code: str | None = None
    refused: str | None = None
    """Why the last hand-over was refused."""
    refused_code: str | None = None
    """The same in a stable word, as the adapter gave it."""
    retry_at: float | None = None
    """Wall time, seconds, of the next try after a refusal."""
    paused: bool = False
    stalled: bool = False
    stopping: bool = False
    last_error: str | None = None
    last_note: str | None = None
    """The agent's last sign of life, one line."""
    last_activity: float | None = None
    gap: dict[str, Any] | None = None
    """Events that no history holds any more: `{first, last}`."""
    foreign_run: dict[str, Any] | None = None
    """A run that the hub holds open and this journal does not know."""
    faults: dict[str, Fault] = field(default_factory=dict)
    """What fails for ever unless something changes, by the part that it stops."""
    proves: dict[str, Any] = field(default_factory=dict)

    def state(self, in_flight: str | None, *, reached: bool = False) -> str:
        """The one word for people and the hub.

        Args:
            in_flight: the state of the job in flight.
            reached: told to the hub as the lease is taken: whoever reads it knows that the hub was reached.
        """
        offline = not reached and (self.lease is not LeaseState.HELD or self.transport == "offline")
        order: tuple[tuple[bool, str], ...] = (
            (self.stopping, "stopping"),
            (self.unauthorized, "unauthorized"),
            (bool(self.faults), "failing"),
            (in_flight == "unknown" or self.foreign_run is not None, "unknown"),
            (self.lease is LeaseState.STANDBY and not reached, "standby"),
            (offline, "offline"),
            (in_flight is not None, "busy"),
            (self.adapter_error is not None or self.retry_at is not None, "refused"),
            (self.paused, "paused"),
        )
        return next((word for holds, word in order if holds), "ready")

    def notable(self, job: Job | None) -> object:
        """What people are told of at once where it has changed, to be compared with what it was.

        Args:
            job: the job in flight.
        """
        return (
            self.state(None if job is None else job.state.value, reached=True),
            job and (job.id, job.attempt, job.state),
            (self.transport, self.paused, self.stalled, self.unauthorized, self.foreign_run is not None),
            (self.adapter_error, self.refused, self.last_error, tuple(self.faults)),
        )

    def detail(self) -> str | None:
        """The sentence that goes with the state, where one explains it."""
        if self.foreign_run is not None:
            return "the hub holds a run open that this journal does not know; a person settles it"
        fault = next((each.sentence for each in self.faults.values()), None)
        refused = self.refused
        if refused is not None and self.retry_at is not None:
            refused = f"{refused}; tried again at {iso(self.retry_at)}"
        return fault or self.adapter_error or refused or self.hub_error
