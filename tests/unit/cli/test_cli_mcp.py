"""The tools of `relay mcp`, called by a real MCP client over memory; the hub is a stand-in."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from mcp import Client

from relay_receiver.cli import asking, exchange, mcp
from relay_receiver.cli.acting import Actor
from relay_receiver.wire.errors import RelayError

ASKED: dict[str, Any] = {"id": "r1", "state": "open", "kind": "choice", "answer": None, "author": {"id": "a1"}}


class Speaking(Actor):
    """An actor whose hub is a stand-in."""

    async def converse(self, say: Callable[[Any], Awaitable[Any]]) -> Any:
        return await say(Hub(self.token))


class Hub:
    """A channel with one other agent, which tells with which token it was asked."""

    def __init__(self, token: str) -> None:
        self.token = token

    async def members(self, _: str) -> list[dict[str, Any]]:
        return [{"id": "b1", "name": "bob", "kind": "agent", "receiver": None}]

    async def history(self, channel: str, **asked: Any) -> dict[str, Any]:
        return {"messages": [], "channel": channel, "token": self.token, **asked}

    async def create_request(self, body: dict[str, Any]) -> dict[str, Any]:
        return {**ASKED, **body}

    async def request(self, request: str, *, wait: int | None = None) -> dict[str, Any]:
        _ = wait
        return {**ASKED, "id": request, "state": "answered", "answer": {"choice": "dev"}}

    async def close_request(self, request: str, state: str) -> dict[str, Any]:
        return {**ASKED, "id": request, "state": state, "answer": {"choice": "dev"}}

    async def post_message(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"id": "m1", "mentions": [], **body}


@pytest.fixture
def tokens(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the credential file holds, one a call; empty where there is none."""
    left: list[str] = []

    def actor() -> Actor:
        if not left:
            raise RelayError("This job has no credential (any more).", code="not_connected", hint="It is over.")
        return Speaking(
            url="http://127.0.0.1:1",
            token=left.pop(0),
            workspace="w",
            id="a1",
            name="ann",
            channels=(("c1", "c1"),),
            job=True,
        )

    monkeypatch.setattr(mcp, "actor", actor)
    return left


def call(name: str, arguments: dict[str, Any], **more: Any) -> Any:
    async def go() -> Any:
        async with Client(mcp.server()) as client:
            return await client.call_tool(name, arguments, **more)

    return asyncio.run(go())


def said(answer: Any) -> Any:
    assert not answer.is_error, answer
    return json.loads(answer.content[0].text)


def test_only_send_and_ask_are_not_read_only() -> None:
    async def go() -> dict[str, bool | None]:
        async with Client(mcp.server()) as client:
            listed = await client.list_tools()
            assert all(tool.description for tool in listed.tools)
            return {tool.name: tool.annotations and tool.annotations.read_only_hint for tool in listed.tools}

    assert asyncio.run(go()) == {
        "send": False,
        "wait": True,
        "ask": False,
        "messages": True,
        "peers": True,
        "docs": True,
        "doc": True,
        "tasks": True,
        "search": True,
        "attachment": True,
    }


def test_send_makes_a_request_of_what_has_a_receiver(tokens: list[str]) -> None:
    tokens.append("t1")
    stored = said(call("send", {"content": "do it", "to": "bob"}))
    assert (stored["kind"], stored["to"], stored["channel"]) == ("request", "b1", "c1")


def test_each_call_reads_the_credential_anew(tokens: list[str]) -> None:
    async def go() -> list[str]:
        async with Client(mcp.server()) as client:
            first = await client.call_tool("messages", {"limit": 3})
            second = await client.call_tool("messages", {})
            return [said(first)["token"], said(second)["token"]]

    tokens += ["t1", "t2"]
    assert asyncio.run(go()) == ["t1", "t2"]


def test_an_error_is_told_to_the_agent_in_one_sentence(tokens: list[str]) -> None:
    answer = call("peers", {})
    assert answer.is_error
    assert answer.content[0].text.endswith("This job has no credential (any more). It is over.")
    tokens.append("t")
    answer = call("send", {"content": "x", "to": "carl"})
    assert answer.is_error
    assert "Nobody here is called carl" in answer.content[0].text


def test_a_fault_of_ours_does_not_end_the_server(tokens: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("0")

    monkeypatch.setattr(exchange, "send", broken)
    tokens += ["t", "t"]

    async def go() -> bool:
        async with Client(mcp.server()) as client:
            first = await client.call_tool("send", {"content": "x"})
            second = await client.call_tool("peers", {})
            return bool(first.is_error and not second.is_error)

    assert asyncio.run(go())


def test_a_long_wait_gives_signs_of_life_and_ends(tokens: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    async def wait(_who: Actor, _hub: Any, _message: str, *, timeout: float) -> tuple[dict[str, Any], int]:  # noqa: ASYNC109 - as in exchange
        asked.append(timeout)
        return {"delivery": {"stage": "running"}}, 5

    monkeypatch.setattr(exchange, "wait", wait)
    tokens.append("t")
    heard: list[float] = []

    async def hear(progress: float, _total: float | None, _message: str | None) -> None:
        heard.append(progress)

    answer = said(call("wait", {"id": "m1", "timeout": 99999}, progress_callback=hear))
    assert answer["delivery"]["stage"] == "running"
    assert sum(asked) == 600
    assert len(heard) > 50


def test_ask_returns_what_a_person_answered(tokens: list[str]) -> None:
    tokens.append("t")
    answer = said(call("ask", {"title": "Which branch?", "options": ["main=The main one", "dev"]}))
    assert (answer["id"], answer["state"], answer["answer"]) == ("r1", "applied", {"choice": "dev"})


def test_ask_goes_on_waiting_for_what_was_asked_before(tokens: list[str]) -> None:
    tokens.append("t")
    assert said(call("ask", {"id": "r7"}))["id"] == "r7"


def test_ask_gives_signs_of_life_and_ends_with_the_id_to_ask_again(
    tokens: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    async def answer(_who: Actor, _hub: Any, request: str, *, timeout: float) -> tuple[dict[str, Any], int]:  # noqa: ASYNC109 - as in asking
        asked.append(timeout)
        return {**ASKED, "id": request}, 5

    monkeypatch.setattr(asking, "answer", answer)
    tokens.append("t")
    heard: list[float] = []

    async def hear(progress: float, _total: float | None, _message: str | None) -> None:
        heard.append(progress)

    told = said(call("ask", {"title": "Which?", "timeout": 99999}, progress_callback=hear))
    assert (told["id"], told["state"]) == ("r1", "open")
    assert sum(asked) == 600
    assert len(heard) > 50


@pytest.mark.parametrize(
    "wrong", [{}, {"title": " "}, {"title": "x", "schema": {"type": "object", "properties": {"a": {"type": "date"}}}}]
)
def test_ask_tells_what_is_wrong_with_the_question(tokens: list[str], wrong: dict[str, Any]) -> None:
    tokens.append("t")
    answer = call("ask", wrong)
    assert answer.is_error
    assert len(answer.content[0].text) < 400
