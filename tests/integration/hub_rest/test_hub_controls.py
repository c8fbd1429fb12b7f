"""Decisions about receivers over HTTP: who may make them, tell of them and see them."""

import secrets
from typing import Any

from support_hub import LiveHub, Member

PAUSED = {"chain": {"count": 3, "limit": 3, "paused": True, "pause": "p1"}, "wake": "all"}


def _take(bob: Member, lab: str, **more: Any) -> Any:
    return bob.post("/receiver", {"channel": lab, "holderId": "h", "state": "paused", **more})


def _body(bob: Member, lab: str, action: str = "resume", **arguments: Any) -> dict[str, Any]:
    said = {"channel": lab, "agent": bob.id, "action": action, "arguments": arguments}
    return {**said, "operationId": secrets.token_hex(8)}


def _status(who: Member, path: str, body: Any, token: str | None = None) -> tuple[int, str]:
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    answer = who.http.post(path, json=body, headers=headers)
    return answer.status_code, answer.json()["code"] if answer.status_code >= 400 else ""


def test_a_decision_goes_to_the_receiver_as_an_event_and_its_outcome_comes_back(
    owner: Member, bob: Member, lab: str
) -> None:
    _take(bob, lab, report=PAUSED)
    cursor = bob.get("/state")["cursor"]
    made = owner.post("/controls", _body(bob, lab))
    (event,) = bob.get("/updates", cursor=cursor, channel=lab, types="receiver.control", wait=30)["events"]
    assert event["data"]["control"] == made
    assert bob.get("/controls", channel=lab, agent=bob.id, state="waiting")["controls"] == [made]
    told = bob.post(f"/controls/{made['id']}/outcome", {"outcome": "done", "sentence": "Agents' jobs go on."})
    assert owner.get(f"/controls/{made['id']}") == told
    assert owner.get("/controls", state="waiting")["controls"] == []
    seen = owner.get("/updates", cursor=cursor, channel=lab, types="receiver.control", wait=30)["events"]
    assert [each["data"]["control"]["outcome"] for each in seen] == [None, "done"]


def test_no_token_but_a_persons_decides_and_no_other_agent_tells(
    hub: LiveHub, owner: Member, bob: Member, lab: str
) -> None:
    fence = _take(bob, lab, report=PAUSED)["fence"]
    eve = hub.agent(owner, lab, "eve")
    asked = owner.post(
        "/messages",
        {"channel": lab, "kind": "request", "to": bob.id, "content": "x", "operationId": secrets.token_hex(8)},
    )
    begin = {"channel": lab, "holderId": "h", "fence": fence, "requestId": "j", "action": "begin", "claim": "c"}
    job = bob.post("/receiver/run", {**begin, "message": asked["id"]})["credential"]
    for token in (bob.token, eve.token, job):
        assert _status(bob, "/controls", _body(bob, lab), token) == (403, "person_needed")
    made = owner.post("/controls", _body(bob, lab))
    outcome = {"outcome": "done", "sentence": "forged"}
    path = f"/controls/{made['id']}/outcome"
    assert _status(eve, path, outcome) == (404, "not_found")
    assert _status(owner, path, outcome) == (403, "agent_needed")
    assert _status(bob, path, outcome, job) == (403, "inside_a_job")
    assert owner.get(f"/controls/{made['id']}")["outcome"] is None


def test_another_channels_people_neither_decide_nor_see(hub: LiveHub, owner: Member, bob: Member, lab: str) -> None:
    _take(bob, lab, report=PAUSED)
    made = owner.post("/controls", _body(bob, lab))
    carl = hub.agent(owner, hub.channel(owner, "other"), "carl")
    assert carl.http.get(f"/controls/{made['id']}").status_code == 404
    assert carl.http.get("/controls", params={"channel": lab}).status_code == 404
    assert carl.get("/receivers")["receivers"] == []


def test_a_decision_that_cannot_be_read_is_refused_with_a_sentence(owner: Member, bob: Member, lab: str) -> None:
    _take(bob, lab, report=PAUSED)
    wrong = [
        _body(bob, lab, "explode"),
        _body(bob, lab, "settle", verb="accept"),
        _body(bob, lab, "settle", job="j", attempt=1, verb="burn"),
        _body(bob, lab, "settle", job="j", attempt=-1, verb="retry"),
        _body(bob, lab, "settle", job="j", attempt=1, verb="retry", text="posted?"),
        _body(bob, lab, "settle", job="j", attempt=1, verb="abandon", reason="x" * 5000),
        _body(bob, lab, "cancel", job="nowhere"),
        {**_body(bob, lab), "arguments": []},
        {**_body(bob, lab), "agent": 7},
    ]
    for body in wrong:
        assert _status(owner, "/controls", body) == (422, "invalid_value")
    for outcome in ({"outcome": "perhaps", "sentence": "x"}, {"outcome": "done"}, {"outcome": "done", "sentence": ""}):
        assert _status(bob, "/controls/x/outcome", outcome) == (422, "invalid_value")
    assert owner.get("/controls")["controls"] == []


def test_receivers_are_listed_with_what_they_report_and_agents_see_less(
    hub: LiveHub, owner: Member, bob: Member, lab: str
) -> None:
    report = {**PAUSED, "lastError": "words", "unknown": {"job": "j", "message": "m", "attempt": 1, "error": "words"}}
    _take(bob, lab, report=report)
    eve = hub.agent(owner, lab, "eve")
    (whole,) = owner.get("/receivers", channel=lab)["receivers"]
    assert (whole["agent"]["name"], whole["state"], whole["report"]) == ("bob", "paused", report)
    (part,) = eve.get("/receivers")["receivers"]
    assert "words" not in str(part)
    assert part["report"]["unknown"] == {"job": "j", "message": "m", "attempt": 1}
    members = {each["name"]: each for each in owner.get(f"/channels/{lab}/members")["members"]}
    assert (members["bob"]["receiver"]["report"], members["eve"]["receiver"]) == (report, None)
    peers = {each["name"]: each for each in owner.get("/peers")["peers"]}
    assert peers["bob"]["receivers"] == [{"channel": lab, **members["bob"]["receiver"]}]


def test_a_report_that_is_no_object_or_too_large_is_refused_and_the_lease_stays(
    owner: Member, bob: Member, lab: str
) -> None:
    _take(bob, lab, report=PAUSED)
    body = {"channel": lab, "holderId": "h", "state": "ready"}
    assert _status(bob, "/receiver", {**body, "report": []}) == (422, "invalid_value")
    assert _status(bob, "/receiver", {**body, "report": {"x": "y" * 70_000}}) == (413, "too_large")
    (seen,) = owner.get("/receivers")["receivers"]
    assert (seen["state"], seen["report"]) == ("paused", PAUSED)
