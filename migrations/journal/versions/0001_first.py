"""The first schema.

A revision that a release contains is never changed: older journals are upgraded by later revisions,
which keep what a job in flight needs.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

STATES = (
    "'abandoned', 'cancelled', 'done', 'done_elsewhere', 'expired', 'failed', 'output', 'queued', 'quiet', "
    "'running', 'submitting', 'unknown', 'waiting', 'withdrawn'"
)


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "binding",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("agent_name", sa.Text(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("channel_name", sa.Text(), nullable=False),
        sa.Column("wake", sa.Text(), nullable=False),
        sa.Column("adapter", sa.Text(), nullable=False),
        sa.Column("argv", sa.Text(), nullable=False),
        sa.Column("directory", sa.Text(), nullable=False),
        sa.Column("network", sa.Boolean(), nullable=False),
        sa.Column("tools", sa.Boolean(), nullable=False),
        sa.Column("env", sa.Text(), nullable=False),
        sa.Column("approvals", sa.Text(), nullable=False),
        sa.Column("approvers", sa.Text(), nullable=False),
        sa.Column("approval_time", sa.REAL(), nullable=False),
        sa.Column("chain_limit", sa.Integer(), nullable=False),
        sa.Column("ceiling", sa.REAL(), nullable=False),
        sa.Column("stall", sa.REAL(), nullable=False),
        sa.Column("keep_messages", sa.Integer(), nullable=False),
        sa.Column("keep_days", sa.Integer(), nullable=False),
        sa.Column("session", sa.Text(), nullable=True),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("subscription", sa.Text(), nullable=True),
        sa.Column("chain_count", sa.Integer(), nullable=False),
        sa.Column("chain_pause", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("cursor", sa.Text(), nullable=True),
        sa.Column("watermark", sa.Integer(), nullable=True),
        sa.Column("configured_at", sa.REAL(), nullable=False),
        sa.Column("mend_after", sa.Integer(), nullable=True),
        sa.CheckConstraint("wake IN ('addressed', 'all', 'manual')", name=op.f("ck_binding_wake")),
        sa.CheckConstraint("approvals IN ('ask', 'decline')", name=op.f("ck_binding_approvals")),
        sa.CheckConstraint("chain_limit >= 0 AND chain_count >= 0", name=op.f("ck_binding_chain")),
        sa.CheckConstraint("keep_messages > 0 AND keep_days >= 0", name=op.f("ck_binding_keep")),
        sa.CheckConstraint("id = 1", name=op.f("ck_binding_one_row")),
        sa.PrimaryKeyConstraint("id", name="pk_binding"),
    )
    op.create_table(
        "chain_base",
        sa.Column("root", sa.Text(), nullable=False),
        sa.Column("base", sa.Integer(), nullable=False),
        sa.Column("at", sa.REAL(), nullable=False),
        sa.PrimaryKeyConstraint("root", name="pk_chain_base"),
    )
    op.create_index("ix_chain_base_at", "chain_base", ["at"], unique=False)
    op.create_table(
        "message",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("event", sa.Integer(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("author_name", sa.Text(), nullable=False),
        sa.Column("author_kind", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("to", sa.Text(), nullable=True),
        sa.Column("mentions", sa.Text(), nullable=False),
        sa.Column("reply_to", sa.Text(), nullable=True),
        sa.Column("operation_id", sa.Text(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("root", sa.Text(), nullable=False),
        sa.Column("hop", sa.Integer(), nullable=False),
        sa.Column("attachments", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.Text(), nullable=True),
        sa.Column("notice", sa.Boolean(), nullable=False),
        sa.Column("received", sa.Boolean(), server_default=sa.text("0"), nullable=False),
        sa.Column("by_agent", sa.Boolean(), nullable=False),
        sa.Column("arrived_at", sa.REAL(), nullable=False),
        sa.CheckConstraint("author_kind IN ('agent', 'human')", name=op.f("ck_message_author_kind")),
        sa.PrimaryKeyConstraint("id", name="pk_message"),
    )
    op.create_index("ix_message_event", "message", ["event"], unique=False)
    op.create_index(
        "ix_message_old", "message", ["event", "arrived_at"], unique=False, sqlite_where=sa.text("received = 0")
    )
    op.create_index(
        "ix_message_received",
        "message",
        ["by_agent", "event", "id"],
        unique=False,
        sqlite_where=sa.text("received = 1"),
    )
    op.create_table(
        "place",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("machine", sa.Text(), nullable=False),
        sa.Column("device", sa.Text(), nullable=False),
        sa.Column("filesystem", sa.Text(), nullable=False),
        sa.Column("inode", sa.Text(), nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_place_one_row")),
        sa.PrimaryKeyConstraint("id", name="pk_place"),
    )
    op.create_table(
        "job",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("binding", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("event", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("by_agent", sa.Boolean(), nullable=False),
        sa.Column("request", sa.Boolean(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("root", sa.Text(), nullable=False),
        sa.Column("hop", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("claim", sa.Text(), nullable=False),
        sa.Column("fence", sa.Text(), nullable=True),
        sa.Column("holder", sa.Text(), nullable=True),
        sa.Column("run_claim", sa.Text(), nullable=True),
        sa.Column("execution", sa.Text(), nullable=True),
        sa.Column("keeper", sa.Text(), nullable=True),
        sa.Column("counted", sa.Boolean(), nullable=False),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("evidence", sa.Text(), nullable=True),
        sa.Column("body", sa.Text(), nullable=True),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("result_event", sa.Integer(), nullable=True),
        sa.Column("cancel", sa.Text(), nullable=True),
        sa.Column("notified", sa.Boolean(), nullable=False),
        sa.Column("usage", sa.Text(), nullable=True),
        sa.Column("expires_at", sa.REAL(), nullable=True),
        sa.Column("created_at", sa.REAL(), nullable=False),
        sa.Column("submitted_at", sa.REAL(), nullable=True),
        sa.Column("started_at", sa.REAL(), nullable=True),
        sa.Column("ended_at", sa.REAL(), nullable=True),
        sa.CheckConstraint(
            "outcome IS NULL OR outcome IN ('abandoned', 'cancelled', 'completed', 'failed', 'quiet')",
            name=op.f("ck_job_outcome"),
        ),
        sa.CheckConstraint(
            f"state IN ({STATES})",
            name=op.f("ck_job_state"),
        ),
        sa.CheckConstraint("attempt >= 0", name=op.f("ck_job_attempt")),
        sa.ForeignKeyConstraint(["binding"], ["binding.id"], name="fk_job_binding_binding"),
        sa.ForeignKeyConstraint(["message"], ["message.id"], name="fk_job_message_message"),
        sa.PrimaryKeyConstraint("id", name="pk_job"),
        sa.UniqueConstraint("message", name="uq_job_message"),
    )
    op.create_index("ix_job_event", "job", ["event", "id"], unique=False)
    op.create_index("ix_job_expiry", "job", ["expires_at"], unique=False, sqlite_where=sa.text("state IN ('queued')"))
    op.create_index(
        "ix_job_open",
        "job",
        ["by_agent", "event", "id"],
        unique=False,
        sqlite_where=sa.text("state IN ('output', 'queued', 'running', 'submitting', 'unknown', 'waiting')"),
    )
    op.create_index(
        "ix_job_queued", "job", ["by_agent", "event", "id"], unique=False, sqlite_where=sa.text("state IN ('queued')")
    )
    op.create_index(
        "ix_job_result_event",
        "job",
        ["result_event"],
        unique=False,
        sqlite_where=sa.text("result_event IS NOT NULL"),
    )
    op.create_index(
        "ix_job_unposted",
        "job",
        ["event"],
        unique=False,
        sqlite_where=sa.text(
            "body IS NOT NULL AND result IS NULL AND state IN ('abandoned', 'cancelled', 'done', 'failed', 'quiet')"
        ),
    )
    op.create_index(
        "ux_job_in_flight",
        "job",
        ["binding"],
        unique=True,
        sqlite_where=sa.text("state IN ('output', 'running', 'submitting', 'unknown', 'waiting')"),
    )
    op.create_table(
        "approval",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("schema", sa.Text(), nullable=True),
        sa.Column("approvers", sa.Text(), nullable=True),
        sa.Column("request", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("decided_by", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("told", sa.Boolean(), nullable=False),
        sa.Column("settled", sa.Boolean(), nullable=False),
        sa.Column("asked_at", sa.REAL(), nullable=False),
        sa.Column("ended_at", sa.REAL(), nullable=True),
        sa.CheckConstraint("told OR NOT settled", name=op.f("ck_approval_order")),
        sa.CheckConstraint("kind IN ('approval', 'input')", name=op.f("ck_approval_kind")),
        sa.CheckConstraint(
            "state IN ('answered', 'approved', 'closed', 'declined', 'expired', 'open')", name=op.f("ck_approval_state")
        ),
        sa.ForeignKeyConstraint(["job"], ["job.id"], name="fk_approval_job_job"),
        sa.PrimaryKeyConstraint("id", name="pk_approval"),
        sa.UniqueConstraint("job", "attempt", "question", name="uq_approval_job_attempt_question"),
    )
    op.create_index("ix_approval_job", "approval", ["job", "asked_at"], unique=False)
    op.create_index(
        "ix_approval_unsettled",
        "approval",
        ["asked_at"],
        unique=False,
        sqlite_where=sa.text("settled = 0"),
    )
    op.create_table(
        "job_event",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("at", sa.REAL(), nullable=False),
        sa.Column("source", sa.Text(), nullable=True),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.CheckConstraint(
            f"source IS NULL OR source IN ({STATES})",
            name=op.f("ck_job_event_source"),
        ),
        sa.CheckConstraint(
            f"target IN ({STATES})",
            name=op.f("ck_job_event_target"),
        ),
        sa.ForeignKeyConstraint(["job"], ["job.id"], name="fk_job_event_job_job"),
        sa.PrimaryKeyConstraint("id", name="pk_job_event"),
    )
    op.create_index("ix_job_event_job", "job_event", ["job", "id"], unique=False)
    op.create_table(
        "control",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("arguments", sa.Text(), nullable=False),
        sa.Column("by_id", sa.Text(), nullable=False),
        sa.Column("by_name", sa.Text(), nullable=False),
        sa.Column("at", sa.REAL(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("sentence", sa.Text(), nullable=True),
        sa.Column("told", sa.Boolean(), nullable=False),
        sa.CheckConstraint("outcome IS NULL OR outcome IN ('done', 'refused')", name=op.f("ck_control_outcome")),
        sa.CheckConstraint("told = 0 OR outcome IS NOT NULL", name=op.f("ck_control_told")),
        sa.PrimaryKeyConstraint("id", name="pk_control"),
    )
    op.create_index("ix_control_old", "control", ["told", "at"], unique=False)
    op.create_index("ix_control_untold", "control", ["at", "id"], unique=False, sqlite_where=sa.text("told = 0"))
    op.execute(
        "CREATE TRIGGER job_event_append_only BEFORE UPDATE ON job_event "
        "BEGIN SELECT RAISE(ABORT, 'job_event is append-only'); END"
    )
