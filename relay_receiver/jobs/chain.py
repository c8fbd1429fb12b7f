"""The chain guard: consecutive turns that agents triggered come to an end (P7)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

DEFAULT_LIMIT = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Chain:
    """How far agents have driven each other here.

    `count` is the number of consecutive turns that agents triggered in this binding; `bases` maps the
    root of a chain to the hop from which this journal counts it.
    """

    limit: int = DEFAULT_LIMIT
    count: int = 0
    bases: Mapping[str, int]

    def allows(self, root: str, hop: int) -> bool:
        """Whether an agents' job of that root and hop may run now."""
        return self.count < self.limit and hop - self.bases.get(root, 0) <= self.limit


def bases_after_resume(waiting: Iterable[tuple[str, int]]) -> dict[str, int]:
    """The new base of each root that waits in the queue: the farthest of its jobs counts as the first hop.

    Args:
        waiting: `(root, hop)` of every waiting agents' job.
    """
    bases: dict[str, int] = {}
    for root, hop in waiting:
        bases[root] = max(bases.get(root, hop - 1), hop - 1)
    return bases
