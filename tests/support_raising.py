"""A hub and a receiver in this process, so that one fault point can raise: everything between them is real."""

import asyncio
import logging
import sys
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from support_hub import LiveHub, Member
from support_time import WITHIN

from relay_receiver.client import enrol, profiles
from relay_receiver.jobs import backoff
from relay_receiver.jobs.job import job_id
from relay_receiver.processes.keeper_faults import FaultError
from relay_receiver.receiver import receiver, verbs, watch
from relay_receiver.receiver.how import How
from relay_receiver.receiver.target import Target
from relay_receiver.testing import trial_program
from relay_receiver.wire import faultpoint
from relay_receiver.wire.stage import ENDS

CHANNEL = "lab"
SOON = 0.02
"""Seconds between two tries of anything."""


class Points:
    """The points that this process comes to; one of them raises, once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: set[str] = set()
        self.raised: list[str] = []
        self._passed: list[str] = []
        self._armed: str | None = None
        monkeypatch.setattr(faultpoint, "_handlers", [self._come])

    def arm(self, point: str | None) -> None:
        """Have the next one that comes to the point raise."""
        self._armed, self.raised, self._passed = point, [], []

    async def passed(self, point: str) -> None:
        """Wait until something came to a point, and over it, since it was armed."""
        async with asyncio.timeout(WITHIN):
            while point not in self._passed:
                await asyncio.sleep(SOON)

    def _come(self, name: str) -> None:
        self.seen.add(name)
        if name == self._armed:
            self._armed = None
            self.raised.append(name)
            raise FaultError(f"told to fail at {name}")
        self._passed.append(name)


class Stage:
    """One channel with its owner and the agent bob."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, **binding: Any) -> None:
        monkeypatch.setattr(backoff, "delay", lambda *_, **__: SOON)
        monkeypatch.setattr(receiver, "HEALTHY_SECONDS", 0.0)
        monkeypatch.setattr(watch, "SETTLE_SECONDS", 0.0)  # every job is seen running
        self.points = Points(monkeypatch)
        self._project = folder / "project"
        self._project.mkdir()
        self._hub = LiveHub(folder / "hub").start()
        self._owner: Member = self._hub.owner()
        self._channel = self._hub.channel(self._owner, CHANNEL)
        code = self._owner.post("/invites", {"channel": self._channel})["code"]
        asyncio.run(enrol.enrol(self._hub.url, code, name="bob", profile="bob"))
        self._profile = profiles.load("bob")
        program = str(Path(trial_program.__file__).resolve())
        wishes = {
            "adapter": "command",
            "argv": (sys.executable, "-I", "-S", program, str(self._project)),
            "directory": self._project,
            **binding,
        }
        verbs.configure(self._profile, channel=self._channel, channel_name=CHANNEL, **wishes)
        self._target = Target("bob", self._profile.workspace, self._channel)
        self._asked: list[str] = []

    def close(self) -> None:
        self._hub.stop()

    def run(self, case: Callable[[], Coroutine[Any, Any, None]], *, how: How = How.NOW) -> None:
        """Have a receiver at work for the length of the case, then stop it."""

        async def main() -> None:
            log = logging.getLogger("relay_receiver.test")
            working = receiver.Receiver(self._profile, self._target.folder, log)
            living = asyncio.create_task(working.run(lambda _: None))
            trying = asyncio.create_task(case())
            await asyncio.wait({living, trying}, return_when=asyncio.FIRST_COMPLETED)
            assert not living.done(), f"the receiver ended after {self.points.raised}: {living.exception()}"
            working.stop(how)
            await living
            await trying

        asyncio.run(main())

    async def answered(self, text: str) -> None:
        """Ask for something, and wait for its answer."""
        await self._ask(text)
        await self.ended()

    async def begun(self, text: str) -> None:
        """Ask for something, and wait until its program was started and that is known."""
        await self._ask(text)
        await self.points.passed("journal.move.after")

    async def ended(self) -> None:
        """Wait for the answer to what was asked last."""
        async with asyncio.timeout(WITHIN):
            while (now := await self._delivery())["stage"] not in ENDS:
                await asyncio.sleep(SOON)
        assert now["stage"] == "answered", (now, self.points.raised)

    def release(self, name: str) -> None:
        (self._project / f"release-{name}").touch()

    def nothing_twice(self) -> None:
        """All that was asked was answered once, and no attempt of any of it was started beside another."""
        found = self._owner.get("/messages", channel=self._channel, limit=200)["messages"]
        assert sorted(each["replyTo"] for each in found if each["kind"] == "result") == sorted(self._asked)
        started = Counter(line.rpartition(".")[0] for line in (self._project / "starts").read_text().split())
        jobs = {job_id(self._profile.workspace, self._profile.agent, self._channel, each) for each in self._asked}
        assert started == dict.fromkeys(jobs, 1)

    async def _ask(self, text: str) -> None:
        body = {"channel": self._channel, "kind": "request", "to": self._profile.agent, "content": text}
        message = await self._call("POST", "/messages", json={**body, "operationId": f"op-{len(self._asked)}"})
        self._asked.append(str(message["id"]))

    async def _delivery(self) -> dict[str, Any]:
        return dict((await self._call("GET", f"/messages/{self._asked[-1]}"))["delivery"])

    async def _call(self, method: str, path: str, **more: Any) -> Any:
        """A call of the person, made again where the hub answers with a fault of its own."""
        async with asyncio.timeout(WITHIN):
            while True:
                answer = await asyncio.to_thread(self._owner.http.request, method, path, **more)
                if answer.status_code < 500:
                    assert answer.status_code < 300, answer.text
                    return answer.json()
