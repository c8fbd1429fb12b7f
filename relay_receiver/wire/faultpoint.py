"""Named points at the boundaries of hub and receiver, where a test makes the process raise, stall or die.

In production nothing is installed, and a point costs one look at an empty list.
"""

from collections.abc import Callable

Handler = Callable[[str], None]

_handlers: list[Handler] = []


def install(handler: Handler) -> None:
    """Have `handler` called with the name of every point that this process comes to."""
    _handlers.append(handler)


def hit(*name: str) -> None:
    """This process is at a point; its words are joined by a dot."""
    if _handlers:
        told = ".".join(name)
        for handler in _handlers:
            handler(told)
