"""A place of its own for trials: a hub, a person, and agents with real receivers, below one directory."""

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from relay_receiver.client import enrol, profiles
from relay_receiver.client.hub import Hub
from relay_receiver.client.profiles import Profile
from relay_receiver.client.rest import Rest
from relay_receiver.processes import paths
from relay_receiver.receiver import verbs
from relay_receiver.receiver.target import Target
from relay_receiver.testing import trial_program
from relay_receiver.testing.port import Port
from relay_receiver.wire.errors import RelayError

CHANNEL = "lab"
LOOK_SECONDS = 0.01
PATIENCE = 60.0
"""Seconds to wait for what must come about: above what a receiver takes to get over a fault, a lease's 30 s."""
HUB_SECONDS = 60.0
NOT_YET = frozenset({"not_answering", "timed_out"})


class NotInTime(AssertionError):  # noqa: N818 - it is what did not happen
    """What was waited for did not come about."""


def until(condition: Callable[[], Any], *, seconds: float = PATIENCE, what: str = "it") -> Any:  # noqa: ANN401 - what it finds
    """Poll a condition of another process until it holds; what it returned.

    A receiver that does not answer just now, as on a busy machine, is asked again.

    Raises:
        NotInTime: it never held.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if found := condition():
                return found
        except RelayError as error:
            if error.code not in NOT_YET:
                raise
        time.sleep(LOOK_SECONDS)
    raise NotInTime(f"{what} did not come about within {seconds} s")


class Place:
    """Everything lives beside `home`, which `RELAY_HOME` names meanwhile (see `at_home`)."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.project = home.parent / "project"
        self.project.mkdir(exist_ok=True)
        self.data = home.parent / "hub"
        self.hub: subprocess.Popen[bytes] | None = None
        self.url = ""
        self.port = Port()
        self.channel = ""
        self.targets: list[Target] = []

    def start_hub(self) -> None:
        """Run a hub, on the port that it had before.

        Raises:
            RelayError: it does not start.
        """
        ready = self.home.parent / "hub-ready.json"
        told = self.home.parent / "hub.log"
        ready.unlink(missing_ok=True)
        argv = [
            *(sys.executable, "-P", "-m", "relay_receiver.cli.main", "hub", "serve"),
            *("--port", str(self.port.number), "--data", str(self.data), "--ready-file", str(ready)),
        ]
        with told.open("ab") as log:
            self.hub = hub = subprocess.Popen(argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        until(lambda: ready.exists() or hub.poll() is not None, seconds=HUB_SECONDS, what="the hub")
        if not ready.exists():
            raise RelayError(f"The hub does not start: {told.read_text()[-500:].strip()}", code="no_hub")
        self.url = json.loads(ready.read_text())["url"]

    def people(self, channel: str = CHANNEL) -> Profile:
        """The owner, in a channel of its own making."""
        owner = asyncio.run(enrol.import_connection((self.data / "owner.json").read_text(), profile="owner"))
        found = asyncio.run(self.as_(owner, lambda hub: hub.create_channel(channel)))
        self.channel = found["id"]
        return asyncio.run(enrol.refresh(owner))

    def agent(self, name: str, **binding: Any) -> Target:  # noqa: ANN401 - fields of `configure.Wishes`
        """A member with a configured receiver whose program logs its starts."""
        invite = self.do("owner", lambda hub: hub.invite(self.channel))
        asyncio.run(enrol.enrol(self.url, invite["code"], name=name, profile=name))
        return self.bind(name, **binding)

    def bind(self, name: str, **binding: Any) -> Target:  # noqa: ANN401 - fields of `configure.Wishes`
        """Configure the receiver of a member of this machine."""
        profile = profiles.load(name)
        program = str(Path(trial_program.__file__).resolve())
        wishes = {
            "adapter": "command",
            "argv": (sys.executable, "-I", "-S", program, str(self.project)),
            "directory": self.project,
            **binding,
        }
        verbs.configure(profile, channel=self.channel, channel_name=CHANNEL, **wishes)
        target = Target(name, profile.workspace, self.channel)
        self.targets.append(target)
        return target

    async def as_(self, profile: Profile, call: Callable[[Hub], Any]) -> Any:  # noqa: ANN401 - JSON
        """Ask the hub as a member."""
        async with Rest(profile.url, profile.token()) as rest:
            return await call(Hub(rest))

    def do(self, name: str, call: Callable[[Hub], Any]) -> Any:  # noqa: ANN401 - JSON
        """`as_` for callers without an event loop."""
        return asyncio.run(self.as_(profiles.load(name), call))

    def starts(self) -> list[str]:
        """The attempts whose program really started, in order."""
        path = self.project / "starts"
        return path.read_text().split() if path.exists() else []

    def release(self, name: str) -> None:
        """Let a program go on that holds."""
        (self.project / f"release-{name}").touch()

    def close(self) -> None:
        """Stop everything; the sockets of receivers that lie elsewhere go too."""
        for target in self.targets:
            with contextlib.suppress(Exception):
                verbs.stop(target, now=True)
            if not target.runtime.is_relative_to(self.home):
                shutil.rmtree(target.runtime, ignore_errors=True)
        if self.hub is not None and self.hub.poll() is None:
            self.hub.terminate()
            try:
                self.hub.wait(HUB_SECONDS)
            except subprocess.TimeoutExpired:
                self.hub.kill()
                self.hub.wait()
        self.port.close()


PlaceT = TypeVar("PlaceT", bound=Place)


@contextlib.contextmanager
def place(folder: Path, made: Callable[[Path], PlaceT], **more: str) -> Iterator[PlaceT]:
    """A hub, its owner and a channel below `folder`; everything ends with the block.

    Args:
        more: environment variables of all its processes.
    """
    with at_home(folder / "home", **more):
        found = made(folder / "home")
        try:
            found.start_hub()
            found.people()
            yield found
        finally:
            found.close()


@contextlib.contextmanager
def at_home(home: Path, **more: str) -> Iterator[None]:
    """Have `home` as this process's own, and nothing else of a person's `RELAY_` settings.

    Args:
        more: other variables to set.
    """
    before = {name: value for name, value in os.environ.items() if name.startswith("RELAY_")}
    _set({paths.HOME: str(home), **more}, away=before)
    try:
        yield
    finally:
        _set(before, away={paths.HOME: "", **more})


def _set(variables: Mapping[str, str], *, away: Mapping[str, str]) -> None:
    for name in away:
        os.environ.pop(name, None)
    os.environ.update(variables)
