"""The stage of the demo: a hub, a person, two agents and their receivers, in a temporary home."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from relay_receiver.client import profiles
from relay_receiver.processes import identity
from relay_receiver.processes.identity import Life
from relay_receiver.testing import agent_program
from relay_receiver.testing.demo_channel import Channel
from relay_receiver.testing.demo_machine import Machine
from relay_receiver.testing.demo_words import ModelWords, ProgramWords, Words
from relay_receiver.wire.errors import RelayError
from relay_receiver.wire.message import HUMAN

AGENTS = ("alice", "bob")
PERSON = "default"
CHANNEL = "lab"
LOOK_SECONDS = 0.02
MEANINGS = {
    "stored": "the hub has it on its disk",
    "received": "the receiver has it in its journal",
    "starting": "the hub lets it run, this once",
    "running": "the agent works",
    "answered": "its result is on the hub's disk",
}
"""What a stage proves."""


_PROGRAM = ProgramWords()


@dataclass(frozen=True, kw_only=True, slots=True)
class Cast:
    """Who plays the agents.

    Args:
        argv: the program; empty for the demo's own, or the installed Codex.
        patience: seconds that one job may take.
    """

    adapter: str = "command"
    argv: Sequence[str] = ()
    words: Words = _PROGRAM
    patience: float = 60.0

    @classmethod
    def of(cls, adapter: str, argv: Sequence[str]) -> "Cast":
        """The cast for an adapter that was chosen on the command line."""
        if adapter == "command":
            return cls(argv=argv)
        return cls(adapter=adapter, argv=argv, words=ModelWords(), patience=180.0)

    def program(self) -> list[str]:
        """The agents' program; empty where the adapter finds its own."""
        if self.argv or self.adapter != "command":
            return list(self.argv)
        return [sys.executable, "-I", "-S", str(Path(agent_program.__file__).resolve())]


class Stage:
    """Everything that the acts play with."""

    def __init__(self, root: Path, cast: Cast, say: Callable[[str], None]) -> None:
        self.root = root
        self.cast = cast
        self.say = say
        self.machine = Machine(root / "relay", say)
        self.people: dict[str, str] = {}
        """The names of members, by id."""
        self.channel = Channel(self._tell)
        self.place = ""
        self._started: set[str] = set()
        self._asked: dict[str, float] = {}
        """When the person's requests were stored, by id."""

    async def set_up(self) -> None:
        """Start the hub and the receivers, by the lines that a person would type."""
        hub = await self.machine.relay("hub", "start", "--port", "0")
        self.say(f"  A hub runs at {hub['url']} (process {hub['pid']}); you own it.")
        made = await self.machine.relay("channels", "create", CHANNEL)
        self.place = str(made["id"])
        for name in AGENTS:
            await self._join(name)
        peers = await self.machine.relay("peers", as_=PERSON, shown="")
        self.people = {str(each["id"]): str(each["name"]) for each in peers["peers"]} | {"human": "you"}

    async def _join(self, name: str) -> None:
        code = await self.machine.relay("invites", "create", as_=PERSON, shown="relay invites create")
        link = str(code["connect"]).split()[2]
        shown = f"relay connect {link.partition('#')[0]}#CODE --name {name}"
        await self.machine.relay("connect", link, "--name", name, shown=shown)
        folder = self.folder(name)
        folder.mkdir()
        words = ["receiver", "start", "--adapter", self.cast.adapter, "--directory", str(folder)]
        if program := self.cast.program():
            words += ["--argv", json.dumps(program)]
        self._started.add(name)
        shown = f"relay --profile {name} receiver start --adapter {self.cast.adapter} --directory {folder}"
        ready = await self.machine.relay(*words, as_=name, shown=shown)
        self.say(f"  {name}'s receiver is ready (process {ready['pid']}).")

    async def follow(self) -> None:
        """Follow the channel as the person, until cancelled."""
        await self.channel.follow(profiles.load(PERSON), self.place)

    def folder(self, name: str) -> Path:
        """Where an agent works."""
        return self.root / name

    async def send(self, *words: str, content: str) -> dict[str, Any]:
        """Send something as the person."""
        return await self.machine.relay("messages", "send", *words, "--content", content, as_=PERSON, shown="")

    async def status(self, name: str) -> dict[str, Any]:
        """What an agent's receiver says of itself."""
        return await self.machine.relay("receiver", "status", as_=name, shown="")

    async def jobs(self, name: str) -> list[dict[str, Any]]:
        """An agent's jobs, newest first."""
        answer = await self.machine.relay("receiver", "jobs", as_=name, shown="")
        jobs: list[dict[str, Any]] = answer["jobs"]
        return jobs

    def starts(self, name: str) -> list[str]:
        """The starts that an agent has put on the disk."""
        path = self.folder(name) / agent_program.STARTS
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    async def started(self, name: str, *, before: int) -> str:
        """Wait until an agent puts another start on the disk; that line.

        Raises:
            RelayError: it does not.
        """
        line = await self.wait(lambda: next(iter(self.starts(name)[before:]), None), what=f"{name}'s start of the job")
        return str(line)

    async def wait(self, look: Callable[[], Any], *, what: str) -> Any:  # noqa: ANN401 - what `look` finds
        """Look again and again at what no event tells.

        Raises:
            RelayError: it did not come about in time.
        """
        try:
            async with asyncio.timeout(self.cast.patience):
                while (found := look()) is None:  # noqa: ASYNC110 - other processes are watched from outside
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError:
            raise RelayError(f"{what} did not come about.", code="timed_out") from None
        return found

    async def kill(self, pid: int) -> None:
        """SIGKILL a process, and see it gone."""
        known = identity.identify(pid)
        os.kill(pid, signal.SIGKILL)
        if known is not None:
            await self.wait(
                lambda: True if identity.life(known) is Life.GONE else None, what=f"the end of process {pid}"
            )

    async def clear(self) -> None:
        """Stop everything that runs here."""
        stops = (self._stop(name) for name in sorted(self._started))
        await asyncio.gather(*stops)
        await self.machine.relay("hub", "stop", shown="")

    async def _stop(self, name: str) -> None:
        try:
            await self.machine.relay("receiver", "stop", "--now", as_=name, shown="")
        except RelayError as error:
            if error.code != "not_configured":
                self.say(f"  {name}'s receiver did not stop: {error.sentence}")

    def _tell(self, event: Mapping[str, Any]) -> None:
        said = event["data"]["message"]
        if event["type"] == "message.stage":
            if said in self._asked:
                self._tell_stage(event["data"], since=self._asked[said])
        elif said["kind"] == "result":
            self.say(f"  {self._name(said['author'])} answers: {said['content']}")
        else:
            aimed = [said["to"]] if said["to"] else said["mentions"]
            self.say(f"  {self._name(said['author'])} -> {', '.join(map(self._called, aimed))}: {said['content']}")
            if said["kind"] == "request" and said["author"]["kind"] == HUMAN:
                self._asked[said["id"]] = _seconds(said["createdAt"])
                self._tell_stage({"stage": "stored", "since": said["createdAt"]}, since=self._asked[said["id"]])

    def _tell_stage(self, shown: Mapping[str, Any], *, since: float) -> None:
        passed = (_seconds(shown["since"]) - since) * 1000
        why = shown.get("reason") or shown.get("detail") or MEANINGS.get(shown["stage"], "")
        self.say(f"    after {passed:5.0f} ms  {shown['stage']:<9} {why}")

    def _name(self, author: Mapping[str, Any]) -> str:
        return "you" if author["kind"] == HUMAN else str(author["name"])

    def _called(self, member: str) -> str:
        return self.people.get(member, member)


def _seconds(iso: str) -> float:
    return datetime.fromisoformat(iso).timestamp()
