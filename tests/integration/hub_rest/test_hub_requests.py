"""Requests to people over real HTTP and sockets."""

import asyncio
import secrets
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from support_hub import LiveHub, Member, good
from support_time import WITHIN

from relay_receiver.hub import asks, housekeeping
from relay_receiver.wire.action import action_hash

ACTION = {"type": "command", "command": ["make", "release"], "cwd": "/srv/app"}
ACCEPT = {"answer": {"decision": "accept"}, "actionHash": action_hash(ACTION)}
TYPES = "request.created,request.updated"


@pytest.fixture
def ann(hub: LiveHub, owner: Member, lab: str) -> Member:
    return hub.agent(owner, lab, "ann", person=True)


def ask(by: Member, channel: str, **more: Any) -> Any:
    said = {"channel": channel, "kind": "approval", "title": "Release?", "operationId": secrets.token_hex(8)}
    return by.post("/requests", {**said, **({} if "kind" in more else {"action": ACTION}), **more})


def respond(by: Member, request: str, body: Any = ACCEPT) -> httpx.Response:
    return by.http.post(f"/requests/{request}/respond", json=body)


def told(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def job_of(bob: Member, owner: Member, lab: str, name: str = "job") -> tuple[str, dict[str, str]]:
    """A request to bob whose run is open, and the header of its job credential."""
    message = {"channel": lab, "kind": "request", "to": bob.id, "content": "x", "operationId": name}
    asked = owner.post("/messages", message)["id"]
    said = {"channel": lab, "holderId": "h", "sessionId": None, "runtime": "test", "state": "ready"}
    fence = bob.post("/receiver", said)["fence"]
    run = {"channel": lab, "holderId": "h", "requestId": name, "fence": fence, "claim": name, "attempt": 1}
    begun = bob.post("/receiver/run", {**run, "action": "begin", "message": asked})
    return asked, {"authorization": f"Bearer {begun['credential']}"}


def test_two_browsers_at_the_same_moment(owner: Member, ann: Member, bob: Member, lab: str) -> None:
    for _ in range(8):
        made = ask(bob, lab)
        together = threading.Barrier(2)
        answers = {
            owner.id: {**ACCEPT, "answer": {"decision": "accept"}},
            ann.id: {**ACCEPT, "answer": {"decision": "decline"}},
        }

        def decide(
            who: Member, answers: Any = answers, together: Any = together, made: Any = made
        ) -> tuple[Member, httpx.Response]:
            together.wait(WITHIN)
            return who, respond(who, made["id"], answers[who.id])

        with ThreadPoolExecutor(2) as pool:
            said = list(pool.map(decide, (owner, ann)))
        won = [who for who, answer in said if answer.status_code == 200]
        lost = [answer for _, answer in said if answer.status_code != 200]
        assert len(won) == len(lost) == 1
        assert told(lost[0]) == (409, "request_answered")
        assert lost[0].json()["answeredBy"]["id"] == won[0].id
        now = owner.get(f"/requests/{made['id']}")
        assert (now["answer"], now["answeredBy"]["id"]) == (answers[won[0].id]["answer"], won[0].id)


def test_an_operation_id_asks_once_however_often_it_is_sent(bob: Member, owner: Member, lab: str) -> None:
    def one(_: int) -> str:
        return str(ask(bob, lab, operationId="ask:job.1:7")["id"])

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(one, range(16)))) == 1
    assert len(owner.get("/requests", channel=lab)["requests"]) == 1


def test_requests_and_their_answers_outlive_the_hub(hub: LiveHub, owner: Member, bob: Member, lab: str) -> None:
    made, closed, answered = ask(bob, lab), ask(bob, lab), ask(bob, lab)
    bob.post(f"/requests/{closed['id']}/close", {"state": "superseded"})
    good(respond(owner, answered["id"]))
    hub.stop()
    hub.start()
    again, agent = (hub.member(each.id, each.token, each.identity) for each in (owner, bob))
    assert again.get(f"/requests/{made['id']}") == made
    assert told(respond(again, closed["id"])) == (409, "request_superseded")
    assert agent.get(f"/requests/{answered['id']}")["answer"] == {"decision": "accept"}
    assert good(respond(again, made["id"]))["state"] == "answered"
    assert ask(agent, lab, operationId=made["operationId"])["state"] == "answered"


def test_what_expired_while_the_hub_was_away_is_not_answered(
    hub: LiveHub, owner: Member, bob: Member, lab: str
) -> None:
    wish = asks.Wish(
        channel=lab, kind="approval", title="Release?", operation="op", action=ACTION, expires_at=time.time() - 60
    )
    made = hub.write(asks.create, hub.actor(bob), wish, at=time.time() - 120)["id"]
    hub.stop()
    hub.start()
    again = hub.member(owner.id, owner.token, owner.identity)
    cursor = again.get("/state")["cursor"]
    assert told(respond(again, made)) == (409, "request_expired")
    assert again.get("/requests")["requests"] == []
    loop = hub.server._loop
    assert loop is not None
    asyncio.run_coroutine_threadsafe(housekeeping.sweep(hub.store), loop).result(WITHIN)
    (event,) = again.get("/updates", wait=1, cursor=cursor, types=TYPES)["events"]
    assert (event["data"]["request"]["id"], event["data"]["request"]["state"]) == (made, "expired")
    assert told(respond(again, made)) == (409, "request_expired")


def test_members_of_the_channel_are_told_over_both_transports_and_nobody_else(
    hub: LiveHub, owner: Member, bob: Member, lab: str
) -> None:
    other = hub.channel(owner, "other")
    eve = hub.agent(owner, other, "eve", person=True)
    cursor = owner.get("/state")["cursor"]
    with hub.socket(owner, channel=lab, types=TYPES.split(",")) as talk, hub.socket(eve) as outside:
        assert talk.frame()["t"] == outside.frame()["t"] == "ready"
        made = ask(bob, lab)
        answered = good(respond(owner, made["id"]))
        events = talk.batch()[0]
        while len(events) < 2:
            events += talk.batch()[0]
        seen = hub.event(other, "last")
        assert [each["id"] for each in outside.batch()[0]] == [seen]
    assert [(each["type"], each["data"]["request"]) for each in events] == [
        ("request.created", made),
        ("request.updated", answered),
    ]
    polled = bob.get("/updates", wait=1, cursor=cursor, channel=lab, types=TYPES)["events"]
    assert polled == events
    assert [each["id"] for each in eve.get("/updates", wait=1, cursor=cursor)["events"]] == [seen]


def test_a_job_is_told_of_no_request_and_reads_only_its_own(hub: LiveHub, owner: Member, bob: Member, lab: str) -> None:
    approval = ask(bob, lab)
    _, job = job_of(bob, owner, lab)
    cursor = bob.http.get("/state", headers=job).json()["cursor"]
    mine = good(bob.http.post("/requests", headers=job, json=_input(lab)))
    said = hub.event(lab, "hello")
    for types in (None, TYPES, f"{TYPES},message.created"):
        params = {"wait": 1, "cursor": cursor, **({} if types is None else {"types": types})}
        events = good(bob.http.get("/updates", headers=job, params=params))["events"]
        assert {each["type"] for each in events} <= {"message.created", "message.stage"}
        assert [each["id"] for each in events if each["type"] == "message.created"] == (
            [] if types == TYPES else [said]
        )
    listed = good(bob.http.get("/requests", headers=job, params={"state": "all"}))["requests"]
    assert [each["id"] for each in listed] == [mine["id"]]
    assert told(bob.http.get(f"/requests/{approval['id']}", headers=job)) == (404, "not_found")
    for body in ({"answer": {"text": "yes"}}, {}):
        refused = bob.http.post(f"/requests/{mine['id']}/respond", headers=job, json=body)
        assert told(refused) == (403, "person_needed")
    assert told(bob.http.post("/requests", headers=job, json={**_input(lab), "kind": "approval"})) == (
        403,
        "inside_a_job",
    )


def test_a_job_is_told_of_no_request_from_the_stored_events_either(
    hub: LiveHub, owner: Member, bob: Member, lab: str
) -> None:
    _, job = job_of(bob, owner, lab)
    cursor = bob.http.get("/state", headers=job).json()["cursor"]
    ask(bob, lab)
    hub.stop()
    hub.start()
    again = hub.member(bob.id, bob.token, bob.identity)
    for types in ("request.created", "receiver.control,request.updated", "message.created"):
        params = {"wait": 1, "cursor": cursor, "types": types}
        assert good(again.http.get("/updates", headers=job, params=params))["events"] == []
    assert again.get("/updates", wait=1, cursor=cursor, types=TYPES)["events"] != []


def _input(lab: str) -> dict[str, Any]:
    return {"channel": lab, "kind": "input", "title": "Which?", "operationId": secrets.token_hex(8)}


def test_a_job_is_given_its_answer_as_soon_as_there_is_one(owner: Member, bob: Member, lab: str) -> None:
    message, job = job_of(bob, owner, lab)
    made = good(bob.http.post("/requests", headers=job, json=_input(lab)))
    delivery = owner.get(f"/messages/{message}")["delivery"]
    assert (delivery["stage"], delivery["detail"]) == ("waiting", "on anybody in the channel: Which?")
    with ThreadPoolExecutor(1) as pool:
        path = f"/requests/{made['id']}"
        waiting = pool.submit(lambda: bob.http.get(path, headers=job, params={"wait": 30}))
        other = ask(owner, lab, kind="input")
        good(respond(owner, other["id"], {"answer": {"text": "not this one"}}))
        good(respond(owner, made["id"], {"answer": {"text": "main"}}))
        found = good(waiting.result(WITHIN))
    assert (found["state"], found["answer"]) == ("answered", {"text": "main"})
    assert good(bob.http.get(path, headers=job, params={"wait": 30})) == found
    assert good(bob.http.post(f"{path}/close", headers=job, json={"state": "applied"}))["state"] == "applied"


def test_a_poll_for_an_answer_ends_with_the_job(owner: Member, bob: Member, lab: str) -> None:
    _, job = job_of(bob, owner, lab)
    made = good(bob.http.post("/requests", headers=job, json=_input(lab)))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: bob.http.get(f"/requests/{made['id']}", headers=job, params={"wait": 30}))
        said = {"channel": lab, "holderId": "h", "requestId": "job", "action": "finish", "state": "failed"}
        bob.post("/receiver/run", said)
        assert told(waiting.result(WITHIN)) == (401, "unauthorized")
    assert owner.get(f"/requests/{made['id']}")["state"] == "superseded"


def test_a_poll_that_comes_to_its_end_tells_that_it_is_still_open(bob: Member, lab: str) -> None:
    made = ask(bob, lab)
    assert bob.get(f"/requests/{made['id']}", wait=1) == made


def test_asking_and_answering_count_as_writes(tmp_path: Path) -> None:
    hub = LiveHub(tmp_path / "slow", rate_factor=0.02).start()
    try:
        owner = hub.owner()
        lab = hub.channel(owner)
        codes = {owner.http.post("/requests", json=_input(lab)).status_code for _ in range(9)}
        assert codes == {200, 429}
        assert told(respond(owner, "any")) == (429, "rate_limited")
    finally:
        hub.stop()


def test_an_approval_comes_back_in_full(owner: Member, bob: Member, lab: str) -> None:
    action = {"type": "patch", "diff": "\x1b[2J\u202e\u0007" + "+x\n" * 200_000}
    made = ask(bob, lab, action=action)
    shown = owner.get(f"/requests/{made['id']}")
    assert shown["action"] == action
    assert shown["actionHash"] == action_hash(action)
    body = {"answer": {"decision": "decline"}, "actionHash": action_hash(shown["action"])}
    assert good(respond(owner, made["id"], body))["state"] == "answered"
