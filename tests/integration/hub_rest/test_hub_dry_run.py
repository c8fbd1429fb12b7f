"""`POST /messages` with `dryRun`: whom it would wake, over HTTP, for people, agents and jobs; nothing is stored."""

from typing import Any

import pytest
from support_hub import LiveHub, Member, good


def take(who: Member, lab: str, **more: Any) -> Any:
    said = {"channel": lab, "holderId": "h", "sessionId": None, "runtime": "test", "state": "ready"}
    return who.post("/receiver", {**said, **more})


def rehearse(who: Member, lab: str, **more: Any) -> Any:
    return who.post("/messages", {"channel": lab, "content": "hello", "dryRun": True, **more})["wakes"]


def test_it_names_each_that_would_be_woken_and_stores_nothing(
    hub: LiveHub, owner: Member, bob: Member, lab: str
) -> None:
    ann = hub.agent(owner, lab, "ann")
    take(ann, lab, report={"wake": "all"})
    head = owner.get("/state")["cursor"]
    told = rehearse(owner, lab, content="@bob look")
    assert [(each["name"], each["wakes"], each["runs"]) for each in told] == [("ann", True, True), ("bob", True, False)]
    assert [each["name"] for each in rehearse(bob, lab, kind="request", to=ann.id)] == ["ann"]
    assert owner.get("/state")["cursor"] == head
    assert owner.get("/messages", channel=lab)["messages"] == []


def test_its_operation_id_is_neither_needed_nor_used_up(owner: Member, bob: Member, lab: str) -> None:
    rehearse(owner, lab, kind="request", to=bob.id, operationId="op")
    sent = owner.post("/messages", {"channel": lab, "content": "other", "operationId": "op"})
    assert sent["content"] == "other"
    assert sent["wakes"] == []


def test_a_job_may_ask_too_in_its_own_channel(hub: LiveHub, owner: Member, bob: Member, lab: str) -> None:
    ann = hub.agent(owner, lab, "ann")
    asked = owner.post(
        "/messages", {"channel": lab, "content": "x", "kind": "request", "to": bob.id, "operationId": "a"}
    )
    fence = take(bob, lab)["fence"]
    run = {"channel": lab, "holderId": "h", "requestId": "j", "action": "begin", "fence": fence, "message": asked["id"]}
    begun = good(bob.http.post("/receiver/run", json={**run, "attempt": 1, "claim": "c"}))
    headers = {"authorization": f"Bearer {begun['credential']}"}
    body = {"channel": lab, "content": "y", "kind": "request", "to": ann.id, "dryRun": True}
    assert good(bob.http.post("/messages", headers=headers, json=body))["wakes"][0]["name"] == "ann"
    other = hub.channel(owner, "other")
    refused = bob.http.post("/messages", headers=headers, json={**body, "channel": other})
    assert refused.status_code == 404


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        ({"dryRun": "yes"}, 422),
        ({"kind": "request"}, 422),
        ({"to": "nobody"}, 422),
        ({"channel": "nowhere"}, 404),
        ({"content": 7}, 422),
        ({"expiresAt": "soon"}, 422),
    ],
)
def test_what_could_not_be_sent_is_refused(owner: Member, lab: str, wrong: dict[str, Any], status: int) -> None:
    answer = owner.http.post("/messages", json={"channel": lab, "content": "x", "dryRun": True, **wrong})
    assert answer.status_code == status, answer.text
