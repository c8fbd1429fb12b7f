"""What people do: requests to them, documents, tasks, decisions about receivers, sign-ins; what receivers report.

A revision that a release contains is never changed: older databases are upgraded by later revisions.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "login",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("member", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.REAL(), nullable=False),
        sa.Column("used_at", sa.REAL(), nullable=True),
        sa.ForeignKeyConstraint(["member"], ["member.id"], name=op.f("fk_login_member")),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_login")),
    )
    op.create_index("ix_login_expires_at", "login", ["expires_at"], unique=False)
    op.create_table(
        "session",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("member", sa.Text(), nullable=False),
        sa.Column("csrf", sa.Text(), nullable=False),
        sa.Column("created_at", sa.REAL(), nullable=False),
        sa.Column("expires_at", sa.REAL(), nullable=False),
        sa.ForeignKeyConstraint(["member"], ["member.id"], name=op.f("fk_session_member")),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_session")),
    )
    op.create_index("ix_session_expires_at", "session", ["expires_at"], unique=False)
    op.create_index("ix_session_member", "session", ["member"], unique=False)
    op.create_table(
        "control",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("member", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("arguments", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("created_at", sa.REAL(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("sentence", sa.Text(), nullable=True),
        sa.Column("told_at", sa.REAL(), nullable=True),
        sa.CheckConstraint("action IN ('cancel', 'resume', 'settle')", name=op.f("ck_control_action")),
        sa.CheckConstraint("outcome IS NULL OR outcome IN ('done', 'refused')", name=op.f("ck_control_outcome")),
        sa.ForeignKeyConstraint(["by"], ["member.id"], name=op.f("fk_control_by")),
        sa.ForeignKeyConstraint(["channel"], ["channel.id"], name=op.f("fk_control_channel")),
        sa.ForeignKeyConstraint(["member"], ["member.id"], name=op.f("fk_control_member")),
        sa.ForeignKeyConstraint(["workspace"], ["workspace.id"], name=op.f("fk_control_workspace")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_control")),
        sa.UniqueConstraint("by", "operation", name=op.f("uq_control_by_operation")),
    )
    op.create_index("ix_control_channel", "control", ["channel", "created_at"], unique=False)
    op.create_index("ix_control_member", "control", ["member", "channel", "created_at"], unique=False)
    op.create_index(
        "ix_control_untold",
        "control",
        ["channel", "outcome", "member", "created_at"],
        unique=False,
        sqlite_where=sa.text("outcome IS NULL"),
        postgresql_where=sa.text("outcome IS NULL"),
    )
    op.create_table(
        "doc",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("rev", sa.Integer(), server_default="1", nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("archived", sa.Integer(), server_default="0", nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.REAL(), nullable=False),
        sa.Column("updated_by", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.REAL(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=True),
        sa.CheckConstraint("rev >= 1", name=op.f("ck_doc_rev")),
        sa.ForeignKeyConstraint(["channel"], ["channel.id"], name=op.f("fk_doc_channel")),
        sa.ForeignKeyConstraint(["created_by"], ["member.id"], name=op.f("fk_doc_created_by")),
        sa.ForeignKeyConstraint(["updated_by"], ["member.id"], name=op.f("fk_doc_updated_by")),
        sa.ForeignKeyConstraint(["workspace"], ["workspace.id"], name=op.f("fk_doc_workspace")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_doc")),
        sa.UniqueConstraint("created_by", "operation", name=op.f("uq_doc_created_by_operation")),
    )
    op.create_index("ix_doc_channel", "doc", ["channel", "updated_at"], unique=False)
    op.create_table(
        "doc_revision",
        sa.Column("doc", sa.Text(), nullable=False),
        sa.Column("rev", sa.Integer(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("at", sa.REAL(), nullable=False),
        sa.ForeignKeyConstraint(["by"], ["member.id"], name=op.f("fk_doc_revision_by")),
        sa.ForeignKeyConstraint(["doc"], ["doc.id"], name=op.f("fk_doc_revision_doc")),
        sa.PrimaryKeyConstraint("doc", "rev", name=op.f("pk_doc_revision")),
    )
    op.create_table(
        "task",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("rev", sa.Integer(), server_default="1", nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), server_default="", nullable=False),
        sa.Column("state", sa.Text(), server_default="open", nullable=False),
        sa.Column("assignee", sa.Text(), nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("doc", sa.Text(), nullable=True),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.REAL(), nullable=False),
        sa.Column("updated_by", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.REAL(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=True),
        sa.Column("fingerprint", sa.Text(), nullable=True),
        sa.CheckConstraint("state IN ('doing', 'done', 'dropped', 'open')", name=op.f("ck_task_state")),
        sa.CheckConstraint("rev >= 1", name=op.f("ck_task_rev")),
        sa.ForeignKeyConstraint(["assignee"], ["member.id"], name=op.f("fk_task_assignee")),
        sa.ForeignKeyConstraint(["channel"], ["channel.id"], name=op.f("fk_task_channel")),
        sa.ForeignKeyConstraint(["created_by"], ["member.id"], name=op.f("fk_task_created_by")),
        sa.ForeignKeyConstraint(["doc"], ["doc.id"], name=op.f("fk_task_doc")),
        sa.ForeignKeyConstraint(["message"], ["message.id"], name=op.f("fk_task_message")),
        sa.ForeignKeyConstraint(["updated_by"], ["member.id"], name=op.f("fk_task_updated_by")),
        sa.ForeignKeyConstraint(["workspace"], ["workspace.id"], name=op.f("fk_task_workspace")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_task")),
        sa.UniqueConstraint("created_by", "operation", name=op.f("uq_task_created_by_operation")),
    )
    op.create_index("ix_task_channel", "task", ["channel", "state", "updated_at"], unique=False)
    op.create_table(
        "ask",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("run", sa.Text(), nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("job", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), server_default="", nullable=False),
        sa.Column("options", sa.Text(), nullable=True),
        sa.Column("schema", sa.Text(), nullable=True),
        sa.Column("action", sa.Text(), nullable=True),
        sa.Column("action_hash", sa.Text(), nullable=True),
        sa.Column("approvers", sa.Text(), nullable=True),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default="open", nullable=False),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("answered_by", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("created_at", sa.REAL(), nullable=False),
        sa.Column("expires_at", sa.REAL(), nullable=False),
        sa.Column("ended_at", sa.REAL(), nullable=True),
        sa.CheckConstraint("kind <> 'approval' OR action IS NOT NULL", name=op.f("ck_ask_approval")),
        sa.CheckConstraint("kind IN ('approval', 'choice', 'form', 'input')", name=op.f("ck_ask_kind")),
        sa.CheckConstraint(
            "state IN ('answered', 'applied', 'expired', 'open', 'superseded')", name=op.f("ck_ask_state")
        ),
        sa.CheckConstraint("(action IS NULL) = (action_hash IS NULL)", name=op.f("ck_ask_action")),
        sa.CheckConstraint("(answer IS NULL) = (answered_by IS NULL)", name=op.f("ck_ask_answer")),
        sa.ForeignKeyConstraint(["answered_by"], ["member.id"], name=op.f("fk_ask_answered_by")),
        sa.ForeignKeyConstraint(["author"], ["member.id"], name=op.f("fk_ask_author")),
        sa.ForeignKeyConstraint(["channel"], ["channel.id"], name=op.f("fk_ask_channel")),
        sa.ForeignKeyConstraint(["message"], ["message.id"], name=op.f("fk_ask_message")),
        sa.ForeignKeyConstraint(["run"], ["run.id"], name=op.f("fk_ask_run")),
        sa.ForeignKeyConstraint(["workspace"], ["workspace.id"], name=op.f("fk_ask_workspace")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ask")),
        sa.UniqueConstraint("author", "operation", name=op.f("uq_ask_author_operation")),
    )
    op.create_index(
        "ix_ask_author",
        "ask",
        ["author", "channel", "state"],
        unique=False,
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    )
    op.create_index(
        "ix_ask_expires_at",
        "ask",
        ["expires_at"],
        unique=False,
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    )
    op.create_index(
        "ix_ask_message",
        "ask",
        ["message"],
        unique=False,
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    )
    op.create_index(
        "ix_ask_open",
        "ask",
        ["channel", "state", "created_at"],
        unique=False,
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    )
    op.create_index(
        "ix_ask_run",
        "ask",
        ["run"],
        unique=False,
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    )
    op.create_index("ix_ask_channel", "ask", ["channel", "created_at"], unique=False)
    op.create_index(
        "ix_message_reply_to",
        "message",
        ["reply_to", "event"],
        unique=False,
        sqlite_where=sa.text("reply_to IS NOT NULL"),
        postgresql_where=sa.text("reply_to IS NOT NULL"),
    )
    op.add_column("receiver", sa.Column("report", sa.Text(), nullable=True))
    op.create_table(
        "search_item",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("ref", sa.Text(), nullable=False),
        sa.Column("words", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_search_item")),
    )
    op.create_index(
        "ix_search_item_ref",
        "search_item",
        ["kind", "ref"],
        unique=True,
        sqlite_where=sa.text("kind <> 'message'"),
        postgresql_where=sa.text("kind <> 'message'"),
    )
    op.create_table(
        "search_scope",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("ref", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_search_scope")),
        sa.UniqueConstraint("ref", name=op.f("uq_search_scope_ref")),
    )
    op.create_table(
        "search_word",
        sa.Column("scope", sa.Integer(), nullable=False),
        sa.Column("word", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("scope", "word", name=op.f("pk_search_word")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "search_place",
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("workspace", name=op.f("pk_search_place")),
    )
    # The hub puts into it whatever it does not have yet: messages of before too.
    op.execute(
        "CREATE VIRTUAL TABLE search USING fts5(here, everywhere, content='', columnsize=0, "
        "tokenize=\"ascii tokenchars ':'\")"
    )
