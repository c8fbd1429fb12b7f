"""The execution reference of a hand-over: what finds its turn again, opaque to everybody else."""

import json
from dataclasses import asdict, dataclass
from typing import Self


@dataclass(frozen=True, kw_only=True, slots=True)
class Reference:
    """A turn: its thread, its id, and the spool line before its `turn/start`."""

    thread: str | None = None
    turn: str | None = None
    since: int = 0

    def to_json(self) -> str:
        """As the journal stores it."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str | None) -> Self:
        """The reference; an empty one for none, or for one that is not ours."""
        try:
            value = json.loads(text or "{}")
            return cls(thread=value.get("thread"), turn=value.get("turn"), since=int(value.get("since") or 0))
        except (ValueError, TypeError, AttributeError):
            return cls()
