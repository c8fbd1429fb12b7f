"""A hub with many channels, a receiver in each, and as many messages as wanted; the hub is a process of its own."""

import asyncio
import contextlib
import itertools
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import websockets.asyncio.client as sockets
from sqlalchemy import Connection

from benchmarks.world import ROOT, until
from relay_receiver.client.hub import Hub
from relay_receiver.client.rest import Rest
from relay_receiver.hub import channels, docs, enrolment, messages, search_index, tasks
from relay_receiver.hub.auth import Actor, digest, find
from relay_receiver.hub.console import session
from relay_receiver.hub.store import Store

CHANNELS = 50
AT_ONCE = 250
"""Messages that one write stores."""
EVERYWHERE, NOWHERE = "everywhere", "nowhere"
"""A word of every message, and one of none."""
EVERY_TIME = (EVERYWHERE, "always")
"""How every message begins."""
COMMON = ("alpha", "alphabet")
LEASE_SECONDS = 12.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Crowd:
    """Who and what is in a hub's data. `owner` and `guest` are tokens of people; `owner` is in every channel, the guest
    in the first only. `cookie` is the owner's sign-in."""

    path: Path
    owner: str
    guest: str
    cookie: str
    channels: tuple[str, ...]
    agents: tuple[str, ...]
    docs: int


def fill(path: Path, count: int) -> Crowd:
    """Make the data of a hub with so many messages, spread over all channels; in the search index too."""
    path.mkdir(mode=0o700)
    store = Store.open(path)
    try:
        return _filled(store, path, count)
    finally:
        store.close()


def _filled(store: Store, path: Path, count: int) -> Crowd:
    now = time.time()
    owner, guest, cookie = (os.urandom(24).hex() for _ in range(3))
    _join(store, store.write_now(enrolment.owner_code, at=now).code, owner, "owner")
    places = []
    for number in range(CHANNELS):
        actor = store.read_now(find, digest(owner))
        assert actor is not None
        places.append(str(store.write_now(channels.create, actor, f"channel {number}", at=now)["id"]))
    actor = store.read_now(find, digest(owner))
    assert actor is not None
    agents = tuple(os.urandom(24).hex() for _ in places)
    for place, token in zip(places, agents, strict=True):
        _join(
            store, store.write_now(enrolment.invite, actor, place, person=False, at=now).code, token, f"agent {place}"
        )
    _join(store, store.write_now(enrolment.invite, actor, places[0], person=True, at=now).code, guest, "guest")
    store.write_now(session.begin, who=actor.id, token=cookie, csrf="", at=now)
    speak = _Speaker(places)
    for first in range(0, count, AT_ONCE):
        store.write_now(speak.some, actor, first, min(count, first + AT_ONCE), at=now - count + first)
    for number in range(CHANNELS):
        wish = docs.Draft(channel=places[number], title=f"Plan {number}", content=f"{EVERYWHERE} " * 50)
        store.write_now(docs.create, actor, wish, at=now)
        store.write_now(tasks.create, actor, tasks.Draft(channel=places[number], title=f"Task {number}"), at=now)
    while store.write_now(search_index.catch_up, actor.workspace):
        pass
    return Crowd(
        path=path, owner=owner, guest=guest, cookie=cookie, channels=tuple(places), agents=agents, docs=CHANNELS
    )


def _join(store: Store, code: str, token: str, name: str) -> None:
    store.write_now(
        enrolment.enroll,
        code=code,
        client_secret=token,
        identity_secret=os.urandom(24).hex(),
        name=name,
        at=time.time(),
    )


class _Speaker:
    """Texts of some thirty words, a few of them common, as in talk; the same in every run."""

    def __init__(self, places: list[str]) -> None:
        self._chance = random.Random(7)  # noqa: S311 - texts
        self._places = places
        letters = "abcdefghijklmnopqrstuvwxyz"
        rare = ["".join(self._chance.choices(letters, k=self._chance.randint(3, 9))) for _ in range(4000)]
        self._words = [*COMMON, *rare]
        self._weights = list(itertools.accumulate(1 / (rank + 1) for rank in range(len(self._words))))

    def some(self, conn: Connection, actor: Actor, first: int, end: int, *, at: float) -> None:
        for number in range(first, end):
            said = " ".join([*EVERY_TIME, *self._chance.choices(self._words, cum_weights=self._weights, k=30)])
            place = self._places[number % len(self._places)]
            wish = messages.Draft(channel=place, content=said, kind="message", operation=f"fill:{number}")
            messages.post(conn, actor, wish, at=at)


class Running:
    """A hub over such data, with a receiver's socket and lease in each channel."""

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd
        ready = crowd.path.with_name(f"{crowd.path.name}.ready")
        ready.unlink(missing_ok=True)
        argv = [sys.executable, "-m", "benchmarks.watched_hub", str(crowd.path), str(ready)]
        with crowd.path.with_name(f"{crowd.path.name}.log").open("ab") as log:
            self.process = subprocess.Popen(argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=ROOT)
        until(lambda: ready.exists() or self.process.poll() is not None, seconds=60, what="the hub")
        self.url = str(json.loads(ready.read_text())["url"])
        self.port = int(self.url.rsplit(":", 1)[1])
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._listening: list[asyncio.Task[None]] = []

    @property
    def pid(self) -> int:
        return self.process.pid

    def receivers(self) -> None:
        """Let a receiver listen in each channel, and hold its lease."""
        self._do(self._listen())

    async def _listen(self) -> None:
        greeted = [asyncio.Event() for _ in self.crowd.agents]
        for place, token, told in zip(self.crowd.channels, self.crowd.agents, greeted, strict=True):
            self._listening.append(asyncio.create_task(self._receiver(place, token, told), name=f"receiver-{place}"))
        for told in greeted:
            await told.wait()

    async def _receiver(self, place: str, token: str, told: asyncio.Event) -> None:
        hello = {"t": "hello", "resume": None, "channel": place, "types": ["message.created", "message.cancel"]}
        url = self.url.replace("http", "ws", 1) + "/api/v1/ws"
        headers = {"authorization": f"Bearer {token}"}
        async with (
            Rest(self.url, token) as rest,
            sockets.connect(url, additional_headers=headers, proxy=None, compression=None) as socket,
        ):
            await socket.send(json.dumps(hello))
            await socket.recv()
            while True:
                await Hub(rest).take_lease(
                    channel=place, holder="h", subscription=None, session=None, runtime="benchmark", state="ready"
                )
                told.set()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LEASE_SECONDS):
                        while True:
                            await socket.recv()

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _hang_up(self) -> None:
        for task in self._listening:
            task.cancel()
        await asyncio.gather(*self._listening, return_exceptions=True)

    def close(self) -> None:
        self._do(self._hang_up())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
        self.process.terminate()
        self.process.wait(20)


@contextlib.contextmanager
def running(crowd: Crowd, *, receivers: bool = True) -> Iterator[Running]:
    """The hub over this data, for a while."""
    made = Running(crowd)
    try:
        if receivers:
            made.receivers()
        yield made
    finally:
        made.close()
