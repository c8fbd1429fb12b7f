"""A real hub in a thread of the test: its own database, a socket on a free port, members made through its store."""

import asyncio
import contextlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from support_time import WITHIN
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from relay_receiver.hub import channels, enrolment, events
from relay_receiver.hub.app import App, build
from relay_receiver.hub.auth import Actor, digest, find
from relay_receiver.hub.listen import listen
from relay_receiver.hub.options import HubOptions
from relay_receiver.hub.serve import Server
from relay_receiver.hub.store import Store


@dataclass(frozen=True, kw_only=True)
class Member:
    """Somebody with a membership token; `http` carries it."""

    id: str
    token: str
    identity: str
    http: httpx.Client

    def get(self, path: str, **params: Any) -> Any:
        return good(self.http.get(path, params=params))

    def post(self, path: str, body: Any) -> Any:
        return good(self.http.post(path, json=body))

    def patch(self, path: str, body: Any) -> Any:
        return good(self.http.patch(path, json=body))


def good(answer: httpx.Response) -> Any:
    assert answer.status_code < 300, answer.text
    return answer.json() if answer.content else None


class LiveHub:
    """Runs between `start` and `stop`; the same path again is the same hub."""

    def __init__(self, path: Path, **options: Any) -> None:
        path.mkdir(mode=0o700, exist_ok=True)
        self.path = path
        self.options = HubOptions(**options)
        self.store: Store
        self.app: App
        self.url = ""
        self.workspace = ""
        self._clients: list[httpx.Client] = []

    def start(self) -> "LiveHub":
        self.store = Store.open(self.path)
        self.app = build(self.store, self.options)
        place = listen("127.0.0.1", 0, allow_host=(), tls_cert=None, tls_key=None, plain_http=False)
        bound, self.url = place.socket, place.url
        listening = threading.Event()
        self.server = Server(self.app, self.options, ready=listening.set)
        self._thread = threading.Thread(target=lambda: asyncio.run(self.server.serve(sockets=[bound])))
        self._thread.start()
        assert listening.wait(WITHIN)
        return self

    def stop(self) -> None:
        for client in self._clients:
            client.close()
        self._clients.clear()
        self.server.stop()
        self._thread.join(WITHIN)
        assert not self._thread.is_alive()
        self.store.close()

    def write(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        """Have the hub's own loop write, as its handlers do."""
        loop = self.server._loop
        assert loop is not None
        return asyncio.run_coroutine_threadsafe(self.store.write(fn, *args, **kwargs), loop).result(WITHIN)

    def owner(self) -> Member:
        code = self.write(enrolment.owner_code, at=time.time()).code
        return self.join(code, "owner")

    def agent(self, owner: Member, channel: str, name: str, *, person: bool = False) -> Member:
        code = self.write(enrolment.invite, self.actor(owner), channel, person=person, at=time.time()).code
        return self.join(code, name)

    def join(self, code: str, name: str) -> Member:
        token, identity = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        made = self.write(
            enrolment.enroll, code=code, client_secret=token, identity_secret=identity, name=name, at=time.time()
        )
        self.workspace = made["workspace"]
        return self.member(made["agentId"], token, identity)

    def member(self, who: str, token: str, identity: str) -> Member:
        client = httpx.Client(
            base_url=self.url + "/api/v1",
            headers={"authorization": f"Bearer {token}"},
            trust_env=False,
            timeout=WITHIN,
        )
        self._clients.append(client)
        return Member(id=who, token=token, identity=identity, http=client)

    def actor(self, member: Member) -> Actor:
        found = self.store.read_now(find, digest(member.token))
        assert found is not None
        return found

    def channel(self, owner: Member, name: str = "lab") -> str:
        return str(self.write(channels.create, self.actor(owner), name, at=time.time())["id"])

    def event(self, channel: str | None, what: str, *, kind: str = "message.created", size: int = 0) -> int:
        """Commit one event of our own; returns its number."""
        data = {"message": {"content": what + "x" * size}}
        return int(self.write(events.append, self.workspace, kind, data, channel=channel, at=time.time()))

    @contextlib.contextmanager
    def socket(self, member: Member, **hello: Any) -> Iterator["Talk"]:
        """A greeted socket; the first frame is still to be read."""
        with self.raw_socket(member) as talk:
            talk.say(t="hello", **{"resume": None, **hello})
            yield talk

    @contextlib.contextmanager
    def raw_socket(self, member: Member, **options: Any) -> Iterator["Talk"]:
        url = self.url.replace("http", "ws") + "/api/v1/ws"
        headers = {"authorization": f"Bearer {member.token}"}
        with connect(url, additional_headers=headers, proxy=None, compression=None, **options) as connection:
            yield Talk(connection)


class Talk:
    """Frames of one socket."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    def say(self, **frame: Any) -> None:
        self.connection.send(json.dumps(frame))

    def frame(self, *, seconds: float = WITHIN) -> dict[str, Any]:
        found = json.loads(self.connection.recv(timeout=seconds))
        assert isinstance(found, dict)
        return found

    def rest(self, *, seconds: float = WITHIN) -> tuple[list[dict[str, Any]], int]:
        """All frames until the hub closes, and its close code."""
        frames: list[dict[str, Any]] = []
        try:
            while True:
                frames.append(self.frame(seconds=seconds))
        except ConnectionClosed as end:
            return frames, end.rcvd.code if end.rcvd else 1006

    def batch(self, *, seconds: float = WITHIN) -> tuple[list[dict[str, Any]], str]:
        """Events up to the next cursor frame, and that cursor."""
        events: list[dict[str, Any]] = []
        while (frame := self.frame(seconds=seconds))["t"] == "event":
            events.append(frame["event"])
        assert frame["t"] == "cursor", frame
        return events, frame["cursor"]
