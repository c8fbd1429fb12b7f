"""Whom a message would wake: asked before it is sent, with what is in the way."""

from typing import Any

import pytest
from sqlalchemy import func, select
from support_hubstore import Desk

from relay_receiver.hub import messages, wakes
from relay_receiver.hub.errors import Refusal
from relay_receiver.hub.tables import event


def rehearse(hub: Desk, by: str, content: str = "hello", **more: Any) -> list[dict[str, Any]]:
    draft = messages.Draft(channel=hub.lab, content=content, operation="dry", **{"kind": "message", **more})
    return hub.store.read_now(wakes.of, hub.store, hub.actor(by), draft)


def names(told: list[dict[str, Any]]) -> list[str]:
    return [each["name"] for each in told if each["wakes"]]


def test_a_request_wakes_whom_it_is_to_and_says_what_is_in_the_way(hub: Desk) -> None:
    bob = hub.agent("bob")
    [told] = rehearse(hub, "owner", kind="request", to=bob)
    assert (told["wakes"], told["runs"], told["state"]) == (True, False, None)
    assert (told["reason"], told["detail"]) == ("offline", "it has no receiver yet")
    hub.take("bob")
    [told] = rehearse(hub, "owner", kind="request", to=bob)
    assert (told["wakes"], told["runs"], told["state"], told["reason"]) == (True, True, "ready", None)
    assert (told["wake"], told["position"]) == ("addressed", 0)


def test_nothing_is_stored(hub: Desk) -> None:
    bob = hub.agent("bob")
    counted = select(func.count()).select_from(event)
    before = hub.store.read_now(lambda conn: conn.execute(counted).scalar_one())
    rehearse(hub, "owner", kind="request", to=bob)
    assert hub.store.read_now(lambda conn: conn.execute(counted).scalar_one()) == before


def test_a_mention_in_the_text_wakes_and_others_are_not_named(hub: Desk) -> None:
    hub.agent("bob")
    hub.agent("carl")
    assert names(rehearse(hub, "owner", "@bob look")) == ["bob"]
    assert rehearse(hub, "owner", "no one") == []


def test_the_setting_that_a_receiver_told_decides(hub: Desk) -> None:
    bob = hub.agent("bob")
    hub.agent("carl")
    hub.take("carl", report={"wake": "all"})
    assert names(rehearse(hub, "owner", "chat")) == ["carl"]
    assert names(rehearse(hub, "carl", "chat")) == []
    hub.take("bob", report={"wake": "manual"})
    [told] = [each for each in rehearse(hub, "owner", kind="request", to=bob) if each["name"] == "bob"]
    assert (told["wakes"], told["wake"], told["reason"]) == (False, "manual", "manual")


def test_a_receiver_that_is_gone_is_woken_as_it_last_said(hub: Desk) -> None:
    hub.agent("carl")
    hub.take("carl", report={"wake": "all"})
    hub.store.live.leases.clear()
    [told] = rehearse(hub, "owner", "chat")
    assert (told["wakes"], told["runs"], told["reason"]) == (True, False, "offline")


def test_what_would_be_before_it_is_counted(hub: Desk) -> None:
    bob = hub.agent("bob")
    hub.take("bob")
    hub.ask(bob)
    hub.ask(bob)
    [told] = rehearse(hub, "owner", kind="request", to=bob)
    assert told["position"] == 2


def test_people_are_told_as_people(hub: Desk) -> None:
    pat = hub.agent("pat", person=True)
    [told] = rehearse(hub, "owner", kind="request", to=pat)
    assert (told["kind"], told["wakes"], told["reason"]) == ("human", False, "person")


def test_nobody_wakes_themselves(hub: Desk) -> None:
    bob = hub.agent("bob")
    hub.take("bob", report={"wake": "all"})
    assert rehearse(hub, "bob", "@bob remember", mentions=(bob,)) == []


def test_what_would_be_refused_is_refused(hub: Desk) -> None:
    hub.agent("bob")
    for wrong in ({"kind": "request"}, {"to": "nobody"}, {"mentions": ("nobody",)}, {"reply_to": "nothing"}):
        with pytest.raises(Refusal) as refusal:
            rehearse(hub, "owner", **wrong)
        assert refusal.value.status == 422
    elsewhere = messages.Draft(channel="nowhere", content="x", kind="message", operation="dry")
    with pytest.raises(Refusal) as refusal:
        hub.store.read_now(wakes.of, hub.store, hub.actor("owner"), elsewhere)
    assert refusal.value.status == 404


def test_after_a_message_was_stored_those_woken_by_everything_are_told(hub: Desk) -> None:
    bob = hub.agent("bob")
    carl = hub.agent("carl")
    hub.take("carl", report={"wake": "all"})

    def after(stored: dict[str, Any]) -> list[Any]:
        return wakes.after(hub.store, stored)

    assert after(hub.post("owner", "chat")) == [{"id": carl, "name": "carl", "receiver": "ready"}]
    assert after(hub.post("carl", "chat")) == []
    assert [each["id"] for each in after(hub.post("owner", "@bob hi"))] == [bob, carl]
    assert [each["id"] for each in after(hub.ask(bob))] == [bob]
    assert after(hub.answer("bob", hub.ask(bob)["id"])) == []
