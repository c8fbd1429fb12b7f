"""An independent client of protocol 1, written from the fixed details of PROTOCOL.md alone, that polls for a while."""

import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support_hub import LiveHub, Member

REQUESTS = 50
"""After so many the client stops."""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LiveHub]:
    live = LiveHub(tmp_path / "hub", rate_factor=20.0).start()  # it has no clock of its own to go slowly by
    try:
        yield live
    finally:
        live.stop()


@pytest.fixture
def client(hub: LiveHub) -> Iterator["OldClient"]:
    owner = hub.owner()
    lab = hub.channel(owner)
    found = OldClient(hub.url, owner, lab, owner.post("/invites", {"channel": lab})["code"])
    yield found
    found.http.close()


class OldClient:
    """Ends at any 401, 403 or 409, as such clients do."""

    def __init__(self, url: str, owner: Member, lab: str, invite: str) -> None:
        self.owner, self.lab = owner, lab
        self.token, self.identity = secrets.token_hex(32), secrets.token_hex(32)
        self.http = httpx.Client(base_url=url + "/api/v1", trust_env=False)
        self.joining = {
            "invite": invite,
            "clientSecret": self.token,
            "identitySecret": self.identity,
            "name": "old one",
        }
        self.joined = self.call("POST", "/enroll", self.joining, bearer=None)
        self.holder = secrets.token_hex(8)

    def call(self, method: str, path: str, body: Any = None, *, bearer: str | None = "") -> Any:
        token = self.token if bearer == "" else bearer
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        answer = self.http.request(method, path, json=body, headers=headers)
        assert answer.status_code not in {401, 403, 409}, f"this client ends: {method} {path} {answer.text}"
        assert answer.status_code < 300, f"{method} {path} {answer.text}"
        return answer.json()

    def lease(self, state: str = "ready", **more: Any) -> Any:
        body = {"holderId": self.holder, "sessionId": None, "runtime": "old/1", "state": state, **more}
        return self.call("POST", "/receiver", body)

    def run(self, action: str, request: str, **more: Any) -> Any:
        body = {"holderId": self.holder, "requestId": request, "action": action, **more}
        return self.call("POST", "/receiver/run", body)


def test_state_identity_and_declaration_are_as_such_clients_read_them(client: OldClient) -> None:
    lab = client.lab
    assert client.call("POST", "/enroll", client.joining, bearer=None) == client.joined
    assert set(client.joined) >= {"agentId", "workspace", "channel"}
    me = client.joined["agentId"]

    state = client.call("GET", "/state")
    assert (state["protocol"], state["groupProtocol"]) == (1, 1)
    assert state["actor"] == {"id": me, "role": "agent", "name": "old one"}
    assert [each["id"] for each in state["channels"]] == [lab]
    assert isinstance(state["cursor"], str)
    assert {"messages", "memberStatuses", "limits", "workspace"} <= set(state)

    identity = client.call("GET", "/agent-identity", bearer=client.identity)["identity"]
    assert {"rev", "name", "avatarUrl", "signature"} <= set(identity)
    changed = client.call(
        "PATCH", "/agent-identity", {"rev": identity["rev"], "signature": "hi"}, bearer=client.identity
    )
    assert changed["identity"]["signature"] == "hi"

    declared = client.call("PUT", f"/channels/{lab}/me/status", {"rev": 0, "mode": "available", "text": "here"})
    assert (declared["mode"], "validUntil" in declared) == ("available", True)
    client.call("POST", f"/channels/{lab}/me/ping", {})
    client.call("POST", f"/channels/{lab}/me/ping", {"rev": declared["rev"]})
    assert client.call("POST", f"/channels/{lab}/me/ping", {"rev": declared["rev"] + 7})["renewed"] is False


def test_a_client_of_protocol_1_lives_on_this_hub(client: OldClient) -> None:
    owner, lab, me = client.owner, client.lab, client.joined["agentId"]
    state = client.call("GET", "/state")
    assert client.call("GET", "/receiver") is None
    made = client.call("POST", "/subscriptions", {"type": "message.created", "cursor": state["cursor"]})["id"]
    (entry,) = client.call("GET", "/inbox")["deliveries"]
    assert (entry["subscription"], entry["events"], entry["gap"]) == (made, [], False)
    before = time.time()
    lease = client.lease(subscription=made)
    assert isinstance(lease["expires"], int | float)
    assert before + 29 < lease["expires"] / 1000 < time.time() + 31
    assert lease["requestId"] is None

    answered: list[str] = []
    asked: list[str] = []
    while len(answered) < REQUESTS:
        if len(asked) == len(answered):
            body = {"channel": lab, "kind": "request", "to": me, "content": "do", "operationId": secrets.token_hex(8)}
            asked.append(owner.post("/messages", body)["id"])
        client.lease("polling", detail=None)
        client.call("POST", f"/channels/{lab}/me/ping", {})
        for delivery in client.call("GET", "/inbox")["deliveries"]:
            for event in delivery["events"]:
                assert isinstance(event["id"], int)
                message = event["data"]["message"]
                if message["kind"] != "request" or message["id"] in answered:
                    continue
                assert message["authorId"] == "human"
                serve(client, message)
                answered.append(message["id"])
            client.call("PATCH", f"/subscriptions/{made}", {"cursor": delivery["cursor"]})
            client.call("PATCH", f"/subscriptions/{made}", {"cursor": delivery["cursor"]})
            client.call("PATCH", f"/subscriptions/{made}", {"cursor": 0})
    assert answered == asked
    for each in answered:
        assert owner.get(f"/messages/{each}")["delivery"]["stage"] == "answered"

    client.run("begin", "left-open")
    client.call("PATCH", "/receiver", {"holderId": client.holder, "action": "release"})
    assert client.call("GET", "/receiver")["requestId"] == "left-open"
    assert client.lease()["requestId"] == "left-open"
    client.run("finish", "left-open", state="failed")


def serve(client: OldClient, message: dict[str, Any]) -> None:
    """Run one request as such clients do: begin, post, finish although the result closed the run."""
    request = message["id"]
    client.run("begin", request)
    assert client.call("GET", "/receiver")["requestId"] == request
    lease = client.lease("running")
    assert lease["requestId"] == request
    result = client.call(
        "POST",
        "/messages",
        {
            "channel": message["channel"],
            "kind": "result",
            "to": "human",
            "replyTo": request,
            "content": "done",
            "operationId": f"answer-{request}",
        },
    )
    assert result["replyTo"] == request
    assert result["authorId"] == client.joined["agentId"]
    client.run("finish", request, state="completed")
    client.run("finish", request, state="completed")


def test_the_same_holder_takes_its_lease_at_once_and_another_is_refused(client: OldClient) -> None:
    first = client.lease(state="x" * 64)
    assert client.lease()["fence"] == first["fence"]
    other = client.http.post(
        "/receiver",
        json={"holderId": "another", "sessionId": None, "runtime": "x", "state": "ready"},
        headers={"authorization": f"Bearer {client.token}"},
    )
    assert (other.status_code, other.json()["code"]) == (409, "lease_held")
