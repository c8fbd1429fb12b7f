"""A hub with an owner, and agents with real receivers, below one temporary directory."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from benchmarks import compiled
from benchmarks.fsyncs import Log
from relay_receiver.client import enrol, profiles
from relay_receiver.client.hub import Hub
from relay_receiver.client.profiles import Profile
from relay_receiver.client.rest import Rest
from relay_receiver.receiver import verbs
from relay_receiver.receiver.target import Target

ROOT = Path(__file__).parents[1]
T = TypeVar("T")


def until(condition: Callable[[], T], *, seconds: float, what: str, every: float = 0.01) -> T:
    """The first true value of a condition of other processes."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"{what} did not come about within {seconds:g} s")
        time.sleep(every)
    return found


class World:
    """One hub, its owner, one channel."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.project = root / "project"
        self.project.mkdir()
        self.log = Log(root / "fsyncs.log")
        self.counts_fsyncs = False
        self.program = compiled.answer(root)
        self.hub: subprocess.Popen[bytes] | None = None
        self.url = ""
        self.channel = ""
        self.targets: list[Target] = []

    def preload(self) -> dict[str, str]:
        """The environment in which fsyncs are logged."""
        library = compiled.fsync_counter(self.root)
        self.counts_fsyncs = library is not None
        return {} if library is None else {"LD_PRELOAD": str(library), "RELAY_FSYNCS": str(self.log.path)}

    def start_hub(self) -> None:
        ready = self.root / "ready.json"
        argv = [sys.executable, "-m", "benchmarks.watched_hub", str(self.root / "hub"), str(ready)]
        with (self.root / "hub.log").open("ab") as log:
            self.hub = subprocess.Popen(
                argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=ROOT, env={**os.environ, **self.preload()}
            )
        hub = self.hub
        until(lambda: ready.exists() or hub.poll() is not None, seconds=30, what="the hub")
        if not ready.exists():
            raise RuntimeError((self.root / "hub.log").read_text())
        self.url = json.loads(ready.read_text())["url"]

    def people(self) -> None:
        """The owner, in a channel of its own."""
        text = (self.root / "hub" / "owner.json").read_text()
        owner = asyncio.run(enrol.import_connection(text, profile="owner"))
        self.channel = self.do("owner", lambda hub: hub.create_channel("lab"))["id"]
        asyncio.run(enrol.refresh(owner))

    def member(self, name: str) -> Profile:
        """An agent without a receiver."""
        code = self.do("owner", lambda hub: hub.invite(self.channel))["code"]
        return asyncio.run(enrol.enrol(self.url, code, name=name, profile=name))

    def agent(self, name: str, **binding: Any) -> Target:  # noqa: ANN401 - fields of Wishes
        """An agent with a configured receiver."""
        profile = self.member(name)
        wishes = {"adapter": "command", "argv": self.program, "directory": self.project, **binding}
        verbs.configure(profile, channel=self.channel, channel_name="lab", **wishes)
        target = Target(name, profile.workspace, self.channel)
        self.targets.append(target)
        return target

    def start(self, target: Target) -> int:
        """Start a receiver with its fsyncs logged; its process."""
        with environment(self.preload()):
            return int(verbs.start(target)["pid"])

    def do(self, name: str, call: Callable[[Hub], Awaitable[T]]) -> T:
        async def called() -> T:
            profile = profiles.load(name)
            async with Rest(profile.url, profile.token()) as rest:
                return await call(Hub(rest))

        return asyncio.run(called())

    def requests(self) -> list[list[Any]]:
        """What the hub was asked since the last look: method, path, began, answered."""
        with urllib.request.urlopen(f"{self.url}/benchmark/log") as answer:  # noqa: S310 - loopback
            seen: list[list[Any]] = json.load(answer)
        return seen

    def close(self) -> None:
        for target in self.targets:
            with contextlib.suppress(Exception):
                verbs.stop(target, now=True)
        if self.hub is not None and self.hub.poll() is None:
            self.hub.terminate()
            self.hub.wait(20)


@contextlib.contextmanager
def environment(more: Mapping[str, str]) -> Iterator[None]:
    """These variables for a while."""
    before = {name: os.environ.get(name) for name in more}
    os.environ.update(more)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def world() -> Iterator[World]:
    """A running hub with an owner and a channel."""
    with tempfile.TemporaryDirectory(prefix="relay-benchmark-") as folder:
        root = Path(folder)
        with environment({"RELAY_HOME": str(root / "home")}):
            made = World(root)
            try:
                made.start_hub()
                made.people()
                yield made
            finally:
                made.close()
