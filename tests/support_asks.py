"""Requests to people at a hub's store: a desk with a person, an agent and its job."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support_hubstore import Desk, Json, desk

from relay_receiver.hub import asks
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.errors import Refusal
from relay_receiver.wire.action import action_hash

ACTION: Json = {"type": "command", "command": ["make", "release"], "cwd": "/srv/app"}
HASH = action_hash(ACTION)
ACCEPT = {"decision": "accept"}
DECLINE = {"decision": "decline"}


class AskDesk:
    """`owner` and `ann` are people, `bob` is an agent, all in the channel; bob has the lease."""

    def __init__(self, of: Desk) -> None:
        self.desk = of
        self.ann = of.agent("ann", person=True)
        self.bob = of.agent("bob")
        self.fence = of.take("bob")["fence"]

    def who(self, name: str | Actor) -> Actor:
        return self.desk.actor(name) if isinstance(name, str) else name

    def ask(self, by: str | Actor = "bob", kind: str = "approval", **more: Any) -> Json:
        said: Json = {"title": "Release?", "operation": secrets.token_hex(8), "channel": self.desk.lab, "kind": kind}
        if kind == "approval":
            said["action"] = ACTION
        return dict(self.desk.do(asks.create, self.who(by), asks.Wish(**{**said, **more})))

    def respond(self, by: str | Actor, request: str, answer: Any, shown: str | None = None) -> Json:
        return dict(self.desk.do(asks.respond, self.who(by), request, answer, shown))

    def close(self, by: str | Actor, request: str, state: str, reason: str | None = None) -> Json:
        return dict(self.desk.do(asks.close, self.who(by), request, state, reason))

    def get(self, request: str, by: str | Actor = "owner") -> Json:
        return dict(self.desk.store.read_now(asks.get, self.who(by), request, at=self.desk.now))

    def listed(self, by: str | Actor = "owner", **more: Any) -> list[str]:
        found = self.desk.store.read_now(asks.list_asks, self.who(by), at=self.desk.now, **more)
        return [each["id"] for each in found]

    def needs(self, by: str | Actor) -> list[str]:
        return [each["id"] for each in self.desk.store.read_now(asks.needs, self.who(by), self.desk.now)]

    def expire(self) -> int:
        return int(self.desk.store.write_now(asks.expire, self.desk.now))

    def job(self, name: str = "j1") -> tuple[str, Actor]:
        """A request to bob whose run is open, and the actor that its job credential makes."""
        message = self.desk.ask(self.bob)["id"]
        ref = self.desk.ref(name, fence=self.fence, claim=f"claim-{name}")
        _, token = self.desk.begin("bob", message, ref)
        return message, self.desk.bearer(token)

    def events(self) -> list[tuple[str, str, str]]:
        """Type, request and state of each event about requests."""
        return [
            (kind, data["request"]["id"], data["request"]["state"])
            for kind in ("request.created", "request.updated")
            for data in self.desk.events(kind)
        ]


@contextmanager
def ask_desk(path: Path) -> Iterator[AskDesk]:
    with desk(path) as of:
        yield AskDesk(of)


@contextmanager
def refused(status: int, code: str) -> Iterator[Any]:
    """The block is refused so."""
    with pytest.raises(Refusal) as caught:
        yield caught
    assert (caught.value.status, caught.value.code) == (status, code)
