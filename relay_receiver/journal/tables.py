"""The tables of one binding's journal. Times are seconds since the epoch, UTC, unless they say otherwise."""

from collections.abc import Iterable
from enum import StrEnum

from sqlalchemy import (
    DDL,
    REAL,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    event,
    false,
    text,
)

from relay_receiver.jobs.outcome import Outcome
from relay_receiver.jobs.state import IN_FLIGHT, OPEN, JobState
from relay_receiver.jobs.wake import Wake


def among(column: str, values: Iterable[StrEnum]) -> str:
    """The SQL `column IN (...)`, always spelled the same: SQLite takes a partial index only where the words match."""
    return f"{column} IN ({', '.join(sorted(repr(str(value)) for value in values))})"


OPEN_JOB = among("state", OPEN)
IN_FLIGHT_JOB = among("state", IN_FLIGHT)
QUEUED_JOB = among("state", (JobState.QUEUED,))
_POSTED = (JobState.ABANDONED, JobState.CANCELLED, JobState.DONE, JobState.FAILED, JobState.QUIET)
UNPOSTED_JOB = f"body IS NOT NULL AND result IS NULL AND {among('state', _POSTED)}"
POSTED_JOB = "result_event IS NOT NULL"
WAITING_FOR_ROOM = "received = 1"
UNTOLD_CONTROL = "told = 0"
UNSETTLED_APPROVAL = "settled = 0"

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    },
)

place = Table(
    "place",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("machine", Text, nullable=False),
    Column("device", Text, nullable=False),
    Column("filesystem", Text, nullable=False),
    Column("inode", Text, nullable=False),
    CheckConstraint("id = 1", name="one_row"),
)
"""Where this file was when it was made or adopted: a copy of it finds itself elsewhere."""

binding = Table(
    "binding",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("agent", Text, nullable=False),
    Column("agent_name", Text, nullable=False),
    Column("workspace", Text, nullable=False),
    Column("channel", Text, nullable=False),
    Column("channel_name", Text, nullable=False),
    Column("wake", Text, nullable=False),
    Column("adapter", Text, nullable=False),
    Column("argv", Text, nullable=False),
    Column("directory", Text, nullable=False),
    Column("network", Boolean, nullable=False),
    Column("tools", Boolean, nullable=False),
    Column("env", Text, nullable=False),
    Column("approvals", Text, nullable=False),
    Column("approvers", Text, nullable=False),
    Column("approval_time", REAL, nullable=False),
    Column("chain_limit", Integer, nullable=False),
    Column("ceiling", REAL, nullable=False),
    Column("stall", REAL, nullable=False),
    Column("keep_messages", Integer, nullable=False),
    Column("keep_days", Integer, nullable=False),
    Column("session", Text),
    Column("holder", Text, nullable=False),
    Column("subscription", Text),
    Column("chain_count", Integer, nullable=False),
    Column("chain_pause", Text, nullable=False, server_default=text("''")),
    Column("cursor", Text),
    Column("watermark", Integer),
    Column("configured_at", REAL, nullable=False),
    Column("mend_after", Integer),
    CheckConstraint("id = 1", name="one_row"),
    CheckConstraint(among("wake", Wake), name="wake"),
    CheckConstraint("approvals IN ('ask', 'decline')", name="approvals"),
    CheckConstraint("chain_limit >= 0 AND chain_count >= 0", name="chain"),
    CheckConstraint("keep_messages > 0 AND keep_days >= 0", name="keep"),
)
"""The one binding of this journal. `argv` and `env` are JSON lists of text. `chain_pause` is a new name each time the
chain guard was let go: a decision to let it go names the pause that it means."""

chain_base = Table(
    "chain_base",
    metadata,
    Column("root", Text, primary_key=True),
    Column("base", Integer, nullable=False),
    Column("at", REAL, nullable=False),
    Index("ix_chain_base_at", "at"),
)
"""From which hop this journal counts a chain, where a person let it go on."""

message = Table(
    "message",
    metadata,
    Column("id", Text, primary_key=True),
    Column("event", Integer, nullable=False),
    Column("channel", Text, nullable=False),
    Column("author", Text, nullable=False),
    Column("author_name", Text, nullable=False),
    Column("author_kind", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("to", Text),
    Column("mentions", Text, nullable=False),
    Column("reply_to", Text),
    Column("operation_id", Text),
    Column("outcome", Text),
    Column("root", Text, nullable=False),
    Column("hop", Integer, nullable=False),
    Column("attachments", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("expires_at", Text),
    Column("notice", Boolean, nullable=False),
    Column("received", Boolean, nullable=False, server_default=false()),
    Column("by_agent", Boolean, nullable=False),
    Column("arrived_at", REAL, nullable=False),
    CheckConstraint("author_kind IN ('agent', 'human')", name="author_kind"),
    Index("ix_message_event", "event"),
    Index("ix_message_received", "by_agent", "event", "id", sqlite_where=text(WAITING_FOR_ROOM)),
    Index("ix_message_old", "event", "arrived_at", sqlite_where=text("received = 0")),
)
"""What arrived in the channel. `kind` is open: the hub may know more kinds than we do. Times `*_at` of the hub are its
own text; `mentions` and `attachments` are JSON lists. `received`: it wakes this agent and waits for room."""

job = Table(
    "job",
    metadata,
    Column("id", Text, primary_key=True),
    Column("binding", Integer, ForeignKey("binding.id"), nullable=False, server_default=text("1")),
    Column("message", Text, ForeignKey("message.id"), nullable=False),
    Column("event", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("by_agent", Boolean, nullable=False),
    Column("request", Boolean, nullable=False),
    Column("author", Text, nullable=False),
    Column("root", Text, nullable=False),
    Column("hop", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("claim", Text, nullable=False),
    Column("fence", Text),
    Column("holder", Text),
    Column("run_claim", Text),
    Column("execution", Text),
    Column("keeper", Text),
    Column("counted", Boolean, nullable=False),
    Column("text", Text),
    Column("outcome", Text),
    Column("error", Text),
    Column("evidence", Text),
    Column("body", Text),
    Column("result", Text),
    Column("result_event", Integer),
    Column("cancel", Text),
    Column("notified", Boolean, nullable=False),
    Column("usage", Text),
    Column("expires_at", REAL),
    Column("created_at", REAL, nullable=False),
    Column("submitted_at", REAL),
    Column("started_at", REAL),
    Column("ended_at", REAL),
    UniqueConstraint("message"),
    CheckConstraint(among("state", JobState), name="state"),
    CheckConstraint(f"outcome IS NULL OR {among('outcome', Outcome)}", name="outcome"),
    CheckConstraint("attempt >= 0", name="attempt"),
    Index("ux_job_in_flight", "binding", unique=True, sqlite_where=text(IN_FLIGHT_JOB)),
    Index("ix_job_open", "by_agent", "event", "id", sqlite_where=text(OPEN_JOB)),
    Index("ix_job_queued", "by_agent", "event", "id", sqlite_where=text(QUEUED_JOB)),
    Index("ix_job_expiry", "expires_at", sqlite_where=text(QUEUED_JOB)),
    Index("ix_job_unposted", "event", sqlite_where=text(UNPOSTED_JOB)),
    Index("ix_job_event", "event", "id"),
    Index("ix_job_result_event", "result_event", sqlite_where=text(POSTED_JOB)),
)
"""A message that wakes this agent, on its way to one result; see `jobs.job.Job`."""

job_event = Table(
    "job_event",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("job", Text, ForeignKey("job.id"), nullable=False),
    Column("at", REAL, nullable=False),
    Column("source", Text),
    Column("target", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("who", Text, nullable=False),
    Column("why", Text, nullable=False),
    CheckConstraint(f"source IS NULL OR {among('source', JobState)}", name="source"),
    CheckConstraint(among("target", JobState), name="target"),
    Index("ix_job_event_job", "job", "id"),
)
"""Every move of every job, appended in the transaction that made it."""


class ApprovalState(StrEnum):
    """What became of a question to people."""

    OPEN = "open"
    APPROVED = "approved"
    DECLINED = "declined"
    ANSWERED = "answered"
    EXPIRED = "expired"
    CLOSED = "closed"
    """The agent asked no longer."""


class ApprovalKind(StrEnum):
    """What is asked."""

    APPROVAL = "approval"
    INPUT = "input"


approval = Table(
    "approval",
    metadata,
    Column("id", Text, primary_key=True),
    Column("job", Text, ForeignKey("job.id"), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("question", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("schema", Text),
    Column("approvers", Text),
    Column("request", Text),
    Column("state", Text, nullable=False),
    Column("answer", Text),
    Column("decided_by", Text),
    Column("reason", Text),
    Column("told", Boolean, nullable=False),
    Column("settled", Boolean, nullable=False),
    Column("asked_at", REAL, nullable=False),
    Column("ended_at", REAL),
    UniqueConstraint("job", "attempt", "question"),
    CheckConstraint(among("kind", ApprovalKind), name="kind"),
    CheckConstraint(among("state", ApprovalState), name="state"),
    CheckConstraint("told OR NOT settled", name="order"),
    Index("ix_approval_unsettled", "asked_at", sqlite_where=text(UNSETTLED_APPROVAL)),
    Index("ix_approval_job", "job", "asked_at"),
)
"""What an agent asked of people, and what they decided. `action` is the JSON that they are shown; `schema`, `answer`
and `approvers` are JSON. `told`: the agent needs no answer any more; `settled`: the hub knows that too."""

control = Table(
    "control",
    metadata,
    Column("id", Text, primary_key=True),
    Column("action", Text, nullable=False),
    Column("arguments", Text, nullable=False),
    Column("by_id", Text, nullable=False),
    Column("by_name", Text, nullable=False),
    Column("at", REAL, nullable=False),
    Column("outcome", Text),
    Column("sentence", Text),
    Column("told", Boolean, nullable=False),
    CheckConstraint("outcome IS NULL OR outcome IN ('done', 'refused')", name="outcome"),
    CheckConstraint("told = 0 OR outcome IS NOT NULL", name="told"),
    Index("ix_control_untold", "at", "id", sqlite_where=text(UNTOLD_CONTROL)),
    Index("ix_control_old", "told", "at"),
)
"""What people decided about this receiver at the hub. `arguments` is JSON; `told`: the hub knows the outcome."""

APPEND_ONLY = (
    "CREATE TRIGGER job_event_append_only BEFORE UPDATE ON job_event "
    "BEGIN SELECT RAISE(ABORT, 'job_event is append-only'); END"
)
event.listen(job_event, "after_create", DDL(APPEND_ONLY))  # type: ignore[no-untyped-call]  # SQLAlchemy leaves it untyped
