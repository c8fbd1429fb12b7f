"""Looking at all receivers of this machine at once; one that hangs holds up nobody."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from relay_receiver.cli.output import aimed
from relay_receiver.client import profiles
from relay_receiver.receiver import verbs
from relay_receiver.receiver.target import Target
from relay_receiver.wire.errors import RelayError

STOPPED_SECONDS = 15.0
"""Between two looks into the journal of a receiver that does not run."""
SILENT_SECONDS = 3.0
"""A process that does not answer for so long is told as silent."""


def silent(why: str, hint: str | None = None) -> dict[str, Any]:
    """What is told of a receiver that does not answer, and needed of a person."""
    need = {"what": "silent", "why": why, "next": hint or "relay receiver logs"}
    return {"state": "silent", "lastError": why, "needsPerson": [need]}


@dataclass(kw_only=True, slots=True)
class _Known:
    """What is known of one receiver; times are monotonic."""

    told: dict[str, Any]
    at: float
    asking: bool = False
    asked: float = 0.0


@dataclass(slots=True)
class Looks:
    """Asks every receiver, each in a thread of its own: one that hangs holds up nothing but its own line."""

    status: Callable[[Target], dict[str, Any]] = verbs.status
    listed: Callable[[], dict[str, Any]] = verbs.list_all
    clock: Callable[[], float] = time.monotonic
    _known: dict[Target, _Known] = field(default_factory=dict)

    def ask(self) -> None:
        """Ask those whose last answer is old."""
        found = {
            Target(each["profile"], each["workspace"], each["channel"]): each for each in self.listed()["receivers"]
        }
        self._known = {target: each for target, each in self._known.items() if target in found}
        for target, facts in found.items():
            known = self._known.setdefault(target, _Known(told={**facts, "state": "asked"}, at=self.clock()))
            changed = facts["pid"] != known.told.get("pid")
            resting = facts["state"] == "stopped" and not changed and known.told.get("state") == "stopped"
            if known.asking or (resting and self.clock() - known.asked < STOPPED_SECONDS):
                continue
            known.asking, known.asked = True, self.clock()
            threading.Thread(target=self._ask, args=(target, facts, known), daemon=True).start()

    def _ask(self, target: Target, facts: Mapping[str, Any], known: _Known) -> None:
        try:
            told = {**facts, **self.status(target)}
        except RelayError as error:
            told = {**facts, **silent(error.sentence, error.hint)}
        except Exception as error:  # noqa: BLE001 - it is shown, and the others are not held up
            told = {**facts, **silent(f"It cannot be looked at: {error!r}.")}
        known.told, known.at, known.asking = told, self.clock(), False

    def now(self) -> list[dict[str, Any]]:
        """What is known of each now."""
        found = [self._shown(each) for each in self._known.values()]
        return [{**each, "needsPerson": _aimed(each)} for each in found]

    def _shown(self, known: _Known) -> dict[str, Any]:
        waited = self.clock() - known.asked if known.asking else 0.0
        if waited < SILENT_SECONDS:
            return known.told
        return {**known.told, **silent(f"It has not answered for {waited:.0f} s.", "relay receiver stop --now")}

    def wait(self) -> list[dict[str, Any]]:
        """Wait for the answers to `ask`, though not for ever."""
        end = self.clock() + SILENT_SECONDS
        while any(each.asking for each in self._known.values()) and self.clock() < end:
            time.sleep(0.01)
        return self.now()


def _aimed(receiver: Mapping[str, Any]) -> list[dict[str, Any]]:
    needs = receiver.get("needsPerson") or ()
    return [{**need, "next": for_receiver(str(need.get("next")), receiver)} for need in needs]


def for_receiver(line: str, receiver: Mapping[str, Any]) -> str:
    """A line to type for that receiver: with its profile and channel where there are several.

    What people are asked is answered by a person, never by the agent that asks.
    """
    known = [each for each in (_loaded(name) for name in profiles.names()) if each is not None]
    if line.startswith("relay requests "):
        people = [each.name for each in known if each.role != "agent"]
        return aimed(line, profile=people[0] if len(people) == 1 and len(known) > 1 else None)
    owner = str(receiver.get("profile"))
    channels = next((each.channels for each in known if each.name == owner), ())
    return aimed(
        line,
        profile=owner if len(known) > 1 else None,
        channel=receiver.get("channelName") if len(channels) > 1 else None,
    )


def _loaded(name: str) -> profiles.Profile | None:
    try:
        return profiles.load(name)
    except RelayError:
        return None
