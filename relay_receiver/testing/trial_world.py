"""A place for crash trials: its processes look at fault points, and what has to be true of it at the end is judged."""

import contextlib
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from relay_receiver.client import profiles
from relay_receiver.jobs.job import job_id
from relay_receiver.processes.keeper_faults import VARIABLE
from relay_receiver.processes.tree import children, gone
from relay_receiver.receiver import verbs
from relay_receiver.testing.trial_faults import Faults
from relay_receiver.testing.trial_person import PATIENCE_SECONDS, Person
from relay_receiver.testing.trial_place import NotInTime, Place, PlaceT, place, until
from relay_receiver.wire.errors import RelayError
from relay_receiver.wire.stage import ENDS, Stage

END_SECONDS = PATIENCE_SECONDS
"""A request that has no end after so long counts as lost."""
TOLD = ENDS | {Stage.UNKNOWN}


class CrashWorld:
    """A hub, a person, and one agent at work."""

    def __init__(self, where: Place, faults: Faults, **binding: Any) -> None:  # noqa: ANN401 - fields of `Wishes`
        self.place = where
        self.faults = faults
        self.person = Person(where.channel)
        self.target = where.agent("bob", **binding)
        self.asked: dict[str, str] = {}
        """What each message asks for."""
        self.settled: set[str] = set()
        self.points: set[str] = set()
        """The fault points that requests and starts pass, once somebody looked."""
        verbs.start(self.target)

    # Killing, and starting again.

    @property
    def receiver(self) -> int:
        """Its process; 0 while none runs."""
        return int(verbs.status(self.target)["pid"] or 0)

    def family(self) -> dict[str, list[int]]:
        """The processes below the receiver: launcher, keepers, agents."""
        found: dict[str, list[int]] = {"launcher": [], "keeper": [], "agent": []}
        for launcher in children(self.receiver):
            found["launcher"].append(launcher)
            for keeper in children(launcher):
                found["keeper"].append(keeper)
                found["agent"] += children(keeper)
        return found

    def kill(self, *pids: int) -> int:
        """SIGKILL all at once; how many of them were alive."""
        hit = 0
        for pid in pids:
            if pid > 0 and not gone(pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    hit += 1
        until(lambda: all(pid <= 0 or gone(pid) for pid in pids), what=f"the end of {pids}")
        if self.place.hub is not None and self.place.hub.pid in pids:
            self.place.hub.wait(10)
        return hit

    def revive(self) -> None:
        """Start again what is not there."""
        if self.place.hub is None or self.place.hub.poll() is not None:
            self.place.start_hub()
        until(self._started, seconds=END_SECONDS, what="a receiver that starts")

    def _started(self) -> bool:
        try:
            return verbs.start(self.target)["state"] in {"ready", "already_running"}
        except RelayError:
            return False

    # Asking, and what it came to.

    def quick(self) -> str:
        """Work that is done at once."""
        return "please task=quick"

    def held(self, name: str) -> str:
        """Work that goes on until `release(name)`."""
        return f"please hold={name}"

    def release(self, name: str) -> None:
        """Let that work come to its end."""
        self.place.release(name)

    def ask(self, text: str, *, meanwhile: Callable[[], None] = lambda: None) -> str:
        """Send a request; its message id."""
        message = self.person.ask(self.target, text, meanwhile=meanwhile)
        self.asked[message] = text
        return message

    def end(self, message: str) -> str:
        """The stage that a request ends with, or `lost`. What is unknown is settled, so that the next trial can run."""
        found: dict[str, Any] = {}
        with contextlib.suppress(NotInTime):
            found = until(
                lambda: (now := self.person.delivery(message)).get("stage") in TOLD and now, seconds=END_SECONDS
            )
        if found.get("stage") == Stage.UNKNOWN:
            self.settle(message)
        return str(found.get("stage") or "lost")

    def settle(self, message: str) -> None:
        """Give it up as a person would, once its requester was told."""
        until(lambda: any(_is_notice(m, message) for m in self.person.history()), what="the notice")
        self.settled.add(message)
        verbs.settle(self.target, self.job(message), "abandon", reason="trial")
        until(lambda: self.person.stage(message) == "failed", seconds=END_SECONDS, what="the end of a settled job")

    def job(self, message: str) -> str:
        """The job of a message."""
        agent = profiles.load(self.target.profile).agent
        return job_id(self.target.workspace, agent, self.target.channel, message)

    def starts(self) -> Counter[str]:
        """How often the work of each message was really started."""
        jobs = Counter(line.rpartition(".")[0] for line in self.place.starts())
        return Counter({message: jobs[self.job(message)] for message in self.asked})

    def faults_found(self, messages: Iterable[str] | None = None) -> list[str]:
        """Everything that breaks a promise, judged from outside.

        Args:
            messages: those that are judged; all that were asked unless given.
        """
        found = []
        asked = list(self.asked if messages is None else messages)
        stages = {message: self.person.stage(message) for message in asked}
        starts = self.starts()
        results = Counter(m["replyTo"] for m in self.person.history() if m["kind"] == "result")
        for message, stage in stages.items():
            if starts[message] > 1:
                found.append(f"{message}: started {starts[message]} times")
            if results[message] != 1:
                found.append(f"{message}: {stage} with {results[message]} results")
            if stage == "answered" and not starts[message]:
                found.append(f"{message}: answered without a start")
            if stage not in TOLD:
                found.append(f"{message}: has no end, it is {stage}")
        return found

    def close(self) -> None:
        """Let the person go."""
        self.person.close()


def _is_notice(message: dict[str, Any], of: str) -> bool:
    return bool(message["notice"]) and message["replyTo"] == of


@contextlib.contextmanager
def crash_world(folder: Path) -> Iterator[CrashWorld]:
    """A hub, an agent and a person; all processes look at fault points."""
    with faulty(folder, Place) as (where, faults):
        made = CrashWorld(where, faults)
        try:
            yield made
        finally:
            made.close()


@contextlib.contextmanager
def faulty(folder: Path, made: Callable[[Path], PlaceT]) -> Iterator[tuple[PlaceT, Faults]]:
    """A place whose processes look at fault points, and their plan."""
    folder.mkdir(parents=True, exist_ok=True)
    faults = Faults(folder / "faults")
    with place(folder, made, **{VARIABLE: str(faults.folder)}) as where:
        try:
            yield where, faults
        finally:
            faults.clear()
