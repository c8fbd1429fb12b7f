"""The hub's resources over real HTTP."""

import asyncio
import hashlib
import json
import secrets
import socket
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from support_hub import LiveHub, Member, good

from relay_receiver.hub import housekeeping


def _post(by: Member, channel: str, content: str = "hello", **more: Any) -> Any:
    return by.post("/messages", {"channel": channel, "content": content, "operationId": secrets.token_hex(8), **more})


def _send_and_hang_up(hub: LiveHub, by: Member, body: Any) -> None:
    """Post without ever reading the answer."""
    data = json.dumps(body).encode()
    host = hub.url.removeprefix("http://")
    head = f"POST /api/v1/messages HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {by.token}\r\n"
    with socket.create_connection((host.split(":")[0], int(host.split(":")[1]))) as connection:
        connection.sendall(f"{head}content-length: {len(data)}\r\n\r\n".encode() + data)


def _take(bob: Member, channel: str, **more: Any) -> Any:
    said = {"channel": channel, "holderId": "h", "sessionId": None, "runtime": "test", "state": "ready"}
    return bob.post("/receiver", {**said, **more})


def _run(bob: Member, channel: str, action: str, **more: Any) -> httpx.Response:
    body = {"channel": channel, "holderId": "h", "requestId": "job", "action": action, **more}
    return bob.http.post("/receiver/run", json=body)


def _told(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_a_lost_answer_is_asked_for_again_and_posts_once(hub: LiveHub, owner: Member, lab: str) -> None:
    body = {"channel": lab, "content": "once", "operationId": "op"}

    def lost(_: int) -> str:
        _send_and_hang_up(hub, owner, body)
        return str(owner.post("/messages", body)["id"])

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lost, range(16)))) == 1
    assert len(owner.get("/messages", channel=lab)["messages"]) == 1


def test_64_posters_make_gapless_numbers_each_operation_once(owner: Member, lab: str) -> None:
    def one(n: int) -> int:
        return int(_post(owner, lab, str(n % 32), operationId=f"op{n % 32}")["event"])

    with ThreadPoolExecutor(64) as pool:
        numbers = list(pool.map(one, range(64)))
    assert numbers[:32] == numbers[32:]
    assert sorted(set(numbers)) == list(range(min(numbers), min(numbers) + 32))


def test_a_request_from_sending_to_its_result(owner: Member, bob: Member, lab: str) -> None:
    subscription = bob.post("/subscriptions", {"type": "message.created", "channel": lab})["id"]
    asked = _post(owner, lab, kind="request", to=bob.id)
    assert asked["wakes"] == [{"id": bob.id, "name": "bob", "receiver": None}]

    def delivery() -> Any:
        return owner.get(f"/messages/{asked['id']}")["delivery"]

    assert (delivery()["stage"], delivery()["reason"]) == ("stored", "offline")
    before = time.time()
    lease = _take(bob, lab, subscription=subscription)
    assert before + 29 < lease["expires"] / 1000 < time.time() + 31
    bob.patch(f"/subscriptions/{subscription}", {"cursor": bob.get("/inbox")["deliveries"][0]["cursor"]})
    assert (delivery()["stage"], delivery()["position"], delivery()["reason"]) == ("received", 0, None)
    _take(bob, lab, subscription=subscription, state="paused", detail="chain")
    assert (delivery()["reason"], delivery()["detail"]) == ("paused", "chain")
    begun = good(_run(bob, lab, "begin", fence=lease["fence"], message=asked["id"], attempt=1, claim="c"))
    assert (delivery()["stage"], delivery()["job"]) == ("starting", "job")
    good(_run(bob, lab, "stage", fence=lease["fence"], claim="c", state="running", detail=None))
    assert delivery()["stage"] == "running"
    job = {"authorization": f"Bearer {begun['credential']}"}
    sub = good(bob.http.post("/messages", headers=job, json={"channel": lab, "content": "x", "operationId": "j"}))
    assert sub["chain"] == {"root": asked["id"], "hop": 1}
    run = {"holderId": "h", "fence": lease["fence"], "requestId": "job"}
    result = _post(bob, lab, "done", kind="result", replyTo=asked["id"], to="human", outcome="completed", run=run)
    assert (result["to"], delivery()["stage"]) == (owner.id, "answered")
    assert _told(bob.http.get("/state", headers=job)) == (401, "unauthorized")
    assert good(_run(bob, lab, "finish", fence=lease["fence"], state="completed"))["outcome"] == "completed"
    assert _take(bob, lab, subscription=subscription)["run"] is None


def test_the_run_guard_over_http(hub: LiveHub, owner: Member, bob: Member, lab: str) -> None:
    asked, withdrawn = (_post(owner, lab, kind="request", to=bob.id)["id"] for _ in range(2))
    good(owner.http.post(f"/messages/{withdrawn}/withdraw"))
    fence = _take(bob, lab)["fence"]
    first = {"fence": fence, "message": asked, "attempt": 1, "claim": "c"}
    assert _told(_run(bob, lab, "begin", **{**first, "fence": fence + 1})) == (409, "fenced")
    assert _told(_run(bob, lab, "begin", **{**first, "message": "msg_none"})) == (404, "not_found")
    assert _told(_run(bob, lab, "begin", **{**first, "message": withdrawn})) == (409, "withdrawn")
    good(_run(bob, lab, "begin", **first))
    assert _told(_run(bob, lab, "begin", **{**first, "claim": "d"})) == (409, "run_unresolved")
    told = owner.http.post(f"/messages/{asked}/withdraw")
    assert (told.status_code, told.json()["withdrawn"]) == (202, False)
    settle = {"action": "settle", "agent": bob.id, "requestId": asked, "outcome": "abandoned", "reason": "gone"}
    assert _told(bob.http.post("/receiver/run", json=settle)) == (403, "person_needed")
    owner.post("/receiver/run", settle)
    assert _told(_run(bob, lab, "begin", **first)) == (409, "run_finished")
    assert _told(_run(bob, lab, "finish", fence=fence, state="completed")) == (409, "run_settled")
    assert good(_run(bob, lab, "stage", fence=fence, state="running"))["settled"]["outcome"] == "abandoned"
    other = hub.channel(owner, "other")
    assert _told(bob.http.get("/receiver", params={"channel": other})) == (404, "not_found")
    assert bob.get("/receiver") is None
    assert _told(owner.http.post("/receiver", json={"channel": lab, "holderId": "x"})) == (403, "agent_needed")


def test_a_job_may_do_little(owner: Member, bob: Member, lab: str) -> None:
    asked = _post(owner, lab, kind="request", to=bob.id)["id"]
    fence = _take(bob, lab)["fence"]
    token = good(_run(bob, lab, "begin", fence=fence, message=asked, attempt=1, claim="c"))["credential"]
    with httpx.Client(base_url=bob.http.base_url, headers={"authorization": f"Bearer {token}"}, trust_env=False) as job:
        for path in ("/state", "/peers", "/channels", f"/channels/{lab}/members", f"/messages?channel={lab}"):
            good(job.get(path))
        for method, path, body in (
            ("POST", "/channels", {"name": "mine"}),
            ("POST", "/invites", {"channel": lab}),
            ("DELETE", f"/channels/{lab}/me", None),
            ("PUT", f"/channels/{lab}/me/status", {"rev": 0, "mode": "paused", "text": ""}),
            ("POST", f"/channels/{lab}/me/ping", {}),
            ("POST", "/subscriptions", {"type": "message.created"}),
            ("POST", "/receiver", {"channel": lab, "holderId": "h"}),
            ("PATCH", "/receiver", {"channel": lab, "holderId": "h", "action": "release"}),
            ("POST", "/receiver/run", {"channel": lab, "holderId": "h", "requestId": "job", "action": "finish"}),
            (
                "POST",
                "/receiver/run",
                {"action": "settle", "agent": bob.id, "requestId": "job", "outcome": "abandoned"},
            ),
        ):
            assert job.request(method, path, json=body).status_code == 403, (method, path)


def test_attachments_are_named_by_their_bytes_and_seen_in_their_channel(
    hub: LiveHub, owner: Member, bob: Member, lab: str
) -> None:
    data = secrets.token_bytes(300_000)
    name = hashlib.sha256(data).hexdigest()
    kept = [
        good(
            owner.http.post("/attachments", content=data, params={"name": "../a b.bin"}, headers={"content-type": kind})
        )
        for kind in ("text/html", "text/html; <script>")
    ]
    assert kept[0] == {"id": name, "name": "../a b.bin", "type": "text/html", "size": len(data)}
    assert kept[1]["type"] == "application/octet-stream"
    assert _told(bob.http.get(f"/attachments/{name}")) == (404, "not_found")
    refused = bob.http.post(
        "/messages", json={"channel": lab, "content": "", "operationId": "steal", "attachments": [name]}
    )
    assert _told(refused) == (422, "invalid_value")
    sent = _post(owner, lab, "see", attachments=[{"id": name, "name": "data.bin"}])
    assert sent["attachments"][0]["name"] == "data.bin"
    answer = bob.http.get(f"/attachments/{name}")
    assert answer.content == data
    assert answer.headers["content-disposition"].startswith("attachment")
    assert "sandbox" in answer.headers["content-security-policy"]
    stranger = hub.agent(owner, hub.channel(owner, "other"), "eve")
    assert _told(stranger.http.get(f"/attachments/{name}")) == (404, "not_found")
    for wrong in ("..%2F..%2Fhub.sqlite3", name.upper(), "0" * 64, "x"):
        assert bob.http.get(f"/attachments/{wrong}").status_code == 404
    folder = hub.path / "attachments"
    assert [each.name for each in folder.rglob("*") if each.is_file()] == [name]
    assert stat.S_IMODE((folder / name[:2] / name).stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_request_expires_with_no_receiver_alive_and_its_sender_is_told(
    hub: LiveHub, owner: Member, bob: Member, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    asked = _post(owner, lab, kind="request", to=bob.id, expiresAt=soon)
    later = time.time() + 3601
    monkeypatch.setattr(housekeeping.time, "time", lambda: later)
    loop = hub.server._loop
    assert loop is not None
    keeping = asyncio.run_coroutine_threadsafe(housekeeping.keep(hub.store), loop)
    told = owner.get("/updates", cursor=str(asked["event"]), channel=lab, types="message.stage", wait=30)
    keeping.cancel()
    assert [each["data"]["stage"] for each in told["events"]] == ["expired"]
    assert owner.get(f"/messages/{asked['id']}")["delivery"]["stage"] == "expired"


def test_who_is_where(hub: LiveHub, owner: Member, bob: Member, lab: str) -> None:
    _take(bob, lab, state="busy")
    bob.http.put(f"/channels/{lab}/me/status", json={"rev": 0, "mode": "paused", "text": "lunch"}).raise_for_status()
    found = {each["name"]: each for each in owner.get(f"/channels/{lab}/members")["members"]}
    assert found["bob"]["receiver"] == {"state": "busy", "detail": None, "report": None}
    assert (found["bob"]["status"]["text"], found["owner"]["kind"]) == ("lunch", "human")
    eve = hub.agent(owner, hub.channel(owner, "other"), "eve")
    peers = {each["name"]: each for each in eve.get("/peers")["peers"]}
    assert (peers["bob"]["channels"], peers["bob"]["receiver"], peers["bob"]["status"]) == ([], None, None)
    state = owner.get("/state")
    assert state["memberStatuses"][0]["agentId"] == bob.id
    assert {each["name"] for each in state["channels"]} == {"lab", "other"}


def test_leaving_needs_a_new_invite_to_come_back(owner: Member, bob: Member, lab: str) -> None:
    _take(bob, lab)
    for _ in range(2):
        assert good(bob.http.delete(f"/channels/{lab}/me")) == {"left": True}
    assert bob.get("/state")["channels"] == []
    assert _told(bob.http.get("/messages", params={"channel": lab})) == (404, "not_found")
    assert [each["name"] for each in owner.get(f"/channels/{lab}/members")["members"]] == ["owner"]


def test_joining_over_http(hub: LiveHub, owner: Member, lab: str) -> None:
    invite = owner.post("/invites", {"channel": lab})
    body = {"invite": invite["code"], "clientSecret": "c" * 43, "identitySecret": "i" * 43, "name": "bob"}
    with httpx.Client(base_url=owner.http.base_url, trust_env=False) as nobody:
        joined = [good(nobody.post("/enroll", json=body)) for _ in range(2)]
        assert joined[0] == joined[1]
        assert joined[0]["channel"] == lab
        assert _told(nobody.post("/enroll", json={**body, "clientSecret": "d" * 43})) == (403, "invite_invalid")
        identity = {"authorization": f"Bearer {'i' * 43}"}
        assert good(nobody.get("/agent-identity", headers=identity))["identity"]["name"] == "bob"
        change = {"rev": 1, "name": "bobby"}
        assert good(nobody.patch("/agent-identity", headers=identity, json=change))["identity"]["rev"] == 2
        assert _told(nobody.patch("/agent-identity", headers=identity, json=change)) == (409, "stale_rev")
        assert _told(nobody.get("/agent-identity")) == (401, "unauthorized")
    assert "bobby" in {each["name"] for each in owner.get("/peers")["peers"]}
