"""What people decided about this receiver at the hub: each is stored with the cursor, applied once, and answered."""

import json
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, select, text, update
from sqlalchemy.dialects.sqlite import insert

from relay_receiver.jobs.text import clean, clean_name
from relay_receiver.journal.tables import UNTOLD_CONTROL, control

AT_ONCE = 100
"""Decisions that one look returns, at the most."""
KEPT_SECONDS = 90 * 24 * 3600.0
"""How long a decision is known again after its outcome was told: a hub may be restored from before it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Control:
    """One decision. `at` is when it arrived, seconds since the epoch."""

    id: str
    action: str
    arguments: str
    """As the hub told them, JSON."""
    by_id: str
    by_name: str
    at: float
    outcome: str | None = None
    """`done` or `refused`, once it was applied."""
    sentence: str | None = None
    told: bool = False
    """The hub knows the outcome."""

    @property
    def who(self) -> str:
        """The person, as the history of a job names them."""
        return f"{clean_name(self.by_name)} ({self.by_id}) in the console"

    @property
    def given(self) -> dict[str, Any]:
        """The arguments."""
        found: dict[str, Any] = json.loads(self.arguments)
        return found


_CONTROL = select(*(control.c[field.name] for field in fields(Control)))
_GET = _CONTROL.where(control.c.id == bindparam("wanted"))
_UNTOLD = _CONTROL.where(text(UNTOLD_CONTROL)).order_by(control.c.at, control.c.id).limit(AT_ONCE)
_CHANGE = update(control).where(control.c.id == bindparam("wanted"))
_OLD = delete(control).where(control.c.told, control.c.at < bindparam("before"))


def get(conn: Connection, wanted: str) -> Control | None:
    """One decision."""
    row = conn.execute(_GET, {"wanted": wanted}).one_or_none()
    return None if row is None else _control(row)


def arrive(conn: Connection, found: Control) -> None:
    """Store a decision as the hub tells it. One that is known already stays as it is, whatever the hub has forgotten.

    One that the hub shows as over, before it was applied here, is never applied.
    """
    known = get(conn, found.id)
    if known is None:
        conn.execute(_OLD, {"before": found.at - KEPT_SECONDS})
        values = {field.name: getattr(found, field.name) for field in fields(Control)}
        conn.execute(insert(control).values(values | {"told": found.outcome is not None}))
    elif found.outcome is None:
        # The hub does not know the outcome (any more): it is told again.
        _set(conn, known, told=False)
    elif known.outcome is None:
        _set(conn, known, outcome=found.outcome, sentence=found.sentence, told=True)
    else:
        _set(conn, known, told=True)


def untold(conn: Connection) -> list[Control]:
    """What has to be applied, or is applied and has to be told; the oldest first."""
    return [_control(row) for row in conn.execute(_UNTOLD)]


def end(conn: Connection, wanted: str, *, outcome: str, sentence: str) -> None:
    """Record what became of a decision."""
    conn.execute(_CHANGE, {"wanted": wanted, "outcome": outcome, "sentence": clean(sentence)})


def tell(conn: Connection, wanted: str) -> None:
    """Record that the hub knows the outcome, or does not want to know it."""
    conn.execute(_CHANGE, {"wanted": wanted, "told": True})


def _set(conn: Connection, known: Control, **columns: Any) -> None:  # noqa: ANN401 - columns
    changed = {name: value for name, value in columns.items() if getattr(known, name) != value}
    if changed:
        conn.execute(_CHANGE, {"wanted": known.id, **changed})


def _control(row: Row[Any]) -> Control:
    return Control(**row._mapping)  # noqa: SLF001 - SQLAlchemy's public name for it
