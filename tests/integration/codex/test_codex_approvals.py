"""What the real Codex asks of people: shown whole, answered once, and found again by the next receiver."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support_codex import Heard, World, adapter, until, work, world

from relay_receiver.adapters import codex
from relay_receiver.adapters.base import Accepted, Finished, Result, Started, StillRunning, Waiting, WaitOver
from relay_receiver.adapters.codex import CodexAdapter

TOOLS = """\
from mcp.server.mcpserver import MCPServer
server = MCPServer("others", log_level="ERROR")

@server.tool()
def erase(what: str) -> str:
    return f"erased {what}"

server.run("stdio")
"""
ACCEPT = {"decision": "accept"}
DECLINE = {"decision": "decline"}


async def submit(made: CodexAdapter, prompt: str, session: str | None = None) -> tuple[str | None, str]:
    session = await made.open(session)
    answer = await made.submit(work("j", prompt))
    assert isinstance(answer, Accepted)
    return session, answer.execution


async def waits(heard: Heard, count: int = 1) -> list[Waiting]:
    """The first questions, in their order."""

    def found() -> list[Waiting]:
        return [event for event in heard.events if isinstance(event, Waiting)]

    await heard.until(lambda _: len(found()) >= count)
    return found()


def overs(heard: Heard) -> list[str]:
    return [event.question for event in heard.events if isinstance(event, WaitOver)]


def answers_sent(place: World) -> int:
    """Answers to approvals that went to Codex, as the spool proves them."""
    lines = (place.spool / "agent.lines").read_bytes().splitlines()
    return sum(b" in " in line[:24] and b'"decision"' in line for line in lines)


@pytest.mark.parametrize(("decision", "runs"), [(ACCEPT, True), (DECLINE, False)])
def test_a_command_runs_outside_the_sandbox_only_when_it_is_accepted(
    tmp_path: Path,
    decision: dict[str, Any],
    runs: bool,  # noqa: FBT001 - a case
) -> None:
    outside = tmp_path / "outside"

    async def check(place: World) -> None:
        async with adapter(place.binding(ask=True)) as (made, heard):
            await submit(made, f"model: escalate touch {outside}")
            [wait] = await waits(heard)
            assert (wait.kind, wait.key) == ("approval", "j.1")
            assert heard.events.index(Started(key="j.1")) < heard.events.index(wait)
            assert wait.action["command"].endswith(f"-lc 'touch {outside}'")
            assert wait.action["cwd"] == str(place.directory)
            assert wait.action["agentSays"] == "May it run outside?"
            assert not outside.exists()
            await made.answer(wait.question, decision)
            await made.answer(wait.question, ACCEPT)
            end = await heard.end("j.1")
            assert end.result is Result.COMPLETED
            assert overs(heard) == [wait.question]
            assert answers_sent(place) == 1
            assert outside.exists() is runs
            assert ("rejected by user" in end.text) is not runs
            assert end.evidence.get("declined") == (None if runs else 1)

    with world(tmp_path) as place:
        asyncio.run(check(place))


def test_a_decline_has_a_note_that_reaches_the_agent(tmp_path: Path) -> None:
    async def check(place: World) -> None:
        async with adapter(place.binding(ask=True)) as (made, heard):
            await submit(made, "model: escalate touch outside")
            [wait] = await waits(heard)
            await made.answer(wait.question, {"decision": "decline", "note": "nobody answered in time"})
            assert (await heard.end("j.1")).result is Result.COMPLETED
            rollout = next(place.home.glob("sessions/**/rollout-*.jsonl")).read_text()
            assert "nobody answered in time" in rollout

    with world(tmp_path) as place:
        asyncio.run(check(place))


def test_two_requests_at_once_are_answered_each_for_itself(tmp_path: Path) -> None:
    async def check(place: World) -> None:
        async with adapter(place.binding(ask=True)) as (made, heard):
            await submit(made, "model: escalates touch one;;touch two")
            one, two = await waits(heard, 2)
            first = "touch one" in one.action["command"]
            await made.answer(two.question, ACCEPT if first else DECLINE)
            await made.answer(one.question, DECLINE if first else ACCEPT)
            assert (await heard.end("j.1")).evidence["declined"] == 1
            assert {path.name for path in place.directory.iterdir()} == {"two"}

    with world(tmp_path) as place:
        asyncio.run(check(place))


@pytest.mark.parametrize("decision", [ACCEPT, DECLINE])
def test_a_patch_outside_the_directory_is_shown_whole(tmp_path: Path, decision: dict[str, Any]) -> None:
    # The sandbox may write below /tmp, where the tests are: somewhere else is outside.
    outside = Path("/var/tmp") / f"relay-{tmp_path.parent.name}-{tmp_path.name}"

    async def check(place: World) -> None:
        async with adapter(place.binding(ask=True)) as (made, heard):
            await submit(made, f"model: patch {outside} the new line")
            [wait] = await waits(heard)
            [change] = wait.action["changes"]
            assert (change["path"], change["diff"]) == (str(outside), "the new line\n")
            await made.answer(wait.question, decision)
            assert (await heard.end("j.1")).result is Result.COMPLETED
            assert outside.exists() is (decision is ACCEPT)

    try:
        with world(tmp_path) as place:
            asyncio.run(check(place))
    finally:
        outside.unlink(missing_ok=True)


def test_a_tool_of_others_is_asked_for(tmp_path: Path) -> None:
    server = tmp_path / "others.py"
    server.write_text(TOOLS)

    async def check(place: World) -> None:
        config = place.home / "config.toml"
        config.write_text(
            f'{config.read_text()}[mcp_servers.others]\ncommand = "{sys.executable}"\nargs = ["{server}"]\n'
        )
        async with adapter(place.binding(ask=True)) as (made, heard):
            session = await made.open(None)
            lines = place.spool / "agent.lines"
            assert await asyncio.to_thread(until, lambda: b'"name":"others","status":"ready"' in lines.read_bytes())
            await submit(made, 'model: tool mcp__others/erase {"what":"disk"}', session)
            [wait] = await waits(heard)
            assert wait.action["tool_params"] == {"what": "disk"}
            await made.answer(wait.question, ACCEPT)
            assert "erased disk" in (await heard.end("j.1")).text

    with world(tmp_path) as place:
        asyncio.run(check(place))


def test_an_interrupt_while_it_waits_drops_the_question(tmp_path: Path) -> None:
    async def check(place: World) -> None:
        async with adapter(place.binding(ask=True)) as (made, heard):
            _, execution = await submit(made, "model: escalate touch outside")
            [wait] = await waits(heard)
            assert await made.interrupt(execution)
            assert (await heard.end("j.1")).result is Result.CANCELLED
            assert overs(heard) == [wait.question]
            await made.answer(wait.question, ACCEPT)
            await made.recorded("j.1")
            answer = await made.submit(work("k", "model: say next"))
            assert isinstance(answer, Accepted)
            assert (await heard.end("k.1")).text == "next"
            assert not (place.directory / "outside").exists()

    with world(tmp_path) as place:
        asyncio.run(check(place))


async def _left_waiting(place: World, prompt: str) -> tuple[str | None, str, Sequence[Waiting]]:
    """A receiver that goes while its turn waits for a person."""
    async with adapter(place.binding(ask=True), detach=True) as (made, heard):
        session, execution = await submit(made, prompt)
        return session, execution, await waits(heard, prompt.count(";;") + 1)


@pytest.mark.parametrize("cut", [False, True])
def test_the_next_receiver_finds_the_same_question_and_its_answer_reaches_the_same_call(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cut: bool,  # noqa: FBT001 - a case
) -> None:
    outside = Path("/var/tmp") / f"relay-{tmp_path.parent.name}-{tmp_path.name}"
    if cut:
        monkeypatch.setattr(codex, "CUT_BYTES", 1)

    async def check(place: World) -> None:
        session, execution, [before] = await _left_waiting(place, f"model: patch {outside} text")
        async with adapter(place.binding(ask=True)) as (made, heard):
            assert await made.open(session) == session
            found = await made.recover(execution, work("j", ""))
            assert isinstance(found, StillRunning)
            assert list(found.waits) == [before]
            await made.answer(before.question, ACCEPT)
            assert (await heard.end("j.1")).result is Result.COMPLETED
            assert outside.exists()

    try:
        with world(tmp_path) as place:
            asyncio.run(check(place))
    finally:
        outside.unlink(missing_ok=True)


def test_an_answer_that_was_sent_before_the_receiver_went_is_not_sent_again(tmp_path: Path) -> None:
    async def check(place: World) -> None:
        async with adapter(place.binding(ask=True), detach=True) as (made, heard):
            session, execution = await submit(made, "model: escalates mkfifo gate; cat gate;;touch two")
            one, two = await waits(heard, 2)
            await made.answer(one.question, DECLINE)
            await heard.until(lambda event: event == WaitOver(key="j.1", question=one.question))
        async with adapter(place.binding(ask=True)) as (made, heard):
            await made.open(session)
            found = await made.recover(execution, work("j", ""))
            assert isinstance(found, StillRunning)
            assert [wait.question for wait in found.waits] == [two.question]
            await made.answer(one.question, ACCEPT)
            await made.answer(two.question, DECLINE)
            assert (await heard.end("j.1")).evidence["declined"] == 2
            assert answers_sent(place) == 2

    with world(tmp_path) as place:
        asyncio.run(check(place))


def test_a_question_that_came_while_no_receiver_was_there_is_put_to_people(tmp_path: Path) -> None:
    async def first(place: World) -> tuple[str | None, str]:
        async with adapter(place.binding(ask=True), detach=True) as (made, _):
            return await submit(made, "model: hold g escalate touch outside")

    async def second(place: World, session: str | None, execution: str) -> None:
        async with adapter(place.binding(ask=True)) as (made, heard):
            await made.open(session)
            found = await made.recover(execution, work("j", ""))
            assert isinstance(found, StillRunning)
            [wait] = found.waits
            assert await waits(heard) == [wait]
            await made.answer(wait.question, ACCEPT)
            await heard.end("j.1")
            assert (place.directory / "outside").exists()

    with world(tmp_path) as place:
        session, execution = asyncio.run(first(place))
        place.model.release("g")
        assert until(lambda: b"requestApproval" in (place.spool / "agent.lines").read_bytes())
        asyncio.run(second(place, session, execution))


def test_a_question_that_waits_is_declined_once_the_binding_asks_nobody_any_more(tmp_path: Path) -> None:
    async def check(place: World) -> None:
        session, execution, _ = await _left_waiting(place, "model: escalate touch outside")
        async with adapter(place.binding(ask=False)) as (made, heard):
            await made.open(session)
            assert isinstance(await made.recover(execution, work("j", "")), StillRunning | Finished)
            assert "rejected by user" in (await heard.end("j.1")).text
            assert not (place.directory / "outside").exists()

    with world(tmp_path) as place:
        asyncio.run(check(place))


def test_an_app_server_that_dies_while_it_waits_takes_the_question_along(tmp_path: Path) -> None:
    async def check(place: World) -> None:
        async with adapter(place.binding(ask=True)) as (made, heard):
            await submit(made, "model: escalate touch outside")
            [wait] = await waits(heard)
            assert made._server is not None
            await made._server._agent.end(0.0)
            assert (await heard.end("j.1")).result is Result.UNKNOWN
            await made.answer(wait.question, ACCEPT)
            await made.recorded("j.1")
            assert isinstance(await made.submit(work("k", "model: say again")), Accepted)
            assert (await heard.end("k.1")).text == "again"
            assert not (place.directory / "outside").exists()

    with world(tmp_path) as place:
        asyncio.run(check(place))
