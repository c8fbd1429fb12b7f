"""A small world for tests: a real hub, a person, agents with real receivers, and a program that logs its starts."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from relay_receiver.client import enrol, profiles
from relay_receiver.client.hub import Hub
from relay_receiver.client.profiles import Profile
from relay_receiver.client.rest import Rest
from relay_receiver.receiver import verbs
from relay_receiver.receiver.target import Target

AGENT = """
import json, os, sys, time
asked = json.loads(sys.stdin.read())
home = {home!r}
with open(os.path.join(home, "starts"), "a") as log:
    log.write(asked["requestId"] + "\\n")
    log.flush()
    os.fsync(log.fileno())
prompt = asked["prompt"]
said = prompt[prompt.rindex("This is for you:"):]
def word(name):
    return said.split(name + "=", 1)[1].split()[0] if name + "=" in said else None
if word("hold"):
    while not os.path.exists(os.path.join(home, "release-" + word("hold"))):
        time.sleep(0.01)
if word("exit"):
    sys.stderr.write("going wrong on purpose\\n")
    sys.exit(int(word("exit")))
if "say-nothing" in said:
    print(json.dumps({{"quiet": True}}))
elif word("big"):
    print(json.dumps({{"text": "x" * int(word("big"))}}))
else:
    print(json.dumps({{"text": "did " + (word("task") or "it")}}))
"""


def until(condition: Callable[[], Any], *, seconds: float = 20.0, what: str = "it") -> Any:
    """Poll a condition of another process until it holds; fails with what was waited for."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.01)
    raise AssertionError(f"{what} did not come about within {seconds} s")


class World:
    """Everything lives below `home`, which RELAY_HOME names."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.project = home.parent / "project"
        self.project.mkdir(exist_ok=True)
        self.data = home.parent / "hub"
        self.hub: subprocess.Popen[bytes] | None = None
        self.url = ""
        self.port = 0
        self.channel = ""
        self.targets: list[Target] = []
        self.program = home.parent / "agent.py"
        self.program.write_text(AGENT.format(home=str(self.project)))

    def start_hub(self) -> None:
        ready = self.home.parent / "hub-ready.json"
        ready.unlink(missing_ok=True)
        argv = [
            sys.executable,
            "-m",
            "relay_receiver.cli.main",
            "hub",
            "serve",
            "--port",
            str(self.port),
            "--data",
            str(self.data),
            "--ready-file",
            str(ready),
        ]
        with (self.home.parent / "hub.log").open("ab") as log:
            self.hub = subprocess.Popen(argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        until(lambda: ready.exists() or (self.hub and self.hub.poll() is not None), what="the hub")
        assert ready.exists(), (self.home.parent / "hub.log").read_text()
        self.url = json.loads(ready.read_text())["url"]
        self.port = int(self.url.rsplit(":", 1)[1])

    def kill_hub(self) -> None:
        assert self.hub is not None
        self.hub.kill()
        self.hub.wait()

    def people(self, channel: str = "lab") -> Profile:
        """The owner, in a channel of its own making."""
        owner = asyncio.run(enrol.import_connection((self.data / "owner.json").read_text(), profile="owner"))
        found = asyncio.run(self.as_(owner, lambda hub: hub.create_channel(channel)))
        self.channel = found["id"]
        return asyncio.run(enrol.refresh(owner))

    def agent(self, name: str, **binding: Any) -> Target:
        """A member with a configured receiver whose program logs its starts."""
        invite = self.do("owner", lambda hub: hub.invite(self.channel))
        asyncio.run(enrol.enrol(self.url, invite["code"], name=name, profile=name))
        return self.bind(name, **binding)

    def bind(self, name: str, **binding: Any) -> Target:
        """Configure the receiver of a member of this machine."""
        profile = profiles.load(name)
        wishes = {
            "adapter": "command",
            "argv": (sys.executable, "-I", "-S", str(self.program)),
            "directory": self.project,
            **binding,
        }
        verbs.configure(profile, channel=self.channel, channel_name="lab", **wishes)
        target = Target(name, profile.workspace, self.channel)
        self.targets.append(target)
        return target

    async def as_(self, profile: Profile, call: Callable[[Hub], Any]) -> Any:
        async with Rest(profile.url, profile.token()) as rest:
            return await call(Hub(rest))

    def do(self, name: str, call: Callable[[Hub], Any]) -> Any:
        return asyncio.run(self.as_(profiles.load(name), call))

    def ask(self, target: Target, text: str, *, by: str = "owner", **more: Any) -> dict[str, Any]:
        """Send a request to an agent."""
        agent = profiles.load(target.profile).agent
        body = {"channel": self.channel, "kind": "request", "to": agent, "content": text, **more}
        return self.do(by, lambda hub: hub.post_message(body))

    def say(self, text: str, *, by: str = "owner", **more: Any) -> dict[str, Any]:
        body = {"channel": self.channel, "kind": "message", "content": text, **more}
        return self.do(by, lambda hub: hub.post_message(body))

    def stage(self, message: str) -> str:
        return str(self.do("owner", lambda hub: hub.message(message))["delivery"]["stage"])

    def until_stage(self, message: str, *stages: str, seconds: float = 20.0) -> str:
        return until(
            lambda: (now := self.stage(message)) in stages and now, seconds=seconds, what=f"{message} {stages}"
        )

    def results(self, message: str) -> list[dict[str, Any]]:
        page = self.do("owner", lambda hub: hub.history(self.channel, limit=200))
        return [m for m in page["messages"] if m["kind"] == "result" and m["replyTo"] == message]

    def starts(self) -> list[str]:
        path = self.project / "starts"
        return path.read_text().split() if path.exists() else []

    def release(self, name: str) -> None:
        (self.project / f"release-{name}").touch()

    def kill(self, target: Target) -> int:
        """SIGKILL the receiver process of a target."""
        pid = int(verbs.status(target)["pid"])
        os.kill(pid, signal.SIGKILL)
        until(lambda: not _alive(pid), what="the end of the killed receiver")
        return pid

    def close(self) -> None:
        for path in ("a", "b", "c"):
            self.release(path)
        for target in self.targets:
            with contextlib.suppress(Exception):
                verbs.stop(target, now=True)
        if self.hub is not None and self.hub.poll() is None:
            self.hub.terminate()
            self.hub.wait(20)


def _alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rsplit(")", 1)[1].split()[0] != "Z"


@contextlib.contextmanager
def world(tmp_path: Path) -> Iterator[World]:
    """A hub, its owner and a channel; everything ends with the block."""
    home = tmp_path / "home"
    before = os.environ.get("RELAY_HOME")
    os.environ["RELAY_HOME"] = str(home)
    made = World(home)
    try:
        made.start_hub()
        made.people()
        yield made
    finally:
        made.close()
        if before is None:
            os.environ.pop("RELAY_HOME", None)
        else:
            os.environ["RELAY_HOME"] = before
