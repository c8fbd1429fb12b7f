"""Kills at fault points and from outside: the plan that a process finds at a point, and what a trial is judged by."""

import asyncio
import contextlib
import json
import os
import random
import signal
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
from support_codex import CONFIG, codex_binary
from support_world import World, until, world

from relay_receiver.client import profiles
from relay_receiver.client.errors import HubAway, HubError
from relay_receiver.client.hub import Hub
from relay_receiver.client.rest import Rest
from relay_receiver.jobs.job import job_id
from relay_receiver.receiver import verbs
from relay_receiver.receiver.target import Target
from relay_receiver.testing.model import ModelEndpoint
from relay_receiver.wire.errors import RelayError

ENDS = frozenset({"answered", "quiet", "failed", "expired", "cancelled", "withdrawn", "unknown"})
END_SECONDS = 40.0
"""A request that has no end after so long counts as lost."""


class Faults:
    """The folder that `RELAY_FAULTS` names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def plan(self, point: str, do: str = "kill", *, skip: int = 0) -> int:
        """Have the next process that comes to `point` do it; a number that `hit` takes."""
        beside = self.folder / "plan.next"
        beside.write_text(json.dumps({"point": point, "do": do, "skip": skip}))
        before = len(self.hits())
        beside.rename(self.folder / "plan")
        return before

    def hits(self) -> list[tuple[str, int, str]]:
        """What was carried out: point, pid, deed."""
        path = self.folder / "hits"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(point, int(pid), do) for point, pid, do in (line.split() for line in lines)]

    def hit(self, number: int) -> tuple[str, int, str] | None:
        """The hit that a plan led to, once it did."""
        hits = self.hits()
        return hits[number] if len(hits) > number else None

    def clear(self) -> None:
        """Take back a plan that nobody came to."""
        (self.folder / "plan").unlink(missing_ok=True)

    def seen(self) -> set[str]:
        """Every point that any process came to."""
        path = self.folder / "seen"
        return set(path.read_text().split()) if path.exists() else set()


def gone(pid: int) -> bool:
    """The process has ended with all its threads, reaped or not."""
    try:
        found = psutil.Process(pid)
        return found.status() == psutil.STATUS_ZOMBIE and found.num_threads() <= 1
    except psutil.NoSuchProcess:
        return True


class Person:
    """Someone who asks, and keeps asking while the hub is away: the same request, under the same operation id."""

    def __init__(self, place: World) -> None:
        self._place = place
        profile = profiles.load("owner")
        self._runner = asyncio.Runner()
        self._rest = Rest(profile.url, profile.token())
        self._hub = Hub(self._rest)

    def close(self) -> None:
        self._runner.run(self._rest.close())
        self._runner.close()

    def _do(self, call: Callable[[Hub], Any]) -> Any:
        return self._runner.run(call(self._hub))

    def ask(self, target: Target, text: str, *, meanwhile: Callable[[], None] = lambda: None) -> str:
        """Its message id, once the hub has accepted it."""
        body = {
            "channel": self._place.channel,
            "kind": "request",
            "to": profiles.load(target.profile).agent,
            "content": text,
            "operationId": f"trial:{uuid.uuid4().hex}",
        }
        end = time.monotonic() + END_SECONDS
        while True:
            try:
                return str(self._do(lambda hub: hub.post_message(body))["id"])
            except (HubAway, HubError):
                if time.monotonic() > end:
                    raise
                meanwhile()

    def delivery(self, message: str) -> dict[str, Any]:
        try:
            return dict(self._do(lambda hub: hub.message(message))["delivery"] or {})
        except (HubAway, HubError):
            return {}

    def stage(self, message: str) -> str:
        return str(self.delivery(message).get("stage"))

    def history(self) -> list[dict[str, Any]]:
        """All messages of the channel."""
        found: list[dict[str, Any]] = []
        after = 0
        while True:
            page = self._do(lambda hub: hub.history(self._place.channel, after=after, limit=200))  # noqa: B023 - called at once
            if not page["messages"]:
                return found
            found += page["messages"]
            after = found[-1]["event"]


class CrashWorld:
    """A world whose processes look at fault points, one agent, and what has to be true of it at the end."""

    def __init__(self, place: World, faults: Faults, **binding: Any) -> None:
        self.place = place
        self.faults = faults
        self.person = Person(place)
        self.target = place.agent("bob", **binding)
        self.asked: dict[str, str] = {}
        """What each message asks for."""
        self.settled: set[str] = set()
        verbs.start(self.target)

    # Killing, and starting again.

    @property
    def receiver(self) -> int:
        return int(verbs.status(self.target)["pid"] or 0)

    def family(self) -> dict[str, list[int]]:
        """The processes below the receiver: launcher, keepers, agents."""
        found: dict[str, list[int]] = {"launcher": [], "keeper": [], "agent": []}
        with contextlib.suppress(psutil.Error):
            for launcher in psutil.Process(self.receiver).children():
                found["launcher"].append(launcher.pid)
                for keeper in launcher.children():
                    found["keeper"].append(keeper.pid)
                    found["agent"] += [agent.pid for agent in keeper.children()]
        return found

    def kill(self, *pids: int) -> int:
        """SIGKILL all at once; how many of them were alive."""
        hit = 0
        for pid in pids:
            if not gone(pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    hit += 1
        for pid in pids:
            until(lambda pid=pid: gone(pid), what=f"the end of {pid}")
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
        self.place.release(name)

    def ask(self, text: str, *, meanwhile: Callable[[], None] = lambda: None) -> str:
        message = self.person.ask(self.target, text, meanwhile=meanwhile)
        self.asked[message] = text
        return message

    def end(self, message: str) -> str:
        """The stage that a request ends with, or `lost`. What is unknown is settled, so that the next trial can run."""
        found: dict[str, Any] = {}
        with contextlib.suppress(AssertionError):
            found = until(
                lambda: (now := self.person.delivery(message)).get("stage") in ENDS and now, seconds=END_SECONDS
            )
        if found.get("stage") == "unknown":
            self.settle(message)
        return str(found.get("stage") or "lost")

    def settle(self, message: str) -> None:
        """Give it up as a person would, once its requester was told."""
        until(lambda: any(_is_notice(m, message) for m in self.person.history()), what="the notice")
        self.settled.add(message)
        verbs.settle(self.target, self.job(message), "abandon", reason="trial")
        until(lambda: self.person.stage(message) == "failed", seconds=END_SECONDS, what="the end of a settled job")

    def job(self, message: str) -> str:
        return job_id(self.target.workspace, profiles.load(self.target.profile).agent, self.target.channel, message)

    def starts(self) -> Counter[str]:
        """How often the work of each message was really started."""
        jobs = Counter(line.rpartition(".")[0] for line in self.place.starts())
        return Counter({message: jobs[self.job(message)] for message in self.asked})

    def faults_found(self) -> list[str]:
        """Everything that breaks a promise, judged from outside."""
        found = []
        stages = {message: self.person.stage(message) for message in self.asked}
        starts = self.starts()
        results = Counter(m["replyTo"] for m in self.person.history() if m["kind"] == "result")
        for message, stage in stages.items():
            if starts[message] > 1:
                found.append(f"{message}: started {starts[message]} times")
            if results[message] != 1:
                found.append(f"{message}: {stage} with {results[message]} results")
            if stage == "answered" and starts[message] != 1:
                found.append(f"{message}: answered without a start")
            if stage not in ENDS:
                found.append(f"{message}: has no end, it is {stage}")
        return found

    def close(self) -> None:
        self.person.close()


def _is_notice(message: dict[str, Any], of: str) -> bool:
    return bool(message["notice"]) and message["replyTo"] == of


class CodexCrashWorld(CrashWorld):
    """The same with a real Codex, whose model says how often each work reached it."""

    def __init__(self, place: World, faults: Faults, model: ModelEndpoint) -> None:
        self.model = model
        super().__init__(place, faults, adapter="codex", argv=(codex_binary(),), env=("MOCK_KEY",))

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
    home = folder / "codex-home"
    home.mkdir(parents=True)
    variables = {"CODEX_HOME": str(home), "MOCK_KEY": "x"}
    os.environ.update(variables)
    try:
        with ModelEndpoint() as model:
            (home / "config.toml").write_text(CONFIG.format(url=model.url))
            with _faulty(folder) as faults, world(folder) as place:
                made = CodexCrashWorld(place, faults, model)
                try:
                    yield made
                finally:
                    made.close()
    finally:
        for name in variables:
            del os.environ[name]


@contextlib.contextmanager
def crash_world(folder: Path) -> Iterator[CrashWorld]:
    """A hub, an agent and a person; all processes look at fault points."""
    with _faulty(folder) as faults, world(folder) as place:
        made = CrashWorld(place, faults)
        try:
            yield made
        finally:
            made.close()


@contextlib.contextmanager
def _faulty(folder: Path) -> Iterator[Faults]:
    folder.mkdir(parents=True, exist_ok=True)
    faults = Faults(folder / "faults")
    os.environ["RELAY_FAULTS"] = str(faults.folder)
    try:
        yield faults
    finally:
        faults.clear()
        del os.environ["RELAY_FAULTS"]


def moment(rnd: random.Random, most: float) -> None:
    """Let a random time pass."""
    end = time.monotonic() + rnd.uniform(0.0, most)
    while time.monotonic() < end:
        pass
