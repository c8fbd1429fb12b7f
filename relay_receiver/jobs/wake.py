"""The wake rules: which inbound messages become jobs."""

from collections.abc import Collection
from enum import StrEnum


class Wake(StrEnum):
    """What wakes an agent."""

    MANUAL = "manual"
    ADDRESSED = "addressed"
    ALL = "all"


def wakes(
    wake: Wake,
    *,
    me: str,
    author: str,
    kind: str,
    to: str | None,
    mentions: Collection[str],
    notice: bool,
) -> bool:
    """Whether a message makes a job for the agent `me`.

    Results and notices wake nobody, one's own messages never; a request to someone else is context.
    """
    if wake is Wake.MANUAL or author == me or notice:
        return False
    if kind == "request":
        return to == me
    if kind != "message":
        return False
    return wake is Wake.ALL or me in mentions
