"""References in a text: `doc:ID` and `task:ID` name a document or a task, whether or not it is there."""

import re
from dataclasses import dataclass

from relay_receiver.wire.code import blanked

_REFERENCE = re.compile(r"(?<![\w:/.@-])(doc|task):([a-z]+_[a-z0-9]{8,64})(?![\w-])")


@dataclass(frozen=True, kw_only=True, slots=True)
class Reference:
    """One reference; `text[start:end]` is it as it was written."""

    kind: str
    """`doc` or `task`."""
    id: str
    start: int
    end: int


def references(text: str) -> list[Reference]:
    """The references of a text in their order, those inside code left out."""
    if "doc:" not in text and "task:" not in text:
        return []
    return [
        Reference(kind=match[1], id=match[2], start=match.start(), end=match.end())
        for match in _REFERENCE.finditer(blanked(text))
    ]
