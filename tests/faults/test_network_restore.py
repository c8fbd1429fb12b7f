"""The hub is restored from yesterday's backup under a working receiver: healed, and nothing is lost in silence."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support_world import World, until, world

from relay_receiver.client import enrol, profiles
from relay_receiver.receiver import verbs
from relay_receiver.receiver.target import Target


@pytest.fixture
def w(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


def back_up(w: World) -> Path:
    """A copy of the hub's data, as of now."""
    w.kill_hub()
    copy = w.data.with_name("backup")
    shutil.copytree(w.data, copy)
    w.start_hub()
    return copy


def restore(w: World, copy: Path) -> None:
    """The hub is what it was then."""
    w.kill_hub()
    shutil.rmtree(w.data)
    shutil.copytree(copy, w.data)
    w.start_hub()


def needs(bob: Target) -> list[str]:
    return [each["what"] for each in verbs.status(bob)["needsPerson"]]


def test_results_that_the_hub_lost_are_posted_again_while_nobody_says_anything(w: World) -> None:
    bob = w.agent("bob")
    verbs.start(bob)
    asked = w.ask(bob, "hold=a task=early")
    w.until_stage(asked["id"], "running")
    copy = back_up(w)
    assert w.results(asked["id"]) == []
    w.release("a")
    w.until_stage(asked["id"], "answered")
    lost = w.ask(bob, "task=lost")
    w.until_stage(lost["id"], "answered")
    restore(w, copy)
    until(lambda: w.results(asked["id"]), what="the result again")
    assert [each["content"] for each in w.results(asked["id"])] == ["did early"]
    w.until_stage(asked["id"], "answered")
    again = w.ask(bob, "task=later")
    w.until_stage(again["id"], "answered")
    assert len(w.starts()) == 3
    assert needs(bob) == []


def test_a_job_whose_run_the_hub_has_forgotten_is_answered_all_the_same(w: World) -> None:
    bob = w.agent("bob")
    asked = w.ask(bob, "hold=a task=early")
    copy = back_up(w)
    verbs.start(bob)
    w.until_stage(asked["id"], "running")
    restore(w, copy)
    until(lambda: verbs.status(bob)["lease"]["state"] == "held", what="the lease")
    w.release("a")
    w.until_stage(asked["id"], "answered")
    assert [each["content"] for each in w.results(asked["id"])] == ["did early"]
    assert len(w.starts()) == 1


def test_a_receiver_that_the_hub_has_never_heard_of_subscribes_again(w: World) -> None:
    invite = w.do("owner", lambda hub: hub.invite(w.channel))
    asyncio.run(enrol.enrol(w.url, invite["code"], name="bob", profile="bob"))
    copy = back_up(w)
    bob = w.bind("bob")
    verbs.start(bob)
    first = w.ask(bob, "task=first")
    w.until_stage(first["id"], "answered")
    restore(w, copy)
    asked = w.ask(bob, "hold=a task=second")
    other = w.ask(bob, "task=third")
    w.until_stage(other["id"], "received")
    w.release("a")
    w.until_stage(asked["id"], "answered")
    w.until_stage(other["id"], "answered")


def test_a_receiver_that_joined_after_the_backup_is_told_to_join_again(w: World) -> None:
    copy = back_up(w)
    bob = w.agent("bob")
    verbs.start(bob)
    w.ask(bob, "task=first")
    until(lambda: [each["state"] for each in verbs.jobs(bob)["jobs"]] == ["done"], what="the end of the job")
    restore(w, copy)
    until(lambda: verbs.status(bob)["state"] == "unauthorized", what="the refusal")
    assert "relay connect" in next(each["next"] for each in verbs.status(bob)["needsPerson"])
    assert verbs.jobs(bob)["jobs"][0]["state"] == "done"


def test_what_a_person_decided_is_not_done_again_and_its_outcome_is_told_again(w: World) -> None:
    bob = w.agent("bob", chain_limit=0)
    w.agent("eve")
    verbs.start(bob)
    w.ask(bob, "task=chained", by="eve")
    until(lambda: verbs.status(bob)["chain"]["paused"], what="the pause")
    agent = profiles.load("bob").agent
    said = {"channel": w.channel, "agent": agent, "action": "resume", "arguments": {}}

    def decide(number: int) -> dict[str, Any]:
        return w.do("owner", lambda hub: hub.create_control(**said, operation=f"op-{number}"))

    def outcome(control: dict[str, Any]) -> str | None:
        found = w.do("owner", lambda hub: hub.control(control["id"]))["outcome"]
        return None if found is None else str(found)

    reported = "the pause at the hub"
    until(lambda: w.do("owner", lambda hub: hub.receivers())[0]["report"]["chain"]["paused"], what=reported)
    verbs.stop(bob)
    made = decide(1)
    copy = back_up(w)
    assert outcome(made) is None
    verbs.start(bob)
    assert until(lambda: outcome(made), what="the outcome") == "done"
    restore(w, copy)
    assert until(lambda: outcome(made), what="the outcome again") == "done"
    (job,) = verbs.jobs(bob)["jobs"]
    history = verbs.job(bob, job["id"])["history"]
    by = f"{made['by']['name']} ({made['by']['id']}) in the console"
    assert [each["who"] for each in history if "in the console" in each["who"]] == [by]
