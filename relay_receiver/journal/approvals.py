"""What agents asked of people, and what became of it (P11)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, bindparam, case, select, text, update
from sqlalchemy.dialects.sqlite import insert

from relay_receiver.jobs.text import clean
from relay_receiver.journal.tables import UNSETTLED_APPROVAL, ApprovalKind, ApprovalState, approval

SHOWN = 100
"""Questions that are read at once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Approval:
    """One question to people, as the agent asked it in one attempt. Times are seconds since the epoch."""

    id: str
    """Also the operation id under which the hub is asked."""
    job: str
    attempt: int
    question: str
    """The adapter's name for the pending call."""
    kind: ApprovalKind
    title: str
    action: str
    """What people are shown in full, as JSON."""
    schema: str | None
    """The form of an input, as JSON."""
    approvers: str | None
    """Who may answer, ids as JSON; None for any person of the channel."""
    request: str | None
    """The hub's id of it, once it is known there."""
    state: ApprovalState
    answer: str | None
    """The form of an input, filled in, as JSON."""
    decided_by: str | None
    reason: str | None
    """Why nobody's answer is used, for the agent and for the audit."""
    told: bool
    """The agent has the answer, or needs none any more."""
    settled: bool
    """The hub knows the end too."""
    asked_at: float
    """By the hub's clock, as far as it was known: its time runs from here."""
    ended_at: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What became of a question."""

    state: ApprovalState
    by: str
    """`NAME (ID)` of a person, or `hub` or `receiver`."""
    answer: Mapping[str, Any] | None = None
    reason: str | None = None


_COLUMNS = select(*(approval.c[field.name] for field in fields(Approval)))
_UNSETTLED = text(UNSETTLED_APPROVAL)
# Built once: building a statement costs more than SQLite takes for it.
_GET = _COLUMNS.where(approval.c.id == bindparam("wanted"))
_UNTOLD = _COLUMNS.where(approval.c.job == bindparam("of"), _UNSETTLED, ~approval.c.told).order_by(approval.c.asked_at)
_OF = _COLUMNS.where(approval.c.job == bindparam("of")).order_by(approval.c.asked_at).limit(SHOWN)
_LEFT = _COLUMNS.where(_UNSETTLED).order_by(approval.c.asked_at).limit(SHOWN)
_OPEN = approval.c.state == ApprovalState.OPEN


def ask(conn: Connection, asked: Approval) -> Approval:
    """Record a question; asked again, it is the one that is there."""
    values = {field.name: getattr(asked, field.name) for field in fields(Approval)}
    values |= {"title": clean(asked.title), "action": clean(asked.action)}
    conn.execute(insert(approval).values(values).on_conflict_do_nothing())
    found = get(conn, asked.id)
    if found is None:
        raise LookupError(f"there is no question {asked.id}")
    return found


def known_as(conn: Connection, approval_id: str, request: str | None) -> None:
    """Record the hub's id of a question; None where the hub has lost it."""
    conn.execute(update(approval).where(approval.c.id == approval_id).values(request=request))


def decide(conn: Connection, approval_id: str, decision: Decision, *, at: float) -> bool:
    """Record what became of a question. False where something became of it before: the first decision stands."""
    answer = None if decision.answer is None else json.dumps(dict(decision.answer))
    changed = (
        update(approval)
        .where(approval.c.id == approval_id, _OPEN)
        .values(
            state=decision.state,
            answer=answer,
            decided_by=clean(decision.by),
            reason=None if decision.reason is None else clean(decision.reason),
            ended_at=at,
        )
    )
    return conn.execute(changed).rowcount == 1


def over(conn: Connection, approval_id: str, *, at: float) -> None:
    """The agent has the answer, or has closed the question itself."""
    _end(conn, approval.c.id == approval_id, at=at)


def drop(conn: Connection, job_id: str, *, at: float) -> None:
    """The job is no longer at the agent: nobody waits for an answer. An answer that was not used is not applied."""
    unused = approval.c.job == job_id, _UNSETTLED, ~approval.c.told, ~_OPEN
    conn.execute(update(approval).where(*unused).values(told=True, settled=True))
    _end(conn, and_(approval.c.job == job_id, _UNSETTLED, ~approval.c.told), at=at)


def _end(conn: Connection, which: Any, *, at: float) -> None:  # noqa: ANN401 - SQLAlchemy's condition
    state = case((_OPEN, ApprovalState.CLOSED.value), else_=approval.c.state)
    ended = case((_OPEN, at), else_=approval.c.ended_at)
    conn.execute(update(approval).where(which).values(told=True, state=state, ended_at=ended))


def settle(conn: Connection, approval_id: str) -> None:
    """The hub knows the end."""
    conn.execute(update(approval).where(approval.c.id == approval_id).values(settled=True))


def get(conn: Connection, approval_id: str) -> Approval | None:
    """The question of that id."""
    row = conn.execute(_GET, {"wanted": approval_id}).one_or_none()
    return None if row is None else _approval(row)


def untold(conn: Connection, job: str) -> list[Approval]:
    """What a job waits for, answered or not, oldest first."""
    return _all(conn, _UNTOLD, of=job)


def pending(conn: Connection, job: str) -> list[Approval]:
    """What a job waits for from people, oldest first."""
    return [each for each in untold(conn, job) if each.state is ApprovalState.OPEN]


def of(conn: Connection, job: str) -> list[Approval]:
    """Every question of a job, oldest first."""
    return _all(conn, _OF, of=job)


def unsettled(conn: Connection) -> list[Approval]:
    """Every question that the agent waits for, or whose end the hub has not been told, oldest first."""
    return _all(conn, _LEFT)


def unanswered(conn: Connection) -> list[Approval]:
    """What waits for people."""
    return [each for each in unsettled(conn) if each.state is ApprovalState.OPEN]


def _all(conn: Connection, wanted: Select[Any], **given: object) -> list[Approval]:
    return [_approval(row) for row in conn.execute(wanted, given)]


def _approval(row: Row[Any]) -> Approval:
    values = dict(row._mapping)  # noqa: SLF001 - SQLAlchemy's public name for it
    return Approval(**values | {"kind": ApprovalKind(values["kind"]), "state": ApprovalState(values["state"])})


def name(job: str, attempt: int, question: str) -> str:
    """The id of a question, which is also the operation id of its request at the hub."""
    return f"ask:{job}.{attempt}:{question}"


def new(
    *,
    job: str,
    attempt: int,
    question: str,
    kind: str,
    title: str,
    action: Mapping[str, Any],
    schema: Mapping[str, Any] | None,
    approvers: Sequence[str],
    at: float,
) -> Approval:
    """A question as an agent asks it."""
    return Approval(
        id=name(job, attempt, question),
        job=job,
        attempt=attempt,
        question=question,
        kind=ApprovalKind(kind),
        title=title,
        action=json.dumps(dict(action)),
        schema=None if schema is None else json.dumps(dict(schema)),
        approvers=json.dumps(list(approvers)) if approvers else None,
        request=None,
        state=ApprovalState.OPEN,
        answer=None,
        decided_by=None,
        reason=None,
        told=False,
        settled=False,
        asked_at=at,
        ended_at=None,
    )
