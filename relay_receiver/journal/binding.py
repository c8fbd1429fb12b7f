"""The binding: which agent this receiver works for, where, how, and how far it has read."""

import json
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

from sqlalchemy import Connection, insert, or_, select, update

from relay_receiver.journal.tables import binding

ASK, DECLINE = "ask", "decline"
"""What becomes of an agent's questions to people."""

_LISTS = ("argv", "env", "approvers")


@dataclass(frozen=True, kw_only=True, slots=True)
class Binding:
    """The one row of `binding`. Times and limits are seconds."""

    agent: str
    agent_name: str
    workspace: str
    channel: str
    channel_name: str
    wake: str
    adapter: str
    argv: tuple[str, ...]
    directory: str
    network: bool
    tools: bool
    env: tuple[str, ...]
    """Names of environment variables that children get; their values are never stored."""
    approvals: str
    """`ask`: what the agent asks goes to people; `decline`: it is declined at once."""
    approvers: tuple[str, ...]
    """Ids of the people who may answer; any person of the channel where it is empty."""
    approval_time: float
    """Seconds after which nobody's answer is a decline."""
    chain_limit: int
    ceiling: float
    stall: float
    keep_messages: int
    """The newest messages, and jobs, that are kept; more stay only while they are open."""
    keep_days: int
    """What is older goes too; 0 for no such limit."""
    session: str | None
    holder: str
    subscription: str | None
    chain_count: int
    cursor: str | None
    watermark: int | None
    """The number of the newest event that is committed here."""
    configured_at: float
    """By the hub's clock: messages that are as old or older were there before this binding, or are forgotten again."""
    mend_after: int | None = None
    """The hub was restored: results past this event have still to be compared with what it has."""

    def evolve(self, **changes: Any) -> Self:  # noqa: ANN401 - any field of its own type
        """A copy with `changes`."""
        return replace(self, **changes)


_COLUMNS = [binding.c[field.name] for field in fields(Binding)]


def get(conn: Connection) -> Binding | None:
    """The binding, None before `configure`."""
    row = conn.execute(select(*_COLUMNS)).one_or_none()
    if row is None:
        return None
    values = dict(row._mapping)  # noqa: SLF001 - SQLAlchemy's public name for it
    return Binding(**values | {name: tuple(json.loads(values[name])) for name in _LISTS})


def create(conn: Connection, new: Binding) -> None:
    """Store the binding of a journal that has none."""
    conn.execute(insert(binding).values(id=1, **_stored(asdict(new))))


def change(conn: Connection, /, **columns: Any) -> None:  # noqa: ANN401 - any field of its own type
    """Change fields of the binding; what is the same already is not written."""
    wanted = _stored(columns)
    names = list(wanted)
    if not names:
        return
    row = conn.execute(select(*(binding.c[name] for name in names))).one()
    changed = {name: wanted[name] for name, old in zip(names, row, strict=True) if old != wanted[name]}
    if changed:
        conn.execute(update(binding).values(changed))


def note_position(conn: Connection, cursor: str | None, watermark: int | None) -> None:
    """Record how far the channel was read."""
    change(conn, cursor=cursor, watermark=watermark)


def mend(conn: Connection, after: int) -> None:
    """Record that results past `after` have to be compared with what the hub has; the lowest such number counts."""
    lower = or_(binding.c.mend_after.is_(None), binding.c.mend_after > after)
    conn.execute(update(binding).where(lower).values(mend_after=after))


def mended(conn: Connection, after: int) -> None:
    """Record that all results past `after` are compared, unless more has been recorded meanwhile."""
    conn.execute(update(binding).where(binding.c.mend_after == after).values(mend_after=None))


def _stored(columns: dict[str, Any]) -> dict[str, Any]:
    return {name: json.dumps(list(value)) if name in _LISTS else value for name, value in columns.items()}
