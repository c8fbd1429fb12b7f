"""Why a request waits, with proof; what is before it; on whom its job waits."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert
from support_hubstore import Desk, desk

from relay_receiver.hub import asks, channels, delivery, leases, messages, runs
from relay_receiver.hub.errors import Refusal
from relay_receiver.hub.live import Live
from relay_receiver.hub.tables_people import ask
from relay_receiver.wire.reason import Reason, because, why


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
def hub(tmp_path: Path, clock: Time) -> Iterator[Desk]:
    with desk(tmp_path) as made:
        made.store.live = Live(clock=clock)
        made.agent("bob")
        made.agent("ann")
        yield made


def told(hub: Desk, message: str) -> dict[str, Any]:
    found = hub.store.read_now(delivery.of, hub.store, message, at=hub.now)
    assert found is not None
    return found


def reason(hub: Desk, message: str) -> tuple[str | None, str | None]:
    found = told(hub, message)
    return found["reason"], found["detail"]


def test_a_receiver_that_never_was_is_stopped_or_went_away_is_offline_each_in_its_own_words(
    hub: Desk, clock: Time
) -> None:
    asked = hub.ask(hub.actor("bob").id)["id"]
    assert reason(hub, asked) == ("offline", "it has no receiver yet")
    hub.take("bob")
    assert reason(hub, asked) == (None, None)
    clock.now += 31
    assert reason(hub, asked) == ("offline", "its receiver is not connected")
    hub.take("bob", "h")
    hub.store.write_now(leases._release, hub.store, hub.actor("bob"), hub.lab, "h", at=hub.now)
    assert reason(hub, asked) == ("offline", "its receiver is stopped")


def test_whoever_left_the_channel_is_unauthorized(hub: Desk) -> None:
    asked = hub.ask(hub.actor("bob").id)["id"]
    hub.do(channels.leave, hub.actor("bob"), hub.lab)
    assert reason(hub, asked) == ("unauthorized", "it has left the channel")


def test_standby_is_a_silent_holder_while_another_asks_for_the_lease(hub: Desk, clock: Time) -> None:
    asked = hub.ask(hub.actor("bob").id)["id"]
    hub.take("bob", "a")

    def another() -> None:
        with pytest.raises(Refusal, match="Another receiver"):
            hub.take("bob", "b")

    another()
    assert reason(hub, asked) == (None, None)
    clock.now += 16
    assert reason(hub, asked) == (None, None)
    another()
    assert reason(hub, asked)[0] == "standby"
    hub.take("bob", "a")
    assert reason(hub, asked) == (None, None)


def test_the_job_in_hand_is_the_reason_with_its_time_and_that_it_waits_on_a_person(hub: Desk) -> None:
    bob = hub.actor("bob").id
    fence = hub.take("bob")["fence"]
    first, second = hub.ask(bob)["id"], hub.ask(bob)["id"]
    ref = hub.ref("j1", fence=fence, claim="c1")
    hub.begin("bob", first, ref)
    hub.take("bob", state="busy")
    assert reason(hub, second) == ("busy", "it is at another job, since 1970-01-12T13:46:40.000Z")
    hub.do(runs.tell_stage, hub.actor("bob"), ref, state="waiting", detail="on Pat, for ls")
    assert reason(hub, second)[1] == "it is at another job, which waits on a person, since 1970-01-12T13:46:40.000Z"
    assert reason(hub, first) == ("person", "on Pat, for ls")


def test_a_job_that_waits_names_the_request_and_the_people(hub: Desk) -> None:
    bob, pat = hub.actor("bob").id, hub.agent("pat", person=True)
    fence = hub.take("bob")["fence"]
    asked = hub.ask(bob)["id"]
    ref = hub.ref("j1", fence=fence, claim="c1")
    hub.begin("bob", asked, ref)
    run = hub.store.read_now(runs.by_request, bob, hub.lab, "j1")
    assert run is not None
    row = {
        "id": "ask_1",
        "run": run.id,
        "workspace": hub.workspace,
        "channel": hub.lab,
        "author": bob,
        "message": asked,
        "kind": "input",
        "title": "Which one?",
        "approvers": json.dumps([pat]),
        "operation": "o",
        "fingerprint": "f",
        "created_at": hub.now,
        "expires_at": hub.now + 60,
    }
    hub.store.write_now(lambda conn: conn.execute(insert(ask).values(row)) and None)
    hub.do(runs.tell_stage, hub.actor("bob"), ref, state="waiting", detail=None)
    found = told(hub, asked)
    assert found["waitsOn"] == [
        {
            "request": "ask_1",
            "kind": "input",
            "title": "Which one?",
            "approvers": [pat],
            "people": ["pat"],
            "expiresAt": "1970-01-12T13:47:40.000Z",
        }
    ]
    assert found["detail"] == "it waits on pat, for input: Which one?"
    hub.do(asks.close, hub.actor("bob"), "ask_1", "superseded", None)
    assert (told(hub, asked)["reason"], told(hub, asked)["waitsOn"]) == (None, [])


def test_nobody_elses_request_is_shown_as_what_a_job_waits_for(hub: Desk) -> None:
    bob, fence = hub.actor("bob").id, hub.take("bob")["fence"]
    asked = hub.ask(bob)["id"]
    ref = hub.ref("j1", fence=fence, claim="c1")
    hub.begin("bob", asked, ref)
    hub.begin("ann", None, hub.ref("j1", fence=hub.take("ann")["fence"], claim="c2"))
    for job in ("j1", None):
        forged = asks.Wish(
            channel=hub.lab,
            kind="approval",
            title="Push to main",
            operation=f"o{job}",
            action={"command": "rm"},
            job=job,
            message=asked,
        )
        hub.do(asks.create, hub.actor("ann"), forged)
    assert hub.stage(asked) == "starting"
    hub.do(runs.tell_stage, hub.actor("bob"), ref, state="waiting", detail=None)
    assert (told(hub, asked)["detail"], told(hub, asked)["waitsOn"]) == (because(Reason.PERSON, None).detail, [])


def test_an_attempt_that_was_given_back_leaves_no_reason_of_its_own(hub: Desk) -> None:
    bob = hub.actor("bob").id
    fence = hub.take("bob")["fence"]
    asked = hub.ask(bob)["id"]
    ref = hub.ref("j1", fence=fence, claim="c1")
    hub.begin("bob", asked, ref)
    hub.finish("bob", ref, "not-accepted", reason="this attempt did not start")
    refused = {"why": "the usage limit is reached", "nextTry": "2030-01-01T00:00:00.000Z", "code": "usage_limit"}
    hub.take("bob", state="refused", detail="x", report={"refused": refused})
    found = told(hub, asked)
    assert (found["stage"], found["reason"], found["nextTry"]) == ("received", "usage_limit", refused["nextTry"])
    assert found["detail"] == "the usage limit is reached"


def test_a_pause_holds_up_agents_and_people_go_first(hub: Desk) -> None:
    bob = hub.actor("bob").id
    hub.take("bob", state="paused", report={"chain": {"count": 3, "limit": 3, "paused": True}})
    first = hub.ask(bob, by="ann")["id"]
    second = hub.ask(bob, by="ann")["id"]
    people = hub.ask(bob)["id"]
    assert (reason(hub, first)[0], reason(hub, people)[0]) == ("paused", None)
    assert [told(hub, each)["position"] for each in (first, second, people)] == [1, 2, 0]
    hub.store.live.leases.clear()
    assert [told(hub, each)["position"] for each in (first, second, people)] == [1, 2, 0]
    hub.take("bob", state="ready", report={"chain": {"count": 0, "limit": 3, "paused": False}})
    assert [told(hub, each)["position"] for each in (first, second, people)] == [0, 1, 2]


def test_a_job_of_an_ordinary_message_is_before_it_too(hub: Desk) -> None:
    bob = hub.actor("bob").id
    fence = hub.take("bob")["fence"]
    mention = hub.post("owner", "@bob look")["id"]
    hub.begin("bob", mention, hub.ref("j1", fence=fence, claim="c1"))
    asked = hub.ask(bob)["id"]
    assert (told(hub, asked)["position"], reason(hub, asked)[0]) == (1, "busy")


def test_what_has_ended_is_not_before_it(hub: Desk) -> None:
    bob = hub.actor("bob").id
    taken_back, asked = hub.ask(bob)["id"], hub.ask(bob)["id"]
    assert told(hub, asked)["position"] == 1
    hub.do(messages.withdraw, hub.actor("owner"), taken_back)
    assert told(hub, asked)["position"] == 0
    assert told(hub, taken_back)["position"] is None


def test_a_person_is_no_receiver(hub: Desk) -> None:
    asked = hub.ask(hub.agent("pat", person=True))["id"]
    assert reason(hub, asked) == ("person", "it is a person, who answers when they see it")


@pytest.mark.parametrize("word", [each.value for each in Reason if each not in {Reason.MANUAL, Reason.PERSON}])
def test_each_word_of_a_receiver_has_its_sentence(word: str) -> None:
    found = why(word, None, {}, by_agent=True, taken=False)
    assert found.reason == word
    assert found.detail
    assert why(word, "its own words", {}, by_agent=True, taken=False).detail == "its own words"


def test_a_word_that_nobody_knows_is_passed_on() -> None:
    assert why("dreaming", None, {}, by_agent=False, taken=False).reason == "dreaming"


def test_manual_is_the_reason_unless_the_queue_has_it() -> None:
    report = {"wake": "manual", "queue": {"queued": 1, "received": 0}}
    assert why("ready", None, report, by_agent=False, taken=True).reason is None
    assert why("ready", None, report, by_agent=False, taken=False).reason == "manual"
    assert why("ready", None, {"wake": "manual"}, by_agent=False, taken=True).reason == "manual"
