"""The seam between the runner and an agent: one job at a time, and what is certain about it.

An adapter never decides about retries, results or people. It hands over, reports, and answers honestly
what it can prove after a crash.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """One attempt of one job, as it is handed to an agent."""

    job: str
    attempt: int
    prompt: str
    message: str
    """The id of the message that asks."""
    credential: Path | None
    """The file (0600) with the job credential; None where no tools are given."""

    @property
    def key(self) -> str:
        """Names this attempt in files and at the agent: job and attempt."""
        return f"{self.job}.{self.attempt}"


class Scope(StrEnum):
    """What a refusal is about: the binding (try again later) or this job (never)."""

    BINDING = "binding"
    JOB = "job"


@dataclass(frozen=True, kw_only=True, slots=True)
class Accepted:
    """The agent has the job. `execution` finds it again after a restart; opaque to everybody else."""

    execution: str
    keeper: str | None = None
    """Identity of the keeper as JSON, where one holds the agent."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Refused:
    """It certainly did not start. `reason` is one sentence for a person."""

    scope: Scope
    reason: str
    retry_at: float | None = None
    """When to try again, in seconds since the epoch, where the agent said so."""
    code: str = "refused"
    """A stable word: `refused`, `missing`, `busy`, `usage_limit`, `overloaded`, `unauthorized`."""


class HandoverLost(Exception):  # noqa: N818 - it is an outcome, not an error of the program
    """Something failed after the first byte could have left: whether it started is unknown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Started:
    """The first item of the agent's model, or an approval: it proves that the job started."""

    key: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """A sign of life; `note` is one line for `status`."""

    key: str
    note: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiting:
    """The agent asks a person. `action` is what they must see in full: command and cwd, patch, or questions.

    It may come again, the same, after `recover`.
    """

    key: str
    question: str
    """Identifies the pending call to `Adapter.answer`, among all calls that this adapter ever had."""
    kind: str
    """`approval` or `input`."""
    title: str
    """What it is about; the words may be the agent's."""
    action: Mapping[str, Any]
    """JSON. What the agent itself says about it is in `agentSays`."""
    schema: Mapping[str, Any] | None = None
    """Of an input: the form of the answer, see `wire.form`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WaitOver:
    """The pending question is closed, whoever closed it."""

    key: str
    question: str


class Result(StrEnum):
    """How an execution ended. Quiet is decided from the text, by the runner."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    """Interrupted by us, confirmed."""
    REFUSED = "refused"
    """Accepted, then certainly not done (usage limit, overload): goes back to the queue."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finished:
    """The end of an execution: the first one of an attempt counts."""

    key: str
    result: Result
    text: str = ""
    """The answer, whole; for `failed` whatever text there is."""
    reason: str = ""
    """One sentence for a person, for everything but `completed`."""
    usage: Mapping[str, int] | None = None
    refused: Refused | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    answered: Sequence[str] = ()
    """The questions to people whose answer the agent certainly had."""


AdapterEvent = Started | Progress | Waiting | WaitOver | Finished


@dataclass(frozen=True, kw_only=True, slots=True)
class StillRunning:
    """The execution goes on; its events come through `events()` again."""

    execution: str
    keeper: str | None = None
    waits: Sequence[Waiting] = ()
    """The questions that it waits on; what it asked before and is not here has its answer, or needs none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NeverStarted:
    """Proof that this attempt never started and never will."""

    proof: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Unprovable:
    """Nobody can know. `evidence` is what there is; `suggestion` a text for `settle --accept`."""

    reason: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    suggestion: str | None = None


Recovery = Finished | StillRunning | NeverStarted | Unprovable


@dataclass(frozen=True, kw_only=True, slots=True)
class Proofs:
    """What an adapter can prove after a crash; shown by `receiver status`."""

    never_started: bool
    finished: bool
    survives_receiver: bool
    """An execution goes on while the receiver is down."""
    note: str


class AdapterUnusable(Exception):  # noqa: N818 - it says what is the matter
    """The binding cannot work as it is: program missing, not signed in, sandbox refused.

    `code` as in `Refused.code`; the text is one sentence with what to do.
    """

    def __init__(self, text: str, code: str = "missing") -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, kw_only=True, slots=True)
class Binding:
    """What an adapter is made from: settings of the binding, and where it may keep files."""

    settings: Mapping[str, Any]
    """`argv` (list of str), `network`, `tools`, `ask` (bool) and what else the adapter documents.

    `ask`: questions of the agent go to people; without it the adapter declines them at once.
    """
    directory: Path
    """The job's working directory."""
    environment: Mapping[str, str]
    """The built environment of children, without secrets of ours."""
    spool: Path
    """Flat directory (0700) for keeper files."""
    runtime: Path
    """Short-pathed directory (0700) for sockets."""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    """Facts of the journal for recovery: `started`, whether an item of the job in flight was seen."""


class Adapter(Protocol):
    """How jobs run. One instance per receiver process; all calls from one event loop."""

    proves: Proofs
    long_lived: bool
    """One agent process serves many jobs, so that the job credential is a file at one fixed path."""

    def rebind(self, binding: Binding) -> None:
        """The settings have changed: they hold from the next job on."""

    async def open(self, session: str | None) -> str | None:
        """Make the agent ready, with the session of before or a new one. Once per process start.

        Returns:
            The session id to store, or None where the adapter has none.

        Raises:
            AdapterUnusable: it cannot work as it is; open may be called again later.
        """

    async def submit(self, work: Work) -> Accepted | Refused:
        """Hand one attempt over, once.

        Raises:
            HandoverLost: it may or may not have started.
        """

    def events(self) -> AsyncIterator[AdapterEvent]:
        """Everything that happens, of all executions, in order; ends with `close`."""

    async def answer(self, question: str, decision: Mapping[str, Any]) -> None:
        """Give a decision to exactly that pending question; unknown ones are ignored.

        `WaitOver` tells that the agent has it.

        Args:
            decision: `{"decision": "accept" | "decline"}`; an accepted input has its form as `answers`, and a
                decline may have a `note` to the agent.
        """

    async def interrupt(self, execution: str) -> bool:
        """Ask for a stop. True once it is confirmed that the execution has ended."""

    async def recover(self, execution: str | None, work: Work) -> Recovery:
        """What became of an attempt whose outcome this process has not seen."""

    async def recorded(self, key: str) -> None:
        """The outcome of that attempt is committed: what was kept for its recovery may go."""

    async def close(self, *, detach: bool = False) -> None:
        """Let go. With `detach` a running execution stays with its keeper; else nothing is left running."""
