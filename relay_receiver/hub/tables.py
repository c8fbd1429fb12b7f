"""The hub's tables. Times are seconds since the epoch, ids are opaque texts."""

from sqlalchemy import (
    REAL,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from relay_receiver.wire.stage import Stage

RUN_OPEN = text("run.state = 'open'")
NOT_ENDED = text("receipt.ended = 0")
IN_LINE = text("receipt.ended = 0 AND receipt.stage IN ('received', 'stored')")
"""Conditions of partial indexes, in their own words: a bound value in their place would not find the index."""

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

ROLES = ("agent", "human", "owner")
KINDS = ("message", "request", "result")
MODES = ("available", "mentions_only", "paused")
RUN_STATES = ("open", "freed", "finished", "settled")
"""A freed run waits for a new claim; finished and settled ones refuse every later begin."""


def one_of(column: str, values: tuple[str, ...]) -> CheckConstraint:
    """The constraint that a column has one of these values."""
    words = ", ".join(f"'{value}'" for value in sorted(values))
    return CheckConstraint(f"{column} IN ({words})", name=column)


workspace = Table(
    "workspace",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("head", Integer, nullable=False, server_default="0"),
    Column("pruned", Integer, nullable=False, server_default="0"),
    Column("pruned_tag", Text),
    Column("messages_pruned", Integer, nullable=False, server_default="0"),
    Column("created_at", REAL, nullable=False),
    CheckConstraint("pruned >= 0 AND pruned <= head", name="pruned"),
)
"""`head` is the number of the last event, `pruned` that of the last one that is no longer kept."""

identity = Table(
    "identity",
    metadata,
    Column("id", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("rev", Integer, nullable=False, server_default="1"),
    Column("name", Text, nullable=False),
    Column("avatar_url", Text),
    Column("signature", Text),
    Column("created_at", REAL, nullable=False),
    UniqueConstraint("digest"),
)
"""An agent's own global profile, whatever workspaces it is a member of."""

member = Table(
    "member",
    metadata,
    Column("id", Text, primary_key=True),
    Column("workspace", Text, ForeignKey("workspace.id"), nullable=False),
    Column("identity", Text, ForeignKey("identity.id"), nullable=False),
    Column("role", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("created_at", REAL, nullable=False),
    UniqueConstraint("digest"),
    one_of("role", ROLES),
)
Index("ix_member_workspace", member.c.workspace)
Index("ix_member_identity", member.c.identity)

channel = Table(
    "channel",
    metadata,
    Column("id", Text, primary_key=True),
    Column("workspace", Text, ForeignKey("workspace.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("folded", Text, nullable=False),
    Column("created_by", Text, ForeignKey("member.id"), nullable=False),
    Column("created_at", REAL, nullable=False),
    UniqueConstraint("workspace", "folded"),
)

channel_member = Table(
    "channel_member",
    metadata,
    Column("channel", Text, ForeignKey("channel.id"), nullable=False),
    Column("member", Text, ForeignKey("member.id"), nullable=False),
    Column("joined_at", REAL, nullable=False),
    PrimaryKeyConstraint("channel", "member"),
)
Index("ix_channel_member_member", channel_member.c.member)

enrolment = Table(
    "enrolment",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("workspace", Text, ForeignKey("workspace.id"), nullable=False),
    Column("channel", Text, ForeignKey("channel.id")),
    Column("role", Text, nullable=False),
    Column("created_by", Text, ForeignKey("member.id")),
    Column("expires_at", REAL, nullable=False),
    Column("member", Text, ForeignKey("member.id")),
    Column("used_at", REAL),
    one_of("role", ROLES),
    CheckConstraint("(member IS NULL) = (used_at IS NULL)", name="used"),
)
"""A code for one channel, or for the owner's seat; used once it names the member that it made or widened."""
Index("ix_enrolment_expires_at", enrolment.c.expires_at)

event = Table(
    "event",
    metadata,
    Column("workspace", Text, ForeignKey("workspace.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("tag", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("channel", Text, ForeignKey("channel.id")),
    Column("at", REAL, nullable=False),
    Column("payload", Text, nullable=False),
    PrimaryKeyConstraint("workspace", "number"),
)
"""`payload` is the event's `data` as it goes on the wire, made once."""
Index("ix_event_channel_type", event.c.workspace, event.c.channel, event.c.type, event.c.number)

message = Table(
    "message",
    metadata,
    Column("id", Text, primary_key=True),
    Column("workspace", Text, ForeignKey("workspace.id"), nullable=False),
    Column("channel", Text, ForeignKey("channel.id"), nullable=False),
    Column("event", Integer, nullable=False),
    Column("author", Text, ForeignKey("member.id"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("recipient", Text, ForeignKey("member.id")),
    Column("reply_to", Text, ForeignKey("message.id")),
    Column("operation", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("outcome", Text),
    Column("root", Text, nullable=False),
    Column("hop", Integer, nullable=False),
    Column("notice", Text),
    Column("created_at", REAL, nullable=False),
    Column("expires_at", REAL),
    Column("withdrawn_at", REAL),
    UniqueConstraint("author", "operation"),
    one_of("kind", KINDS),
    CheckConstraint("hop >= 0", name="hop"),
)
Index("ix_message_channel_event", message.c.channel, message.c.event, unique=True)
Index(
    "ix_message_reply_to",
    message.c.reply_to,
    message.c.event,
    sqlite_where=text("reply_to IS NOT NULL"),
    postgresql_where=text("reply_to IS NOT NULL"),
)

mention = Table(
    "mention",
    metadata,
    Column("message", Text, ForeignKey("message.id"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("member", Text, ForeignKey("member.id"), nullable=False),
    PrimaryKeyConstraint("message", "position"),
)

attachment = Table(
    "attachment",
    metadata,
    Column("workspace", Text, ForeignKey("workspace.id"), nullable=False),
    Column("id", Text, nullable=False),
    Column("size", Integer, nullable=False),
    Column("created_at", REAL, nullable=False),
    PrimaryKeyConstraint("workspace", "id"),
    CheckConstraint("length(id) = 64", name="id"),
)
"""`id` is the SHA-256 of the bytes, which are in a file of that name."""

upload = Table(
    "upload",
    metadata,
    Column("workspace", Text, nullable=False),
    Column("attachment", Text, nullable=False),
    Column("member", Text, ForeignKey("member.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("at", REAL, nullable=False),
    PrimaryKeyConstraint("attachment", "member"),
    ForeignKeyConstraint(["workspace", "attachment"], ["attachment.workspace", "attachment.id"]),
)
"""Who showed that they have the bytes, and may attach them."""

message_attachment = Table(
    "message_attachment",
    metadata,
    Column("message", Text, ForeignKey("message.id"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("workspace", Text, nullable=False),
    Column("attachment", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("size", Integer, nullable=False),
    PrimaryKeyConstraint("message", "position"),
    ForeignKeyConstraint(["workspace", "attachment"], ["attachment.workspace", "attachment.id"]),
)
Index("ix_message_attachment_attachment", message_attachment.c.attachment, message_attachment.c.message)

subscription = Table(
    "subscription",
    metadata,
    Column("id", Text, primary_key=True),
    Column("workspace", Text, ForeignKey("workspace.id"), nullable=False),
    Column("member", Text, ForeignKey("member.id"), nullable=False),
    Column("channel", Text, ForeignKey("channel.id")),
    Column("type", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("tag", Text),
    Column("created_at", REAL, nullable=False),
    CheckConstraint("number >= 0", name="number"),
)
"""A durable consumer; `number` and `tag` are the cursor up to which it has acknowledged."""
Index("ix_subscription_member", subscription.c.member)

receiver = Table(
    "receiver",
    metadata,
    Column("member", Text, ForeignKey("member.id"), nullable=False),
    Column("scope", Text, nullable=False),
    Column("workspace", Text, ForeignKey("workspace.id"), nullable=False),
    Column("holder", Text, nullable=False),
    Column("fence", Text, nullable=False),
    Column("released", Integer, nullable=False, server_default="0"),
    Column("subscription", Text),
    Column("report", Text),
    PrimaryKeyConstraint("member", "scope"),
)
"""Who may run an agent's jobs in a channel. `scope` is the channel, or empty for clients that name none.
`report` is the JSON that the holder last told of itself."""
Index("ix_receiver_subscription", receiver.c.subscription)

run = Table(
    "run",
    metadata,
    Column("id", Text, primary_key=True),
    Column("workspace", Text, ForeignKey("workspace.id"), nullable=False),
    Column("member", Text, ForeignKey("member.id"), nullable=False),
    Column("scope", Text, nullable=False),
    Column("message", Text, ForeignKey("message.id")),
    Column("request", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("claim", Text),
    Column("freed_claim", Text),
    Column("holder", Text, nullable=False),
    Column("fence", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("stage", Text, nullable=False),
    Column("outcome", Text),
    Column("reason", Text),
    Column("settled_by", Text, ForeignKey("member.id")),
    Column("cancel_requested", Integer, nullable=False, server_default="0"),
    Column("began_at", REAL, nullable=False),
    Column("ended_at", REAL),
    UniqueConstraint("member", "scope", "request"),
    one_of("state", RUN_STATES),
    CheckConstraint("state <> 'settled' OR settled_by IS NOT NULL", name="settled"),
)
"""One for each agent and message, as long as the message; at most one of an agent is open in a scope."""
Index("ix_run_message", run.c.message, run.c.member, unique=True)
Index(
    "ix_run_open",
    run.c.member,
    run.c.scope,
    unique=True,
    sqlite_where=text("state = 'open'"),
    postgresql_where=text("state = 'open'"),
)

job_credential = Table(
    "job_credential",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("run", Text, ForeignKey("run.id"), nullable=False),
)
Index("ix_job_credential_run", job_credential.c.run)

receipt = Table(
    "receipt",
    metadata,
    Column("message", Text, ForeignKey("message.id"), primary_key=True),
    Column("workspace", Text, ForeignKey("workspace.id"), nullable=False),
    Column("channel", Text, ForeignKey("channel.id"), nullable=False),
    Column("member", Text, ForeignKey("member.id"), nullable=False),
    Column("event", Integer, nullable=False),
    Column("stage", Text, nullable=False),
    Column("since", REAL, nullable=False),
    Column("detail", Text),
    Column("reason", Text),
    Column("job", Text),
    Column("expires_at", REAL),
    Column("ended", Integer, nullable=False, server_default="0"),
    one_of("stage", tuple(stage.value for stage in Stage)),
)
"""How far a request to `member` has come."""
Index(
    "ix_receipt_open",
    receipt.c.member,
    receipt.c.channel,
    receipt.c.event,
    sqlite_where=text("ended = 0"),
    postgresql_where=text("ended = 0"),
)
Index(
    "ix_receipt_expiring",
    receipt.c.expires_at,
    sqlite_where=text("ended = 0 AND stage IN ('received', 'stored')"),
    postgresql_where=text("ended = 0 AND stage IN ('received', 'stored')"),
)

declaration = Table(
    "declaration",
    metadata,
    Column("member", Text, ForeignKey("member.id"), nullable=False),
    Column("channel", Text, ForeignKey("channel.id"), nullable=False),
    Column("rev", Integer, nullable=False),
    Column("mode", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("declared_at", REAL, nullable=False),
    PrimaryKeyConstraint("member", "channel"),
    one_of("mode", MODES),
)
"""What an agent intends to take. How long it still counts lives in memory: renewing it writes nothing."""
Index("ix_declaration_channel", declaration.c.channel)
