import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from support_hub import LiveHub, Member
from support_time import WITHIN

from relay_receiver.hub import channels, events, updates
from relay_receiver.hub.store import Store


def later(call: Any) -> list[Any]:
    """Run a held poll beside the test; its answer is the first entry once joined."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()
    found.append(thread)
    return found


@pytest.fixture
def held_for_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    """What answers a poll in this test is not the end of its time."""
    monkeypatch.setattr(updates, "POLL_SECONDS", (1, 3600))


@pytest.mark.usefixtures("held_for_an_hour")
def test_a_held_poll_is_answered_by_the_next_event(hub: LiveHub, owner: Member, lab: str) -> None:
    cursor = owner.get("/updates", wait=1)["cursor"]
    poll = later(lambda: owner.get("/updates", wait=3600, cursor=cursor, channel=lab))
    while not hub.app.feed.stream(hub.workspace).all:
        assert poll[0].is_alive()
    number = hub.event(lab, "hello")
    poll[0].join(WITHIN)
    assert [each["id"] for each in poll[1]["events"]] == [number]
    again = owner.get("/updates", wait=1, cursor=poll[1]["cursor"])
    assert again == {"cursor": poll[1]["cursor"], "events": []}


def test_polling_loses_and_repeats_nothing(hub: LiveHub, owner: Member, lab: str) -> None:
    cursor = owner.get("/updates", wait=1)["cursor"]
    numbers: list[int] = []
    posting = threading.Thread(target=lambda: numbers.extend(hub.event(lab, str(n)) for n in range(500)))
    posting.start()
    seen: list[int] = []
    while posting.is_alive() or seen[-1:] != numbers[-1:]:
        batch = owner.get("/updates", wait=1, cursor=cursor, types="message.created")
        cursor = batch["cursor"]
        seen += [each["id"] for each in batch["events"]]
    posting.join()
    assert seen == numbers


def test_socket_and_poll_take_each_others_cursors(hub: LiveHub, owner: Member, lab: str) -> None:
    with hub.socket(owner, channel=lab) as talk:
        talk.frame()
        hub.event(lab, "by socket")
        _, cursor = talk.batch()
    number = hub.event(lab, "by poll")
    batch = owner.get("/updates", wait=1, cursor=cursor)
    assert [each["id"] for each in batch["events"]] == [number]
    with hub.socket(owner, resume=batch["cursor"]) as talk:
        assert talk.frame() == {"t": "ready", "cursor": batch["cursor"]}


def test_a_restored_hub_tells_that_it_diverged(hub: LiveHub, owner: Member, lab: str) -> None:
    hub.event(lab, "before the backup")
    hub.stop()
    shutil.copytree(hub.path, hub.path.with_name("backup"))
    hub.start()
    owner = hub.member(owner.id, owner.token, owner.identity)
    lost = hub.event(lab, "after the backup")
    cursor = owner.get("/updates", wait=1, cursor=str(lost - 1))["cursor"]
    assert cursor.startswith(f"{lost}.")
    hub.stop()
    shutil.rmtree(hub.path)
    hub.path.with_name("backup").rename(hub.path)
    hub.start()
    owner = hub.member(owner.id, owner.token, owner.identity)
    ahead = owner.http.get("/updates", params={"cursor": cursor, "wait": 1})
    assert (ahead.status_code, ahead.json()["code"]) == (409, "diverged")
    assert hub.event(lab, "another of that number") == lost
    tagged = owner.http.get("/updates", params={"cursor": cursor, "wait": 1})
    assert (tagged.status_code, tagged.json()["code"]) == (409, "diverged")
    with hub.socket(owner, channel=lab, resume=cursor) as talk:
        assert talk.frame() == {"t": "reset", "reason": "diverged"}


def test_a_cursor_behind_what_is_kept_has_expired(hub: LiveHub, owner: Member, lab: str) -> None:
    for n in range(5):
        hub.event(lab, str(n))
    hub.write(events.prune, hub.workspace, now=time.time(), keep=2)
    hub.stop()
    hub.start()
    owner = hub.member(owner.id, owner.token, owner.identity)
    answer = owner.http.get("/updates", params={"cursor": "1", "wait": 1})
    assert (answer.status_code, answer.json()["code"]) == (409, "cursor_expired")
    with hub.socket(owner, channel=lab, resume="1") as talk:
        assert talk.frame() == {"t": "reset", "reason": "cursor_expired"}


def test_a_channel_joined_during_a_poll_is_not_missed(hub: LiveHub, owner: Member, lab: str) -> None:
    bob = hub.agent(owner, lab, "bob")
    other = hub.channel(owner, "other")
    cursor = bob.get("/updates", wait=1)["cursor"]
    poll = later(lambda: bob.get("/updates", wait=25, cursor=cursor, types="message.created"))
    while not hub.app.feed.stream(hub.workspace).all:
        assert poll[0].is_alive()
    hub.write(channels.join, hub.workspace, other, bob.id, at=time.time())
    first = hub.event(other, "in the new one")
    second = hub.event(lab, "in the old one")
    poll[0].join(WITHIN)
    seen = [each["id"] for each in poll[1]["events"]]
    if second not in seen:
        seen += [each["id"] for each in bob.get("/updates", wait=1, cursor=poll[1]["cursor"])["events"]]
    assert [each for each in seen if each in {first, second}] == [first, second]


def test_a_poll_ends_with_its_membership(hub: LiveHub, owner: Member, lab: str) -> None:
    bob = hub.agent(owner, lab, "bob")
    poll = later(lambda: bob.http.get("/updates", params={"wait": 2, "channel": lab}))
    while not hub.app.feed.stream(hub.workspace).all:
        assert poll[0].is_alive()
    hub.write(channels.leave, hub.actor(bob), lab, at=time.time())
    hub.event(lab, "not for bob any more")
    poll[0].join(WITHIN)
    assert poll[1].status_code == 404


@pytest.mark.usefixtures("held_for_an_hour")
def test_a_poll_of_a_stopping_hub_is_answered_at_once(tmp_path: Path) -> None:
    hub = LiveHub(tmp_path / "other").start()
    owner = hub.owner()
    poll = later(lambda: owner.http.get("/updates", params={"wait": 3600}))
    while not hub.app.feed.stream(hub.workspace).all:
        assert poll[0].is_alive()
    hub.server.stop()
    poll[0].join(WITHIN)
    assert poll[1].status_code == 200
    hub.stop()


def test_acknowledging_an_older_or_the_same_cursor_writes_nothing(
    hub: LiveHub, owner: Member, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = owner.post("/subscriptions", {"type": "message.created", "channel": lab})["id"]
    hub.event(lab, "one")
    first, cursor = owner.get("/inbox")["deliveries"][0]["cursor"], str(hub.event(lab, "two"))
    owner.patch(f"/subscriptions/{made}", {"cursor": cursor})
    writes: list[object] = []
    monkeypatch.setattr(Store, "write", lambda _self, fn, *_a, **_k: writes.append(fn))
    for old in (cursor, first, 0, int(cursor)):
        assert owner.patch(f"/subscriptions/{made}", {"cursor": old})["id"] == made
    assert writes == []


def test_the_inbox_has_an_entry_for_each_subscription_and_says_when_there_is_more(
    hub: LiveHub, owner: Member, lab: str
) -> None:
    empty = owner.post("/subscriptions", {"type": "message.created", "cursor": "0"})["id"]
    full = owner.post("/subscriptions", {"type": "message.created", "channel": lab, "cursor": 0})["id"]
    before = {each["subscription"]: each for each in owner.get("/inbox")["deliveries"]}
    assert before[empty] == {"subscription": empty, "events": [], "cursor": "0", "gap": False, "more": False} | {
        "cursor": before[empty]["cursor"]
    }
    for n in range(205):
        hub.event(lab, str(n))
    page = {each["subscription"]: each for each in owner.get("/inbox")["deliveries"]}[full]
    assert (len(page["events"]), page["more"], page["gap"]) == (200, True, False)
    assert all(isinstance(each["id"], int) and each["data"]["message"] for each in page["events"])
    owner.patch(f"/subscriptions/{full}", {"cursor": page["cursor"]})
    rest = {each["subscription"]: each for each in owner.get("/inbox")["deliveries"]}[full]
    assert (len(rest["events"]), rest["more"]) == (5, False)


def test_a_subscription_of_somebody_else_is_not_there(hub: LiveHub, owner: Member, lab: str) -> None:
    bob = hub.agent(owner, lab, "bob")
    made = owner.post("/subscriptions", {"type": "message.created"})["id"]
    answer = bob.http.patch(f"/subscriptions/{made}", json={"cursor": "1"})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    ahead = owner.http.patch(f"/subscriptions/{made}", json={"cursor": "999999"})
    assert (ahead.status_code, ahead.json()["code"]) == (422, "diverged")


def test_acknowledging_by_the_receivers_subscription_proves_that_a_request_is_received(
    hub: LiveHub, owner: Member, lab: str
) -> None:
    bob = hub.agent(owner, lab, "bob")
    made, other = (bob.post("/subscriptions", {"type": "message.created", "channel": lab})["id"] for _ in range(2))
    lease = {"channel": lab, "holderId": "h", "subscription": made, "sessionId": None, "runtime": "t", "state": "ready"}
    bob.post("/receiver", lease)
    ask = {"channel": lab, "kind": "request", "to": bob.id, "content": "x", "operationId": "op"}
    asked = owner.post("/messages", ask)
    bob.patch(f"/subscriptions/{other}", {"cursor": str(asked["event"])})
    assert owner.get(f"/messages/{asked['id']}")["delivery"]["stage"] == "stored"
    bob.patch(f"/subscriptions/{made}", {"cursor": str(asked["event"])})
    assert owner.get(f"/messages/{asked['id']}")["delivery"]["stage"] == "received"
