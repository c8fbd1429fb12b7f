"""Crash worlds: the package's own, and one with the real Codex."""

import contextlib
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from support_codex import codex_home, codex_wishes

from relay_receiver.testing.model import ModelEndpoint
from relay_receiver.testing.trial_faults import Faults
from relay_receiver.testing.trial_place import Place
from relay_receiver.testing.trial_world import CrashWorld, crash_world, faulty

__all__ = ["CrashWorld", "codex_crash_world", "crash_world"]


class CodexCrashWorld(CrashWorld):
    """The same with a real Codex, whose model says how often each work reached it."""

    def __init__(self, place: Place, faults: Faults, model: ModelEndpoint) -> None:
        self.model = model
        super().__init__(place, faults, **codex_wishes())

    def quick(self) -> str:
        return f"model: say t{uuid.uuid4().hex}"

    def held(self, name: str) -> str:
        return f"model: hold {name} say {name}"

    def release(self, name: str) -> None:
        self.model.release(name)

    def starts(self) -> Counter[str]:
        seen = Counter(f"model: {request['verb']} {request['rest']}" for request in list(self.model.requests))
        return Counter({message: seen[text] for message, text in self.asked.items()})


@contextlib.contextmanager
def codex_crash_world(folder: Path) -> Iterator[CodexCrashWorld]:
    """A hub, a Codex and a person."""
    with codex_home(folder) as model, faulty(folder, Place) as (where, faults):
        made = CodexCrashWorld(where, faults, model)
        try:
            yield made
        finally:
            made.close()
