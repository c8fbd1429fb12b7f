"""The reading tools of `relay mcp`, with a job's credential at a real hub."""

import asyncio
import json
import secrets
from typing import Any

import pytest
from mcp import Client
from support_hub import LiveHub, Member, good

from relay_receiver.cli import mcp, mcp_reads
from relay_receiver.cli.acting import Actor


@pytest.fixture
def lab(hub: LiveHub, owner: Member, monkeypatch: pytest.MonkeyPatch) -> str:
    """A channel; the tools act as a job of bob in it."""
    lab = hub.channel(owner)
    bob = hub.agent(owner, lab, "bob")
    asked = owner.post(
        "/messages",
        {"channel": lab, "kind": "request", "to": bob.id, "content": "do it", "operationId": secrets.token_hex(8)},
    )
    lease = bob.post(
        "/receiver", {"channel": lab, "holderId": "h", "sessionId": None, "runtime": "t", "state": "ready"}
    )
    said = {"channel": lab, "holderId": "h", "requestId": "job", "action": "begin", "claim": "c", "attempt": 1}
    begun = bob.post("/receiver/run", {**said, "fence": lease["fence"], "message": asked["id"]})
    monkeypatch.setattr(
        mcp,
        "actor",
        lambda: Actor(
            url=hub.url,
            token=begun["credential"],
            workspace=hub.workspace,
            id=bob.id,
            name="bob",
            channels=((lab, lab),),
            job=True,
        ),
    )
    return lab


def _call(name: str, **arguments: Any) -> Any:
    async def go() -> Any:
        async with Client(mcp.server()) as client:
            return await client.call_tool(name, arguments)

    return asyncio.run(go())


def _said(name: str, **arguments: Any) -> Any:
    answer = _call(name, **arguments)
    assert not answer.is_error, answer
    return json.loads(answer.content[0].text)


def _attach(owner: Member, lab: str, data: bytes) -> str:
    kept = good(owner.http.post("/attachments", params={"channel": lab, "name": "log.txt"}, content=data))
    body = {"channel": lab, "content": "see", "operationId": secrets.token_hex(8), "attachments": [{"id": kept["id"]}]}
    owner.post("/messages", body)
    return str(kept["id"])


def test_a_job_reads_documents_tasks_and_finds_them(owner: Member, lab: str, hub: LiveHub) -> None:
    long = "zebra " * 20_000
    plan = owner.post("/docs", {"channel": lab, "title": "Plan", "content": long})
    todo = owner.post("/tasks", {"channel": lab, "title": "Feed the zebra"})
    elsewhere = hub.channel(owner, "elsewhere")
    hidden = owner.post("/docs", {"channel": elsewhere, "title": "Hidden zebra", "content": "zebra"})
    assert [each["id"] for each in _said("docs")["docs"]] == [plan["id"]]
    assert [each["id"] for each in _said("tasks")["tasks"]] == [todo["id"]]
    assert {each["id"] for each in _said("search", words="zebr")["results"]} == {plan["id"], todo["id"]}
    read, offset = "", 0
    while offset is not None:
        piece = _said("doc", id=plan["id"], offset=offset)
        assert len(piece["content"]) <= mcp_reads.PIECE_CHARS
        read, offset = read + piece["content"], piece["next"]
    assert read == long
    answer = _call("doc", id=hidden["id"])
    assert answer.is_error
    assert "There is no such document here." in answer.content[0].text


def test_an_attachment_that_is_text_comes_in_pieces(owner: Member, lab: str, hub: LiveHub) -> None:
    text = "é" * (mcp_reads.PIECE_CHARS + 5)
    wanted = _attach(owner, lab, text.encode())
    first = _said("attachment", id=wanted)
    assert (first["size"], len(first["text"]), first["next"]) == (
        len(text) * 2,
        mcp_reads.PIECE_CHARS,
        mcp_reads.PIECE_CHARS,
    )
    last = _said("attachment", id=wanted, offset=first["next"])
    assert (last["text"], last["next"]) == ("é" * 5, None)
    for data in (b"\xff\xfe", b"a\0b"):
        told = _said("attachment", id=_attach(owner, lab, data))
        assert told["text"] is None
        assert "relay messages fetch" in told["note"]
    elsewhere = hub.channel(owner, "elsewhere")
    assert _call("attachment", id=_attach(owner, elsewhere, b"secret")).is_error
    assert _call("attachment", id="../../owner.json").is_error
