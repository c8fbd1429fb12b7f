"""What agents asked of people, and what became of it (P11)."""

from dataclasses import dataclass, fields

from sqlalchemy import Connection, Row, select, text, update
from sqlalchemy.dialects.sqlite import insert

from relay_receiver.jobs.text import clean
from relay_receiver.journal.tables import ApprovalKind, ApprovalState, among, approval

SHOWN = 100
"""Open questions that are read at once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Approval:
    """One question to people, as the agent asked it in one attempt."""

    id: str
    job: str
    attempt: int
    question: str
    """The adapter's name for the pending call."""
    kind: ApprovalKind
    title: str
    action: str
    """What people are shown in full, as JSON."""
    state: ApprovalState
    decided_by: str | None
    at: float
    """When it was asked, and once it is over, when that was."""


_COLUMNS = [approval.c[field.name] for field in fields(Approval)]


def ask(
    conn: Connection,
    approval_id: str,
    *,
    job: str,
    attempt: int,
    question: str,
    kind: ApprovalKind,
    title: str,
    action: str,
    at: float,
) -> None:
    """Record a question; asked again, it is the same one."""
    conn.execute(
        insert(approval)
        .values(
            id=approval_id,
            job=job,
            attempt=attempt,
            question=question,
            kind=kind,
            title=clean(title),
            action=action,
            state=ApprovalState.OPEN,
            at=at,
        )
        .on_conflict_do_nothing()
    )


def end(conn: Connection, approval_id: str, state: ApprovalState, *, decided_by: str | None, at: float) -> bool:
    """Record what became of a question. False where something became of it before: the first decision stands."""
    open_one = approval.c.id == approval_id, approval.c.state == ApprovalState.OPEN
    changed = update(approval).where(*open_one).values(state=state, decided_by=decided_by, at=at)
    return conn.execute(changed).rowcount == 1


def get(conn: Connection, approval_id: str) -> Approval | None:
    """The question of that id."""
    row = conn.execute(select(*_COLUMNS).where(approval.c.id == approval_id)).one_or_none()
    return None if row is None else _approval(row)


def pending(conn: Connection, job: str) -> list[Approval]:
    """The questions of a job that wait for an answer."""
    waiting = text(among("state", (ApprovalState.OPEN,)))
    rows = conn.execute(select(*_COLUMNS).where(approval.c.job == job, waiting).limit(SHOWN))
    return [_approval(row) for row in rows]


def _approval(row: Row[tuple[object, ...]]) -> Approval:
    values = dict(row._mapping)  # noqa: SLF001 - SQLAlchemy's public name for it
    return Approval(**values | {"kind": ApprovalKind(values["kind"]), "state": ApprovalState(values["state"])})
