"""A request to people survives kill -9 of the hub before and after each of its commits: asked once, answered once."""

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from support_cli import Machine, machine
from support_time import WITHIN

from relay_receiver.client import profiles
from relay_receiver.wire.action import action_hash
from relay_receiver.wire.message import iso

ACTION = {"kind": "command", "command": "make release", "cwd": "/srv"}
ACCEPT = {"answer": {"decision": "accept"}, "actionHash": action_hash(ACTION)}
TYPES = "request.created,request.updated"


class Place:
    """A hub that can be told to kill itself at a point, a person and an agent of it."""

    def __init__(self, here: Machine, faults: Path) -> None:
        self.here, self.faults = here, faults
        faults.mkdir()
        self.url = ""
        self.pid = 0
        self.start("0")
        invite = here.ok("channels", "create", "lab")["invite"]
        here.ok("connect", f"{self.url}#{invite['code']}", "--name", "bob")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("RELAY_HOME", str(here.home))
            self.tokens = {name: profiles.load(name).token() for name in ("default", "bob")}
            self.lab = profiles.load("bob").channels[0][0]

    def start(self, port: str) -> None:
        told = self.here.ok("hub", "start", "--port", port, RELAY_FAULTS=str(self.faults))
        self.url, self.pid = told["url"], told["pid"]

    def plan(self, point: str) -> None:
        """Have the hub kill itself when it comes to that point."""
        whole = self.faults / "plan.new"
        whole.write_text(json.dumps({"point": point, "do": "kill"}))
        whole.rename(self.faults / "plan")

    def revive(self) -> None:
        """Wait until the hub is dead, then start it anew."""
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(self.pid).wait(WITHIN)
        assert not (self.faults / "plan").exists()
        self.start(self.url.rpartition(":")[2])

    def call(self, who: str, method: str, path: str, body: Any = None, **params: Any) -> Any:
        headers = {"authorization": f"Bearer {self.tokens[who]}"}
        with httpx.Client(trust_env=False, timeout=WITHIN, headers=headers) as client:
            answer = client.request(method, f"{self.url}/api/v1{path}", json=body, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def ask(self, operation: str, **more: Any) -> Any:
        said = {"channel": self.lab, "kind": "approval", "title": "Release?", "action": ACTION, **more}
        return self.call("bob", "POST", "/requests", {**said, "operationId": operation})

    def events(self, cursor: str, request: str) -> list[str]:
        """The states that were told of a request since, in order."""
        found = self.call("default", "GET", "/updates", wait=1, cursor=cursor, types=TYPES)["events"]
        return [each["data"]["request"]["state"] for each in found if each["data"]["request"]["id"] == request]

    def cursor(self) -> str:
        return str(self.call("default", "GET", "/state")["cursor"])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    path = tmp_path_factory.mktemp("requests-killed")
    with machine(path / "home") as here:
        yield Place(here, path / "faults")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("verb", ["create", "respond", "close"])
def test_the_same_call_again_is_the_same_as_once(place: Place, verb: str, when: str) -> None:
    cursor, name = place.cursor(), f"{verb}.{when}"

    def act() -> Any:
        if verb == "create":
            return place.ask(name)
        if verb == "respond":
            return place.call("default", "POST", f"/requests/{request}/respond", ACCEPT)
        return place.call("bob", "POST", f"/requests/{request}/close", {"state": "superseded"})

    request = "" if verb == "create" else place.ask(name)["id"]
    place.plan(f"hub.{verb}.{when}")
    with pytest.raises(httpx.TransportError):
        act()
    place.revive()
    first = act()
    assert act() == first
    state = {"create": "open", "respond": "answered", "close": "superseded"}[verb]
    assert first["state"] == state
    asked = place.call("default", "GET", "/requests", state="all")["requests"]
    assert [each["id"] for each in asked if each["operationId"] == name] == [first["id"]]
    assert place.events(cursor, first["id"]) == (["open"] if verb == "create" else ["open", state])


def _soon_over(place: Place, name: str) -> str:
    """A request that expires as soon as this machine is quick enough to make one."""
    for ahead in (1, 4, 16, WITHIN):
        with contextlib.suppress(AssertionError):
            return str(place.ask(f"{name}.{ahead}", expiresAt=iso(time.time() + ahead))["id"])
    raise AssertionError("this machine is too slow")


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_request_expires_once(place: Place, when: str) -> None:
    cursor = place.cursor()
    place.plan(f"hub.expire.{when}")
    request = _soon_over(place, f"expire.{when}")
    place.revive()
    states: list[str] = []
    end = time.monotonic() + WITHIN
    while "expired" not in states and time.monotonic() < end:
        states = place.events(cursor, request)
    assert states == ["open", "expired"]
    assert place.call("default", "GET", f"/requests/{request}")["state"] == "expired"
