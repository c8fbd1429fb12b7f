"""What `relay status` lists: each thing once, with a line that the right person can type."""

from typing import Any

import click
import pytest

from relay_receiver.cli import status
from relay_receiver.cli.looks import Looks, for_receiver
from relay_receiver.client import profiles
from relay_receiver.client.profiles import Profile
from relay_receiver.receiver.target import Target


@pytest.fixture(autouse=True)
def command() -> Any:
    with click.Context(click.Command("status")) as made:
        yield made


def profile(name: str, role: str, *channels: str) -> None:
    made = Profile(
        name=name,
        url="http://127.0.0.1:1",
        workspace="w",
        workspace_name="w",
        agent=f"id-of-{name}",
        agent_name=name,
        role=role,
        channels=tuple((each, each) for each in channels),
    )
    profiles.save(made, token="t")


RECEIVER: dict[str, Any] = {
    "profile": "bob",
    "agent": "b1",
    "agentName": "bob",
    "channel": "c1",
    "channelName": "lab",
    "needsPerson": [],
}


def at_hub(what: str, request: dict[str, Any] | None, who: str = "b1", **more: Any) -> dict[str, Any]:
    said = {"id": what, "what": what, "title": what, "profile": "owner", "next": f"relay x {what}"}
    return {**said, "who": {"id": who, "name": who}, "channel": {"id": "c1", "name": "lab"}, "request": request, **more}


def listed(receiver: dict[str, Any], *at_hubs: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["what"], each["next"]) for each in status._all_needs([receiver], at_hubs)]


def test_an_approval_is_listed_once_as_the_request_for_the_person() -> None:
    profile("owner", "owner")
    profile("bob", "agent")
    need = {"what": "approval", "job": "j", "request": "r1", "title": "ls", "next": "relay requests show r1"}
    here = {**RECEIVER, "needsPerson": [need]}
    at = at_hub("approval", {"id": "r1"}, next="relay requests show r1")
    assert listed(here, at) == [("approval", "relay requests show r1 --profile owner")]
    assert [each for each, _ in listed(here)] == ["approval"]
    assert for_receiver("relay requests show r1", here) == "relay requests show r1 --profile owner"


def test_a_receiver_of_this_machine_is_not_listed_again_by_its_report() -> None:
    here = {**RECEIVER, "needsPerson": [{"what": "paused", "next": "relay receiver resume"}]}
    assert listed(here, at_hub("paused", None)) == [("paused", "relay receiver resume")]
    assert [each for each, _ in listed(here, at_hub("paused", None, who="another"))] == ["paused", "paused"]


def test_a_line_is_aimed_where_there_are_several() -> None:
    profile("bob", "agent", "lab")
    assert for_receiver("relay receiver resume", RECEIVER) == "relay receiver resume"
    profile("bob", "agent", "lab", "ops")
    assert for_receiver("relay receiver resume", RECEIVER) == "relay receiver resume --channel lab"
    profile("ann", "agent", "lab")
    assert for_receiver("relay receiver resume", RECEIVER) == "relay receiver resume --channel lab --profile bob"
    (profiles.paths.profile_dir("bob") / "profile.json").write_text("{")
    assert for_receiver("relay receiver resume", RECEIVER).startswith("relay receiver resume")


class Machine:
    """Receivers that answer, or never do."""

    def __init__(self) -> None:
        self.now = 100.0
        self.state = "running"
        self.asked = 0

    def listed(self) -> dict[str, Any]:
        facts = {"profile": "bob", "workspace": "w", "channel": "c1", "pid": 7 if self.state == "running" else None}
        return {"receivers": [{**facts, "state": self.state}]}

    def status(self, _: Target) -> dict[str, Any]:
        self.asked += 1
        if self.state == "broken":
            raise ValueError("broken")
        return {"state": "ready" if self.state == "running" else "stopped"}

    def looks(self) -> Looks:
        return Looks(status=self.status, listed=self.listed, clock=lambda: self.now)


def test_a_stopped_receiver_is_looked_at_seldom_and_at_once_when_it_changes() -> None:
    machine = Machine()
    looks = machine.looks()
    looks.ask()
    assert looks.wait()[0]["state"] == "ready"
    machine.state = "stopped"
    for _ in range(5):
        looks.ask()
        assert looks.wait()[0]["state"] == "stopped"
    assert machine.asked == 2
    machine.now += 16
    looks.ask()
    looks.wait()
    assert machine.asked == 3
    machine.state = "running"
    looks.ask()
    assert looks.wait()[0]["state"] == "ready"


def test_whatever_a_look_fails_with_is_shown() -> None:
    machine = Machine()
    machine.state = "broken"
    looks = machine.looks()
    looks.ask()
    [found] = looks.wait()
    assert (found["state"], found["needsPerson"][0]["what"]) == ("silent", "silent")
    assert "broken" in found["lastError"]
