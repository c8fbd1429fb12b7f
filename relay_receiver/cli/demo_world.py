"""What the demo is played in: a hub of its own on loopback, a person, and two agents with their receivers."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from relay_receiver.client import enrol, profiles
from relay_receiver.client.hub import Hub
from relay_receiver.client.profiles import Profile
from relay_receiver.client.rest import Rest
from relay_receiver.processes import background, environment, files, identity, paths
from relay_receiver.receiver import verbs
from relay_receiver.receiver.configure import Wishes, configure
from relay_receiver.receiver.target import Target
from relay_receiver.testing import agent_program
from relay_receiver.wire.message import seconds

T = TypeVar("T")

CHANNEL = "lab"
PERSON = "you"
_LOOK_SECONDS = 0.03
_HUB_SECONDS = 30.0


@dataclass(kw_only=True)
class Sent:
    """A request that was sent, and when each of its stages was shown, in seconds after it was stored."""

    id: str
    stored: float
    stages: dict[str, float] = field(default_factory=dict)


class World:
    """Everything is below RELAY_HOME, which the demo sets to a folder of its own."""

    def __init__(self, home: Path, adapter: str) -> None:
        self.home = home
        self.adapter = adapter
        self.url = ""
        self.hub_pid = 0
        self.channel = ""
        self.agents: dict[str, Target] = {}
        self.sent: dict[str, Sent] = {}

    def directory(self, name: str) -> Path:
        """Where the jobs of an agent work."""
        return self.home.parent / f"project-{name}"

    async def open(self) -> None:
        """Start the hub, and make its owner and a channel."""
        told = await asyncio.to_thread(
            background.spawn,
            [*_RELAY, "hub", "serve", "--port", "0", "--data", str(paths.hub_dir())],
            log=files.private_dir(paths.hub_dir()) / "hub.log",
            environment=environment.own(),
            seconds=_HUB_SECONDS,
        )
        self.url, self.hub_pid = str(told["url"]), int(told["pid"])
        text = files.read_private(paths.hub_dir() / "owner.json").decode()
        owner = await enrol.import_connection(text, profile=PERSON)
        self.channel = str((await self.person(lambda hub: hub.create_channel(CHANNEL)))["id"])
        await enrol.refresh(owner)

    async def person(self, call: Callable[[Hub], Awaitable[T]]) -> T:
        """Do something at the hub as the person."""
        profile = profiles.load(PERSON)
        async with Rest(profile.url, profile.token()) as rest:
            return await call(Hub(rest))

    async def join(self, name: str) -> Profile:
        """Let an agent join, bind it and start its receiver."""
        invite = await self.person(lambda hub: hub.invite(self.channel))
        profile = await enrol.enrol(self.url, invite["code"], name=name, profile=name)
        self.directory(name).mkdir()
        argv = (sys.executable, str(Path(agent_program.__file__))) if self.adapter == "command" else None
        await configure(
            profile,
            channel=self.channel,
            channel_name=CHANNEL,
            wishes=Wishes(adapter=self.adapter, argv=argv, directory=self.directory(name)),
        )
        self.agents[name] = Target(name, profile.workspace, self.channel)
        await self.start(name)
        return profile

    async def start(self, name: str) -> None:
        """Start the receiver of an agent."""
        await asyncio.to_thread(verbs.start, self.agents[name])

    async def status(self, name: str) -> dict[str, Any]:
        """What the receiver of an agent says of itself."""
        return await asyncio.to_thread(verbs.status, self.agents[name])

    async def kill(self, name: str) -> int:
        """SIGKILL the receiver of an agent; returns its process id once it is gone."""
        pid = int((await self.status(name))["pid"])
        victim = identity.identify(pid)
        os.kill(pid, signal.SIGKILL)
        if victim is not None:
            await asyncio.to_thread(background.stop, victim, grace=10.0, signal_first=False)
        return pid

    async def ask(self, name: str, text: str, *, kind: str = "request") -> Sent:
        """Send something to an agent, as the person."""
        agent = profiles.load(name).agent
        body: dict[str, Any] = {"channel": self.channel, "kind": kind, "content": text}
        body |= {"to": agent} if kind == "request" else {"mentions": [agent]}
        stored = await self.person(lambda hub: hub.post_message(body))
        sent = Sent(id=str(stored["id"]), stored=seconds(stored["createdAt"]))
        self.sent[sent.id] = sent
        return sent

    async def messages(self) -> list[dict[str, Any]]:
        """The channel, oldest first."""
        page = await self.person(lambda hub: hub.history(self.channel, limit=200))
        found: list[dict[str, Any]] = page["messages"]
        return found

    async def results(self, sent: Sent) -> list[dict[str, Any]]:
        """The results that reply to what was sent."""
        return [m for m in await self.messages() if m["kind"] == "result" and m["replyTo"] == sent.id]

    async def ended(self, sent: Sent) -> str:
        """Wait for the end of a request; how it ended."""
        told = await until(lambda: self._end(sent), what="the end of the request")
        return str(told)

    async def _end(self, sent: Sent) -> str | None:
        stage = str((await self.person(lambda hub: hub.message(sent.id)))["delivery"]["stage"])
        return stage if stage in {"answered", "quiet", "failed", "unknown", "cancelled", "expired"} else None

    @contextlib.asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Note the stages of what was sent, as the hub tells them."""
        task = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _watch(self) -> None:
        profile = profiles.load(PERSON)
        async with Rest(profile.url, profile.token()) as rest:
            hub, cursor = Hub(rest), None
            while True:
                told = await hub.updates(cursor=cursor, channel=self.channel, types=("message.stage",), wait=5)
                cursor = told["cursor"]
                for event in told["events"]:
                    sent = self.sent.get(str(event["data"].get("message")))
                    if sent is not None:
                        sent.stages.setdefault(str(event["data"]["stage"]), seconds(event["at"]) - sent.stored)

    async def close(self) -> None:
        """Stop what was started."""
        for target in self.agents.values():
            with contextlib.suppress(Exception):
                await asyncio.to_thread(verbs.stop, target, now=True)
        hub = identity.identify(self.hub_pid) if self.hub_pid else None
        if hub is not None:
            await asyncio.to_thread(background.stop, hub, grace=10.0)

    def facts(self) -> str:
        """What one has to set to look around."""
        return json.dumps({"RELAY_HOME": str(self.home), "url": self.url})


async def until(look: Callable[[], Awaitable[Any]], *, what: str, limit: float = 40.0) -> Any:  # noqa: ANN401 - what was found
    """Look again and again until something is there.

    Raises:
        TimeoutError: it did not come about.
    """
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if found := await look():
            return found
        await asyncio.sleep(_LOOK_SECONDS)
    raise TimeoutError(f"{what} did not come about within {limit:g} s")


_RELAY = (sys.executable, "-m", "relay_receiver.cli.main")
