"""The first schema.

A revision that a release contains is never changed: older databases are upgraded by later revisions.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

STAGES = (
    "'answered', 'cancelled', 'expired', 'failed', 'quiet', 'received', 'running', 'starting', 'stored', 'unknown', "
    "'waiting', 'withdrawn'"
)


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "identity",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("rev", sa.Integer(), server_default="1", nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("avatar_url", sa.Text(), nullable=True),
        sa.Column("signature", sa.Text(), nullable=True),
        sa.Column("created_at", sa.REAL(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_identity")),
        sa.UniqueConstraint("digest", name=op.f("uq_identity_digest")),
    )
    op.create_table(
        "workspace",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("head", sa.Integer(), server_default="0", nullable=False),
        sa.Column("pruned", sa.Integer(), server_default="0", nullable=False),
        sa.Column("pruned_tag", sa.Text(), nullable=True),
        sa.Column("messages_pruned", sa.Integer(), server_default="0", nullable=False),
        sa.Column("created_at", sa.REAL(), nullable=False),
        sa.CheckConstraint("pruned >= 0 AND pruned <= head", name=op.f("ck_workspace_pruned")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workspace")),
    )
    op.create_table(
        "attachment",
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.REAL(), nullable=False),
        sa.CheckConstraint("length(id) = 64", name=op.f("ck_attachment_id")),
        sa.ForeignKeyConstraint(["workspace"], ["workspace.id"], name=op.f("fk_attachment_workspace")),
        sa.PrimaryKeyConstraint("workspace", "id", name=op.f("pk_attachment")),
    )
    op.create_table(
        "member",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("identity", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("created_at", sa.REAL(), nullable=False),
        sa.CheckConstraint("role IN ('agent', 'human', 'owner')", name=op.f("ck_member_role")),
        sa.ForeignKeyConstraint(["identity"], ["identity.id"], name=op.f("fk_member_identity")),
        sa.ForeignKeyConstraint(["workspace"], ["workspace.id"], name=op.f("fk_member_workspace")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_member")),
        sa.UniqueConstraint("digest", name=op.f("uq_member_digest")),
    )
    op.create_index("ix_member_identity", "member", ["identity"], unique=False)
    op.create_index("ix_member_workspace", "member", ["workspace"], unique=False)
    op.create_table(
        "channel",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("folded", sa.Text(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.REAL(), nullable=False),
        sa.ForeignKeyConstraint(["created_by"], ["member.id"], name=op.f("fk_channel_created_by")),
        sa.ForeignKeyConstraint(["workspace"], ["workspace.id"], name=op.f("fk_channel_workspace")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_channel")),
        sa.UniqueConstraint("workspace", "folded", name=op.f("uq_channel_workspace_folded")),
    )
    op.create_table(
        "receiver",
        sa.Column("member", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("fence", sa.Text(), nullable=False),
        sa.Column("released", sa.Integer(), server_default="0", nullable=False),
        sa.Column("subscription", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["member"], ["member.id"], name=op.f("fk_receiver_member")),
        sa.ForeignKeyConstraint(["workspace"], ["workspace.id"], name=op.f("fk_receiver_workspace")),
        sa.PrimaryKeyConstraint("member", "scope", name=op.f("pk_receiver")),
    )
    op.create_index("ix_receiver_subscription", "receiver", ["subscription"], unique=False)
    op.create_table(
        "upload",
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("attachment", sa.Text(), nullable=False),
        sa.Column("member", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("at", sa.REAL(), nullable=False),
        sa.ForeignKeyConstraint(["member"], ["member.id"], name=op.f("fk_upload_member")),
        sa.ForeignKeyConstraint(
            ["workspace", "attachment"],
            ["attachment.workspace", "attachment.id"],
            name=op.f("fk_upload_workspace_attachment"),
        ),
        sa.PrimaryKeyConstraint("attachment", "member", name=op.f("pk_upload")),
    )
    op.create_table(
        "channel_member",
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("member", sa.Text(), nullable=False),
        sa.Column("joined_at", sa.REAL(), nullable=False),
        sa.ForeignKeyConstraint(["channel"], ["channel.id"], name=op.f("fk_channel_member_channel")),
        sa.ForeignKeyConstraint(["member"], ["member.id"], name=op.f("fk_channel_member_member")),
        sa.PrimaryKeyConstraint("channel", "member", name=op.f("pk_channel_member")),
    )
    op.create_index("ix_channel_member_member", "channel_member", ["member"], unique=False)
    op.create_table(
        "declaration",
        sa.Column("member", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("rev", sa.Integer(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("declared_at", sa.REAL(), nullable=False),
        sa.CheckConstraint("mode IN ('available', 'mentions_only', 'paused')", name=op.f("ck_declaration_mode")),
        sa.ForeignKeyConstraint(["channel"], ["channel.id"], name=op.f("fk_declaration_channel")),
        sa.ForeignKeyConstraint(["member"], ["member.id"], name=op.f("fk_declaration_member")),
        sa.PrimaryKeyConstraint("member", "channel", name=op.f("pk_declaration")),
    )
    op.create_index("ix_declaration_channel", "declaration", ["channel"], unique=False)
    op.create_table(
        "enrolment",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=True),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=True),
        sa.Column("expires_at", sa.REAL(), nullable=False),
        sa.Column("member", sa.Text(), nullable=True),
        sa.Column("used_at", sa.REAL(), nullable=True),
        sa.CheckConstraint("role IN ('agent', 'human', 'owner')", name=op.f("ck_enrolment_role")),
        sa.CheckConstraint("(member IS NULL) = (used_at IS NULL)", name=op.f("ck_enrolment_used")),
        sa.ForeignKeyConstraint(["channel"], ["channel.id"], name=op.f("fk_enrolment_channel")),
        sa.ForeignKeyConstraint(["created_by"], ["member.id"], name=op.f("fk_enrolment_created_by")),
        sa.ForeignKeyConstraint(["member"], ["member.id"], name=op.f("fk_enrolment_member")),
        sa.ForeignKeyConstraint(["workspace"], ["workspace.id"], name=op.f("fk_enrolment_workspace")),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_enrolment")),
    )
    op.create_index("ix_enrolment_expires_at", "enrolment", ["expires_at"], unique=False)
    op.create_table(
        "event",
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("tag", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=True),
        sa.Column("at", sa.REAL(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["channel"], ["channel.id"], name=op.f("fk_event_channel")),
        sa.ForeignKeyConstraint(["workspace"], ["workspace.id"], name=op.f("fk_event_workspace")),
        sa.PrimaryKeyConstraint("workspace", "number", name=op.f("pk_event")),
    )
    op.create_index("ix_event_channel_type", "event", ["workspace", "channel", "type", "number"], unique=False)
    op.create_table(
        "message",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("event", sa.Integer(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("recipient", sa.Text(), nullable=True),
        sa.Column("reply_to", sa.Text(), nullable=True),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("root", sa.Text(), nullable=False),
        sa.Column("hop", sa.Integer(), nullable=False),
        sa.Column("notice", sa.Text(), nullable=True),
        sa.Column("created_at", sa.REAL(), nullable=False),
        sa.Column("expires_at", sa.REAL(), nullable=True),
        sa.Column("withdrawn_at", sa.REAL(), nullable=True),
        sa.CheckConstraint("kind IN ('message', 'request', 'result')", name=op.f("ck_message_kind")),
        sa.CheckConstraint("hop >= 0", name=op.f("ck_message_hop")),
        sa.ForeignKeyConstraint(["author"], ["member.id"], name=op.f("fk_message_author")),
        sa.ForeignKeyConstraint(["channel"], ["channel.id"], name=op.f("fk_message_channel")),
        sa.ForeignKeyConstraint(["recipient"], ["member.id"], name=op.f("fk_message_recipient")),
        sa.ForeignKeyConstraint(["reply_to"], ["message.id"], name=op.f("fk_message_reply_to")),
        sa.ForeignKeyConstraint(["workspace"], ["workspace.id"], name=op.f("fk_message_workspace")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_message")),
        sa.UniqueConstraint("author", "operation", name=op.f("uq_message_author_operation")),
    )
    op.create_index("ix_message_channel_event", "message", ["channel", "event"], unique=True)
    op.create_table(
        "subscription",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("member", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=True),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("tag", sa.Text(), nullable=True),
        sa.Column("created_at", sa.REAL(), nullable=False),
        sa.CheckConstraint("number >= 0", name=op.f("ck_subscription_number")),
        sa.ForeignKeyConstraint(["channel"], ["channel.id"], name=op.f("fk_subscription_channel")),
        sa.ForeignKeyConstraint(["member"], ["member.id"], name=op.f("fk_subscription_member")),
        sa.ForeignKeyConstraint(["workspace"], ["workspace.id"], name=op.f("fk_subscription_workspace")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_subscription")),
    )
    op.create_index("ix_subscription_member", "subscription", ["member"], unique=False)
    op.create_table(
        "mention",
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("member", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["member"], ["member.id"], name=op.f("fk_mention_member")),
        sa.ForeignKeyConstraint(["message"], ["message.id"], name=op.f("fk_mention_message")),
        sa.PrimaryKeyConstraint("message", "position", name=op.f("pk_mention")),
    )
    op.create_table(
        "message_attachment",
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("attachment", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["message"], ["message.id"], name=op.f("fk_message_attachment_message")),
        sa.ForeignKeyConstraint(
            ["workspace", "attachment"],
            ["attachment.workspace", "attachment.id"],
            name=op.f("fk_message_attachment_workspace_attachment"),
        ),
        sa.PrimaryKeyConstraint("message", "position", name=op.f("pk_message_attachment")),
    )
    op.create_index("ix_message_attachment_attachment", "message_attachment", ["attachment", "message"], unique=False)
    op.create_table(
        "receipt",
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("member", sa.Text(), nullable=False),
        sa.Column("event", sa.Integer(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("since", sa.REAL(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("job", sa.Text(), nullable=True),
        sa.Column("expires_at", sa.REAL(), nullable=True),
        sa.Column("ended", sa.Integer(), server_default="0", nullable=False),
        sa.CheckConstraint(
            f"stage IN ({STAGES})",
            name=op.f("ck_receipt_stage"),
        ),
        sa.ForeignKeyConstraint(["channel"], ["channel.id"], name=op.f("fk_receipt_channel")),
        sa.ForeignKeyConstraint(["member"], ["member.id"], name=op.f("fk_receipt_member")),
        sa.ForeignKeyConstraint(["message"], ["message.id"], name=op.f("fk_receipt_message")),
        sa.ForeignKeyConstraint(["workspace"], ["workspace.id"], name=op.f("fk_receipt_workspace")),
        sa.PrimaryKeyConstraint("message", name=op.f("pk_receipt")),
    )
    op.create_index(
        "ix_receipt_expiring",
        "receipt",
        ["expires_at"],
        unique=False,
        sqlite_where=sa.text("ended = 0 AND stage IN ('received', 'stored')"),
        postgresql_where=sa.text("ended = 0 AND stage IN ('received', 'stored')"),
    )
    op.create_index(
        "ix_receipt_open",
        "receipt",
        ["member", "channel", "event"],
        unique=False,
        sqlite_where=sa.text("ended = 0"),
        postgresql_where=sa.text("ended = 0"),
    )
    op.create_table(
        "run",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("member", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("claim", sa.Text(), nullable=True),
        sa.Column("freed_claim", sa.Text(), nullable=True),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("fence", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("settled_by", sa.Text(), nullable=True),
        sa.Column("cancel_requested", sa.Integer(), server_default="0", nullable=False),
        sa.Column("began_at", sa.REAL(), nullable=False),
        sa.Column("ended_at", sa.REAL(), nullable=True),
        sa.CheckConstraint("state <> 'settled' OR settled_by IS NOT NULL", name=op.f("ck_run_settled")),
        sa.CheckConstraint("state IN ('finished', 'freed', 'open', 'settled')", name=op.f("ck_run_state")),
        sa.ForeignKeyConstraint(["member"], ["member.id"], name=op.f("fk_run_member")),
        sa.ForeignKeyConstraint(["message"], ["message.id"], name=op.f("fk_run_message")),
        sa.ForeignKeyConstraint(["settled_by"], ["member.id"], name=op.f("fk_run_settled_by")),
        sa.ForeignKeyConstraint(["workspace"], ["workspace.id"], name=op.f("fk_run_workspace")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run")),
        sa.UniqueConstraint("member", "scope", "request", name=op.f("uq_run_member_scope_request")),
    )
    op.create_index("ix_run_message", "run", ["message", "member"], unique=True)
    op.create_index(
        "ix_run_open",
        "run",
        ["member", "scope"],
        unique=True,
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    )
    op.create_table(
        "job_credential",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("run", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["run.id"], name=op.f("fk_job_credential_run")),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_job_credential")),
    )
    op.create_index("ix_job_credential_run", "job_credential", ["run"], unique=False)
