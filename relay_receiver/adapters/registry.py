"""Which adapters there are: ours, and those that other packages bring by the entry point `relay_receiver.adapters`."""

import importlib
import shutil
from importlib.metadata import entry_points
from typing import Any

from relay_receiver.adapters.base import AdapterUnusable

GROUP = "relay_receiver.adapters"
_OURS = {
    "codex": ("relay_receiver.adapters.codex", "CodexAdapter"),
    "command": ("relay_receiver.adapters.command", "CommandAdapter"),
}


def names() -> list[str]:
    """The adapters that can be named."""
    return sorted(set(_OURS) | {point.name for point in entry_points(group=GROUP)})


def default() -> str:
    """The adapter of a binding that names none: codex where it is on PATH."""
    return "codex" if shutil.which("codex") else "command"


def load(name: str) -> Any:  # noqa: ANN401 - a class with the shape of `base.Adapter`, its own constructor and `check`
    """The class of an adapter; only its own module is imported.

    Raises:
        AdapterUnusable: there is none of that name.
    """
    if name in _OURS:
        module, attribute = _OURS[name]
        return getattr(importlib.import_module(module), attribute)
    for point in entry_points(group=GROUP, name=name):
        return point.load()
    raise AdapterUnusable(f"There is no adapter named {name}; there are: {', '.join(names())}.")
