"""The hub's tables for what people do: answer, decide, sign in, share documents and tasks.

They belong to the same metadata as `tables`; times are seconds since the epoch, ids opaque texts.
"""

from sqlalchemy import (
    REAL,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from relay_receiver.hub import tables
from relay_receiver.hub.tables import one_of

metadata = tables.metadata
"""The whole schema: those of `tables`, and these."""

ASK_KINDS = ("approval", "input", "choice", "form")
ASK_STATES = ("open", "answered", "applied", "expired", "superseded")
"""An answered one is applied once its creator has used the answer; expired and superseded ones have no answer."""
TASK_STATES = ("open", "doing", "done", "dropped")
CONTROLS = ("settle", "resume", "cancel")

ASK_OPEN = text("ask.state = 'open'")
OPEN_ROW = text("state = 'open'")
"""The same where a table speaks of its own rows."""
CONTROL_UNTOLD = text("control.outcome IS NULL")

ask = Table(
    "ask",
    metadata,
    Column("id", Text, primary_key=True),
    Column("workspace", Text, ForeignKey("workspace.id"), nullable=False),
    Column("channel", Text, ForeignKey("channel.id"), nullable=False),
    Column("author", Text, ForeignKey("member.id"), nullable=False),
    Column("run", Text, ForeignKey("run.id")),
    Column("message", Text, ForeignKey("message.id")),
    Column("job", Text),
    Column("kind", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("description", Text, nullable=False, server_default=""),
    Column("options", Text),
    Column("schema", Text),
    Column("action", Text),
    Column("action_hash", Text),
    Column("approvers", Text),
    Column("operation", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("state", Text, nullable=False, server_default="open"),
    Column("answer", Text),
    Column("answered_by", Text, ForeignKey("member.id")),
    Column("reason", Text),
    Column("created_at", REAL, nullable=False),
    Column("expires_at", REAL, nullable=False),
    Column("ended_at", REAL),
    UniqueConstraint("author", "operation"),
    one_of("kind", ASK_KINDS),
    one_of("state", ASK_STATES),
    CheckConstraint("(answer IS NULL) = (answered_by IS NULL)", name="answer"),
    CheckConstraint("(action IS NULL) = (action_hash IS NULL)", name="action"),
    CheckConstraint("kind <> 'approval' OR action IS NOT NULL", name="approval"),
)
"""A request to people. `options`, `schema`, `action`, `approvers` and `answer` are JSON as it was given."""
Index("ix_ask_author", ask.c.author, ask.c.channel, ask.c.state, sqlite_where=OPEN_ROW, postgresql_where=OPEN_ROW)
Index("ix_ask_expires_at", ask.c.expires_at, sqlite_where=OPEN_ROW, postgresql_where=OPEN_ROW)
Index("ix_ask_message", ask.c.message, sqlite_where=OPEN_ROW, postgresql_where=OPEN_ROW)
Index("ix_ask_open", ask.c.channel, ask.c.state, ask.c.created_at, sqlite_where=OPEN_ROW, postgresql_where=OPEN_ROW)
Index("ix_ask_run", ask.c.run, sqlite_where=OPEN_ROW, postgresql_where=OPEN_ROW)
Index("ix_ask_channel", ask.c.channel, ask.c.created_at)

doc = Table(
    "doc",
    metadata,
    Column("id", Text, primary_key=True),
    Column("workspace", Text, ForeignKey("workspace.id"), nullable=False),
    Column("channel", Text, ForeignKey("channel.id"), nullable=False),
    Column("rev", Integer, nullable=False, server_default="1"),
    Column("title", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("archived", Integer, nullable=False, server_default="0"),
    Column("created_by", Text, ForeignKey("member.id"), nullable=False),
    Column("created_at", REAL, nullable=False),
    Column("updated_by", Text, ForeignKey("member.id"), nullable=False),
    Column("updated_at", REAL, nullable=False),
    Column("operation", Text),
    UniqueConstraint("created_by", "operation"),
    CheckConstraint("rev >= 1", name="rev"),
)
"""A shared Markdown document of a channel."""
Index("ix_doc_channel", doc.c.channel, doc.c.updated_at)

doc_revision = Table(
    "doc_revision",
    metadata,
    Column("doc", Text, ForeignKey("doc.id"), nullable=False),
    Column("rev", Integer, nullable=False),
    Column("title", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("by", Text, ForeignKey("member.id"), nullable=False),
    Column("at", REAL, nullable=False),
    PrimaryKeyConstraint("doc", "rev"),
)
"""Every revision of a document, the newest too."""

task = Table(
    "task",
    metadata,
    Column("id", Text, primary_key=True),
    Column("workspace", Text, ForeignKey("workspace.id"), nullable=False),
    Column("channel", Text, ForeignKey("channel.id"), nullable=False),
    Column("rev", Integer, nullable=False, server_default="1"),
    Column("title", Text, nullable=False),
    Column("description", Text, nullable=False, server_default=""),
    Column("state", Text, nullable=False, server_default="open"),
    Column("assignee", Text, ForeignKey("member.id")),
    Column("message", Text, ForeignKey("message.id")),
    Column("doc", Text, ForeignKey("doc.id")),
    Column("created_by", Text, ForeignKey("member.id"), nullable=False),
    Column("created_at", REAL, nullable=False),
    Column("updated_by", Text, ForeignKey("member.id"), nullable=False),
    Column("updated_at", REAL, nullable=False),
    Column("operation", Text),
    Column("fingerprint", Text),
    UniqueConstraint("created_by", "operation"),
    one_of("state", TASK_STATES),
    CheckConstraint("rev >= 1", name="rev"),
)
"""One line of a channel's task list; `message` and `doc` are what it refers to."""
Index("ix_task_channel", task.c.channel, task.c.state, task.c.updated_at)

control = Table(
    "control",
    metadata,
    Column("id", Text, primary_key=True),
    Column("workspace", Text, ForeignKey("workspace.id"), nullable=False),
    Column("channel", Text, ForeignKey("channel.id"), nullable=False),
    Column("member", Text, ForeignKey("member.id"), nullable=False),
    Column("action", Text, nullable=False),
    Column("arguments", Text, nullable=False),
    Column("by", Text, ForeignKey("member.id"), nullable=False),
    Column("operation", Text, nullable=False),
    Column("created_at", REAL, nullable=False),
    Column("outcome", Text),
    Column("sentence", Text),
    Column("told_at", REAL),
    UniqueConstraint("by", "operation"),
    one_of("action", CONTROLS),
    CheckConstraint("outcome IS NULL OR outcome IN ('done', 'refused')", name="outcome"),
)
"""What a person decided about the receiver of `member` in a channel, and what the receiver says became of it."""
Index("ix_control_member", control.c.member, control.c.channel, control.c.created_at)
Index("ix_control_channel", control.c.channel, control.c.created_at)
Index(
    "ix_control_untold",
    control.c.channel,
    control.c.outcome,
    control.c.member,
    control.c.created_at,
    sqlite_where=text("outcome IS NULL"),
    postgresql_where=text("outcome IS NULL"),
)

login = Table(
    "login",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("member", Text, ForeignKey("member.id"), nullable=False),
    Column("expires_at", REAL, nullable=False),
    Column("used_at", REAL),
)
"""A one-time link that signs a person in to the console."""
Index("ix_login_expires_at", login.c.expires_at)

session = Table(
    "session",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("member", Text, ForeignKey("member.id"), nullable=False),
    Column("csrf", Text, nullable=False),
    Column("created_at", REAL, nullable=False),
    Column("expires_at", REAL, nullable=False),
)
"""A person's sign-in in one browser; `csrf` is what its forms carry."""
Index("ix_session_member", session.c.member)
Index("ix_session_expires_at", session.c.expires_at)
