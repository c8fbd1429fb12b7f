"""Whatever is sent to the routes of requests to people: one clear sentence, and what was asked stays as it was."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support_hub import LiveHub, Member, good

from relay_receiver.wire.action import action_hash

ACTION = {"type": "command", "command": ["make"], "cwd": "/srv"}
OPTIONS = [{"id": "a", "label": "A"}]
FORM = {"type": "object", "properties": {"n": {"type": "integer"}}}
WRONG: list[Any] = [
    -1, 0, 2**62, 1.5, True, "", "x" * 3000, "\u202e", [], [[7]], [None], ["x" * 300], ["x"] * 300,
    {}, {"a": {"b": []}}, {"id": "a"}, [{"id": "a"}], [{"id": "", "label": "A"}], [{"id": 1, "label": "A"}],
    [{"id": "a", "label": "A"}] * 200, {"type": "object"}, {"type": "object", "properties": {"n": {"type": "date"}}},
    "2000-01-01T00:00:00Z", "9999-12-31T23:59:59+23:59", "0001-01-01T00:00:00-23:59", "tomorrow",
]  # fmt: skip
CREATE = {
    "approval": {"action": ACTION},
    "input": {},
    "choice": {"options": OPTIONS},
    "form": {"schema": FORM},
}
FIELDS = (
    "channel", "kind", "title", "description", "options", "schema", "action", "job", "message", "approvers",
    "expiresAt", "operationId",
)  # fmt: skip
RAW = [
    rb'{"answer":{"text":"a\u0000b"}}',
    rb'{"answer":{"text":"a\ud800b"}}',
    rb'{"title":"a\u0000b"}',
    rb'{"action":{"command":["\udfff"]}}',
    b'{"answer":' + b"[" * 40 + b"]" * 40 + b"}",
    b'{"schema":' + b'{"a":' * 2000 + b"1" + b"}" * 2001,
    b'{"answer":NaN}',
    b'{"answer":{},"answer":{}}',
    b"[]",
    b"\xff",
]


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LiveHub]:
    live = LiveHub(tmp_path / "hub", rate_factor=1e6).start()
    try:
        yield live
    finally:
        live.stop()


def check(answer: httpx.Response, what: object) -> None:
    """A 4xx with one sentence."""
    assert 400 <= answer.status_code < 500, (what, answer.status_code, answer.text)
    told = answer.json()
    assert told["error"].endswith("."), (what, told)
    assert 10 < len(told["error"]) < 300, (what, told)
    assert "\n" not in told["error"], (what, told)


def made(by: Member, channel: str, kind: str, number: int) -> Any:
    body = {"channel": channel, "kind": kind, "title": "?", "operationId": f"op{number}", **CREATE[kind]}
    return by.post("/requests", body)


def test_wrong_values_in_every_field_of_a_request(hub: LiveHub, caplog: pytest.LogCaptureFixture) -> None:
    owner = hub.owner()
    lab = hub.channel(owner)
    bob = hub.agent(owner, lab, "bob")
    stored = 0
    with caplog.at_level(logging.ERROR):
        for kind, more in CREATE.items():
            for field in FIELDS:
                for n, wrong in enumerate(WRONG):
                    right = {"channel": lab, "kind": kind, "title": "?", "operationId": f"{kind}.{field}.{n}", **more}
                    answer = bob.http.post("/requests", json={**right, field: wrong})
                    if answer.status_code == 200:
                        stored += 1
                        good(bob.http.post(f"/requests/{answer.json()['id']}/close", json={"state": "superseded"}))
                    else:
                        check(answer, (kind, field, wrong))
    assert not [record for record in caplog.records if record.exc_info], caplog.text
    assert 0 < stored < len(CREATE) * len(FIELDS) * len(WRONG)
    assert owner.get("/requests")["requests"] == []


def test_wrong_answers_to_every_kind_change_nothing(hub: LiveHub, caplog: pytest.LogCaptureFixture) -> None:
    owner = hub.owner()
    lab = hub.channel(owner)
    bob = hub.agent(owner, lab, "bob")
    names = {"approval": "decision", "input": "text", "choice": "choice", "form": "n"}
    fits = {("input", "text"), ("form", "n")}
    with caplog.at_level(logging.ERROR):
        for number, kind in enumerate(CREATE):
            request = made(bob, lab, kind, number)
            path = f"/requests/{request['id']}"
            shown = {"actionHash": action_hash(ACTION)} if kind == "approval" else {}
            for wrong in [None, *WRONG]:
                if (kind, names[kind]) in fits and wrong in ([{}] if kind == "form" else []):
                    continue
                check(owner.http.post(f"{path}/respond", json={**shown, "answer": wrong}), (kind, wrong))
                check(owner.http.post(f"{path}/respond", json={**shown, "answer": {"other": wrong}}), (kind, wrong))
                check(owner.http.post(f"{path}/close", json={"state": wrong}), (kind, wrong))
            for wrong in (-1, [], {}, "x" * 65, "0" * 64, True):
                body = {"answer": {names[kind]: "accept"}, "actionHash": wrong}
                check(owner.http.post(f"{path}/respond", json=body), (kind, wrong))
            for raw in RAW:
                for verb in ("respond", "close"):
                    check(owner.http.post(f"{path}/{verb}", content=raw), (kind, raw))
            assert owner.get(path) == request
    assert not [record for record in caplog.records if record.exc_info], caplog.text


def test_raw_bytes_ask_nothing(hub: LiveHub) -> None:
    owner = hub.owner()
    hub.channel(owner)
    for raw in RAW:
        check(owner.http.post("/requests", content=raw), raw)
    assert owner.get("/requests", state="all")["requests"] == []


@pytest.mark.parametrize(
    "query",
    ["state=nonsense", "state=OPEN", "limit=0", "limit=201", "limit=-1", "limit=x", "channel=c_guess", "channel=%00"],
)
def test_wrong_queries(hub: LiveHub, query: str) -> None:
    owner = hub.owner()
    hub.channel(owner)
    check(owner.http.get(f"/requests?{query}"), query)


def test_ids_guessed_from_outside_are_not_there(hub: LiveHub, tmp_path: Path) -> None:
    owner = hub.owner()
    lab, other = hub.channel(owner), hub.channel(owner, "other")
    bob, eve = hub.agent(owner, lab, "bob"), hub.agent(owner, other, "eve", person=True)
    request = made(bob, lab, "input", 0)
    for member, answer in ((eve, {"text": "x"}), (owner, {"text": "x"})):
        for wanted in ("req_guess", "..", "%00", "x" * 2000, "' OR 1=1 --", request["id"] if member is eve else "-"):
            path = f"/requests/{wanted}"
            for sent in (
                member.http.get(path),
                member.http.post(f"{path}/respond", json={"answer": answer}),
                member.http.post(f"{path}/close", json={"state": "superseded"}),
            ):
                check(sent, (wanted, sent.request.method))
                assert sent.status_code in {400, 404, 405}, (wanted, sent.text)
    assert owner.get(f"/requests/{request['id']}") == request
