"""Posting and withdrawing messages: the hub sets order, chain and mentions; an operation id posts once, for ever."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select, update

from relay_receiver.hub import attachments, channels, events, ids, members, message_views, receipts, runs
from relay_receiver.hub.auth import Actor, Job
from relay_receiver.hub.errors import Refusal, forbidden, invalid, not_found
from relay_receiver.hub.message_views import MessageRow
from relay_receiver.hub.prepared import Prepared
from relay_receiver.hub.tables import RUN_OPEN, mention, message, run
from relay_receiver.wire.fingerprint import fingerprint
from relay_receiver.wire.limits import REQUEST_EXPIRY_SECONDS
from relay_receiver.wire.mentions import mentioned
from relay_receiver.wire.message import HUMAN
from relay_receiver.wire.stage import ENDS, Stage, stage_of_result

RECEIVERS_OPERATION = "receiver:"
"""Operation ids of results begin so; a job cannot take one before its receiver does."""

REASON_CHARS = 500
"""Of why a result is no answer, as it is shown of the request."""

Json = dict[str, Any]

_insert = Prepared(insert(message))
_insert_mention = Prepared(insert(mention))


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """A message as its author sent it. Times are seconds since the epoch."""

    channel: str
    content: str
    kind: str
    operation: str
    to: str | None = None
    mentions: tuple[str, ...] = ()
    reply_to: str | None = None
    outcome: str | None = None
    attachments: tuple[Json, ...] = ()
    expires_at: float | None = None
    run: runs.Ref | None = None
    notice: str | None = None
    reason: str | None = None
    """Of a result that is no answer: why, one sentence. What is shown of the request, not part of the message."""

    @property
    def fingerprint(self) -> str:
        """What the operation id pins."""
        return fingerprint(
            channel=self.channel,
            to=self.to,
            kind=self.kind,
            reply_to=self.reply_to,
            mentions=self.mentions,
            content=self.content,
            attachments=[each["id"] for each in self.attachments],
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Addressed:
    """Whom and what a draft refers to, resolved and checked."""

    to: str | None
    mentions: Sequence[str]
    reply_to: MessageRow | None
    answered: runs.RunRow | None
    """The run that the message closes, or shows as unknown."""
    root: str | None
    """None begins a chain."""
    hop: int


def post(conn: Connection, actor: Actor, draft: Draft, *, at: float) -> Json:
    """Store a message, once for each operation id, and return it as protocol 1 tells it.

    Raises:
        Refusal: 403, 404, 422; 409 `operation_reused`, and those of the run that it closes.
    """
    before = repeated(conn, actor, draft)
    if before is not None:
        return before
    said = addressed(conn, actor, draft)
    expires_at = draft.expires_at
    if draft.kind == "request" and expires_at is None:
        expires_at = at + REQUEST_EXPIRY_SECONDS
    if expires_at is not None and expires_at <= at:
        raise Refusal(422, "expired", "The message has expired already.", field="expiresAt")
    told = _store(conn, actor, draft, said, expires_at=expires_at, at=at)
    _show(conn, actor, draft, said, at=at)
    return told


def repeated(conn: Connection, actor: Actor, draft: Draft) -> Json | None:
    """What was posted under the draft's operation id before; None where nothing was.

    Raises:
        Refusal: 409 `operation_reused`, it was something else.
    """
    row = message_views.row_by_operation(conn, actor.id, draft.operation)
    if row is None:
        return None
    if row.fingerprint != draft.fingerprint:
        raise Refusal(409, "operation_reused", "This operation id was used for another message.", message=row.id)
    return message_views.views(conn, [row])[0]


def _check_job(draft: Draft) -> None:
    if draft.run is not None or draft.notice is not None or draft.kind == "result":
        raise forbidden("A job posts messages and requests; its result is its receiver's to post.", "inside_a_job")
    if draft.operation.startswith(RECEIVERS_OPERATION):
        raise forbidden("This operation id belongs to the receiver.", "inside_a_job")


def addressed(conn: Connection, actor: Actor, draft: Draft) -> Addressed:
    """Whom and what a draft refers to, where it may be posted.

    Raises:
        Refusal: 403, 404, 422, and those of the run that it would close.
    """
    channels.need(actor, draft.channel)
    if actor.job is not None:
        _check_job(draft)
    reply_to = None
    if draft.reply_to is not None:
        reply_to = message_views.row_of(conn, draft.reply_to)
        if reply_to is None or reply_to.channel != draft.channel:
            raise invalid("replyTo", "`replyTo` is no message of this channel.")
    answered = _answered(conn, actor, draft)
    root, hop = _chain(conn, actor, reply_to, answered)
    return Addressed(
        to=_recipient(conn, actor, draft, reply_to),
        mentions=_mentions(conn, actor, draft, reply_to),
        reply_to=reply_to,
        answered=answered,
        root=root,
        hop=hop,
    )


def _recipient(conn: Connection, actor: Actor, draft: Draft, reply_to: MessageRow | None) -> str | None:
    if draft.kind == "request" and draft.to == actor.id:
        raise invalid("to", "A request is made to somebody else: nobody is woken by their own message.")
    if draft.to is None:
        if draft.kind == "request":
            raise invalid("to", "A request needs `to`: the member that it is made to.")
        return None
    if draft.to == HUMAN:
        if reply_to is None:
            raise invalid("to", "`to: human` means the author of `replyTo`, which is missing.")
        return str(reply_to.author)
    if not members.joined(conn, draft.channel, draft.to):
        raise invalid("to", "`to` is no member of this channel.")
    return draft.to


def _mentions(conn: Connection, actor: Actor, draft: Draft, reply_to: MessageRow | None) -> Sequence[str]:
    if draft.mentions:
        roster = {row.id for row in members.roster(conn, draft.channel)}
        if not roster.issuperset(draft.mentions):
            raise invalid("mentions", "`mentions` names somebody who is no member of this channel.")
        return tuple(dict.fromkeys(draft.mentions))
    if draft.kind != "message" or draft.notice is not None or "@" not in draft.content:
        return ()
    never = {actor.id, reply_to.author if reply_to is not None else None}
    rows = members.roster(conn, draft.channel)
    return mentioned(
        draft.content,
        [(row.id, row.name) for row in rows if members.kind(row.role) == members.AGENT and row.id not in never],
    )


def _answered(conn: Connection, actor: Actor, draft: Draft) -> runs.RunRow | None:
    """The open run that a draft names.

    Raises:
        Refusal: 404 `unknown_run`; 409 `run_finished`, `run_settled`, `fenced`.
    """
    request = draft.run.request if draft.run is not None else draft.notice
    if request is None:
        return None
    row = runs.by_request(conn, actor.id, draft.channel, request)
    if row is None or (row.state == "freed" and row.settled_by is None):
        raise runs.unknown_run()
    if row.state != "open":
        raise runs.ended(row)
    if draft.run is not None and (row.holder != draft.run.holder or draft.run.fence not in {None, row.fence}):
        raise runs.fenced_run()
    return row


def _chain(
    conn: Connection, actor: Actor, reply_to: MessageRow | None, answered: runs.RunRow | None
) -> tuple[str | None, int]:
    """Root and hop: one further than the message that the run answers, else than that of `replyTo`, else anew."""
    if actor.job is not None:
        state = conn.execute(select(run.c.state).where(run.c.id == actor.job.run)).scalar_one()
        if state != "open":
            raise Refusal(401, "unauthorized", "The run of this job has ended, and its credential with it.")
        if actor.job.root is not None:
            return actor.job.root, actor.job.hop + 1
    if answered is not None and answered.message is not None:
        origin = message_views.row_of(conn, answered.message)
    else:
        origin = reply_to
    if origin is not None:
        return origin.root, origin.hop + 1
    return None, 0 if members.kind(actor.role) == HUMAN else 1


def _store(
    conn: Connection, actor: Actor, draft: Draft, said: Addressed, *, expires_at: float | None, at: float
) -> Json:
    made, number = ids.new("msg"), events.next_number(conn, actor.workspace)
    row = {
        "id": made,
        "workspace": actor.workspace,
        "channel": draft.channel,
        "event": number,
        "author": actor.id,
        "kind": draft.kind,
        "content": draft.content,
        "recipient": said.to,
        "reply_to": draft.reply_to,
        "operation": draft.operation,
        "outcome": draft.outcome,
        "root": said.root or made,
        "hop": said.hop,
        "notice": draft.notice,
        "created_at": at,
        "expires_at": expires_at,
    }
    _insert(conn, **row, fingerprint=draft.fingerprint)
    files = attachments.attach(conn, actor, made, draft.attachments)
    seen = {**row, "author_name": actor.name, "author_role": actor.role}
    told = message_views.view(seen, said.mentions, files)
    events.put(conn, actor.workspace, number, "message.created", {"message": told}, channel=draft.channel, at=at)
    for position, who in enumerate(said.mentions):
        _insert_mention(conn, message=made, position=position, member=who)
    if draft.kind == "request" and said.to is not None:
        receipts.open_one(
            conn,
            message=made,
            workspace=actor.workspace,
            channel=draft.channel,
            to=said.to,
            event=number,
            expires_at=expires_at or at,
            at=at,
        )
    return told


def _show(conn: Connection, actor: Actor, draft: Draft, said: Addressed, *, at: float) -> None:
    """What the message shows on the request that it answers, and the run that it closes."""
    answered = said.answered
    if draft.notice is not None and answered is not None:
        conn.execute(update(run).where(run.c.id == answered.id).values(stage=Stage.UNKNOWN.value))
        if answered.message is not None:
            receipts.move(
                conn,
                answered.message,
                Stage.UNKNOWN,
                at=at,
                by=actor.id,
                job=answered.request,
                detail=draft.content[:200],
            )
        return
    shown, reason = stage_of_result(draft.outcome), _reason(draft)
    if draft.kind == "result" and said.reply_to is not None:
        request = said.reply_to.id
        receipts.expire_one(conn, request, at=at)
        job = answered.request if answered is not None else None
        receipts.move(conn, request, shown, at=at, by=actor.id, job=job, reason=reason)
    if answered is not None:
        state = draft.outcome or "completed"
        runs.close(conn, answered, state=state, outcome=draft.outcome, reason=reason, at=at, shown=shown)


def _reason(draft: Draft) -> str | None:
    """Why a result is no answer: what its author gives as the reason, else its first line."""
    if stage_of_result(draft.outcome) not in {Stage.FAILED, Stage.CANCELLED}:
        return None
    first = draft.reason or next((line for line in draft.content.splitlines() if line.strip()), "")
    return first.strip()[:REASON_CHARS] or None


def withdraw(conn: Connection, actor: Actor, wanted: str, *, at: float) -> bool:
    """Take a message back. True: it is withdrawn; False: a run is open and its receiver is asked to cancel it.

    Raises:
        Refusal: 404, 403 for somebody else's, 409 `ended`.
    """
    row = message_views.row_of(conn, wanted)
    if row is None or row.channel not in actor.channels:
        raise not_found("message")
    if row.author != actor.id:
        raise forbidden("Only its author may withdraw a message.")
    if actor.job is not None and not _posted_by(conn, actor.job, row):
        raise forbidden("A job may withdraw what it has posted itself, and nothing else.")
    if row.kind == "result":
        raise Refusal(409, "ended", "A result is not withdrawn.")
    if row.withdrawn_at is not None:
        return True
    held = conn.execute(select(run).where(run.c.message == wanted, RUN_OPEN)).all()
    if held:
        _ask_to_cancel(conn, row, held, at=at)
        return False
    receipts.expire_one(conn, wanted, at=at)
    receipt = receipts.get(conn, wanted)
    if receipt is not None and Stage(receipt.stage) in ENDS:
        raise Refusal(409, "ended", f"This request has ended: {receipt.stage}.", stage=receipt.stage)
    conn.execute(update(message).where(message.c.id == wanted).values(withdrawn_at=at))
    receipts.move(conn, wanted, Stage.WITHDRAWN, at=at)
    return True


def _posted_by(conn: Connection, job: Job, row: MessageRow) -> bool:
    """Whether a message of this agent was posted in the job's own run, of which it has one at a time."""
    began = conn.execute(select(run.c.began_at).where(run.c.id == job.run)).scalar_one()
    return bool(row.root == job.root and row.hop == job.hop + 1 and row.created_at >= began)


def _ask_to_cancel(conn: Connection, row: MessageRow, held: Sequence[runs.RunRow], *, at: float) -> None:
    if all(each.cancel_requested for each in held):
        return
    conn.execute(update(run).where(run.c.message == row.id, RUN_OPEN).values(cancel_requested=1))
    data = {"message": row.id, "agents": [each.member for each in held], "jobs": [each.request for each in held]}
    events.append(conn, row.workspace, "message.cancel", data, channel=row.channel, at=at)
