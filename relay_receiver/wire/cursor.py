"""The cursor: an event number with the random tag that is stored with that event. Opaque to clients."""

import re
from dataclasses import dataclass
from typing import Self

_FORM = re.compile(r"([0-9]{1,18})(?:\.([0-9a-f]{1,16}))?")


@dataclass(frozen=True, slots=True)
class Cursor:
    """A position in a workspace's events. `tag` is None for a bare integer, which is accepted too."""

    number: int
    tag: str | None = None

    @classmethod
    def parse(cls, value: object) -> Self:
        """Read a cursor.

        Raises:
            ValueError: it is neither a cursor that this hub made nor an integer.
        """
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**18:
            return cls(value)
        if isinstance(value, str) and (match := _FORM.fullmatch(value)):
            return cls(int(match[1]), match[2])
        raise ValueError("the cursor is not one that a hub made")

    def __str__(self) -> str:
        return f"{self.number}.{self.tag}" if self.tag else str(self.number)
