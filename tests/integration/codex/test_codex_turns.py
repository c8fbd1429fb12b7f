"""Turns of the real Codex against the scripted model: what each comes to, and what is told on the way."""

import asyncio
import re
import time
from pathlib import Path

import pytest
from support_codex import Heard, World, adapter, work, world

from relay_receiver.adapters.base import Accepted, AdapterUnusable, Finished, Progress, Refused, Result, Scope, Started
from relay_receiver.adapters.codex import CodexAdapter


async def run(made: CodexAdapter, heard: Heard, job: str, prompt: str) -> Finished:
    answer = await made.submit(work(job, prompt))
    assert isinstance(answer, Accepted)
    end = await heard.end(f"{job}.1")
    await made.recorded(f"{job}.1")
    return end


def test_two_requests_in_a_row_and_a_restart_run_in_one_thread_with_the_same_sandbox(tmp_path: Path) -> None:
    async def life(place: World, session: str | None, *jobs: str) -> str | None:
        async with adapter(place.binding()) as (made, heard):
            session = await made.open(session)
            for job in jobs:
                end = await run(made, heard, job, f"model: say {job}")
                assert (end.result, end.text) == (Result.COMPLETED, job)
                assert end.usage is not None
                assert end.usage["inputTokens"] == 100
                assert Started(key=f"{job}.1") in heard.events
            refused = await run(made, heard, f"{jobs[-1]}x", "model: run touch inside && touch /etc/relay-outside")
            assert "Read-only file system" in refused.text
            assert (place.directory / "inside").exists()
            return session

    with world(tmp_path) as place:
        session = asyncio.run(life(place, None, "j1", "j2"))
        assert asyncio.run(life(place, session, "j3")) == session
        assert session is not None
        assert len(list(place.home.glob("sessions/**/rollout-*.jsonl"))) == 1


def test_what_failed_is_told_in_words_and_what_says_nothing_of_the_request_is_refused(tmp_path: Path) -> None:
    async def check(place: World) -> None:
        async with adapter(place.binding()) as (made, heard):
            await made.open(None)
            for index, (prompt, words) in enumerate(
                [
                    ("cut", "broke off"),
                    ("status 400", "did not take the request"),
                    ("status 500", "error of its own"),
                    ("fail context_length_exceeded", "context window"),
                ]
            ):
                end = await run(made, heard, f"f{index}", f"model: {prompt}")
                assert end.result is Result.FAILED
                assert words in end.reason
            for index, (prompt, code) in enumerate(
                [("limit 7200", "usage_limit"), ("status 429", "overloaded"), ("status 503", "overloaded")]
            ):
                end = await run(made, heard, f"r{index}", f"model: {prompt}")
                assert end.result is Result.REFUSED
                assert end.refused is not None
                assert (end.refused.scope, end.refused.code) == (Scope.BINDING, code)
                if code == "usage_limit":
                    assert end.refused.retry_at is not None
                    assert 7000 < end.refused.retry_at - time.time() <= 7200
            assert (await run(made, heard, "after", "model: say fine")).text == "fine"

    with world(tmp_path) as place:
        asyncio.run(check(place))


def test_answers_are_final_whole_or_nothing(tmp_path: Path) -> None:
    async def check(place: World) -> None:
        async with adapter(place.binding()) as (made, heard):
            await made.open(None)
            assert (await run(made, heard, "n", "model: note the answer")).text == "the answer"
            quiet = await run(made, heard, "q", "model: nothing")
            assert (quiet.result, quiet.text) == (Result.COMPLETED, "")
            assert (await run(made, heard, "b", "model: big 3000000")).text == "x" * 3_000_000
            assert (await run(made, heard, "s", "model: say small")).text == "small"
            assert (place.spool / "agent.lines").stat().st_size < 100_000

    with world(tmp_path) as place:
        asyncio.run(check(place))


def test_an_escalated_command_is_declined_with_a_note_and_the_turn_goes_on(tmp_path: Path) -> None:
    async def check(place: World) -> None:
        async with adapter(place.binding()) as (made, heard):
            await made.open(None)
            end = await run(made, heard, "e", "model: escalate touch outside-ran")
            assert end.result is Result.COMPLETED
            assert "rejected by user" in end.text
            assert end.evidence["declined"] == 1
            notes = [event.note for event in heard.events if isinstance(event, Progress)]
            assert any(note.startswith("declined: ") and "touch outside-ran" in note for note in notes)
            assert not (place.directory / "outside-ran").exists()
            rollout = next(place.home.glob("sessions/**/rollout-*.jsonl")).read_text()
            assert "nobody is there to approve" in rollout

    with world(tmp_path) as place:
        asyncio.run(check(place))


def test_an_interrupt_is_confirmed_and_ends_the_command_too(tmp_path: Path) -> None:
    async def check(place: World) -> None:
        async with adapter(place.binding()) as (made, heard):
            await made.open(None)
            answer = await made.submit(work("i", "model: run mkfifo gate; cat gate; touch late"))
            assert isinstance(answer, Accepted)
            await heard.until(lambda event: isinstance(event, Progress) and event.note.startswith("runs "))
            busy = await made.submit(work("other", "model: say no"))
            assert isinstance(busy, Refused)
            assert busy.code == "busy"
            assert await made.interrupt(answer.execution)
            end = await heard.end("i.1")
            assert end.result is Result.CANCELLED
            assert "commandsStillRunning" not in end.evidence
            assert await made.interrupt(answer.execution)
            await made.recorded("i.1")
            assert (await run(made, heard, "next", "model: say next")).text == "next"
            assert not (place.directory / "late").exists()

    with world(tmp_path) as place:
        asyncio.run(check(place))


@pytest.mark.parametrize("network", [False, True])
def test_the_network_of_commands_is_as_the_binding_says(tmp_path: Path, network: bool) -> None:  # noqa: FBT001 - a case
    async def check(place: World) -> str:
        port = re.search(r":(\d+)/", place.model.url)
        assert port is not None
        async with adapter(place.binding(network=network)) as (made, heard):
            await made.open(None)
            return (await run(made, heard, "n", f"model: run (: < /dev/tcp/127.0.0.1/{port[1]}) && echo OPEN")).text

    with world(tmp_path) as place:
        config = place.home / "config.toml"
        other_way = f"[sandbox_workspace_write]\nnetwork_access = {str(not network).lower()}\n"
        config.write_text(config.read_text() + other_way)
        text = asyncio.run(check(place))
    assert ("OPEN" in text) is network


def test_a_network_that_changed_is_that_of_the_next_turn(tmp_path: Path) -> None:
    async def life(place: World, session: str | None, job: str, *, network: bool, detach: bool) -> str | None:
        async with adapter(place.binding(network=network), detach=detach) as (made, heard):
            session = await made.open(session)
            assert (await run(made, heard, job, "model: say x")).text == "x"
            return session

    with world(tmp_path) as place:
        session = asyncio.run(life(place, None, "a", network=False, detach=True))
        assert asyncio.run(life(place, session, "b", network=True, detach=False)) == session


def test_changed_settings_hold_from_the_next_turn_in_the_same_thread(tmp_path: Path) -> None:
    async def check(place: World) -> None:
        port = re.search(r":(\d+)/", place.model.url)
        assert port is not None
        reach = f"model: run (: < /dev/tcp/127.0.0.1/{port[1]}) && echo OPEN"
        async with adapter(place.binding()) as (made, heard):
            session = await made.open(None)
            assert "OPEN" not in (await run(made, heard, "a", reach)).text
            made.rebind(place.binding(network=True))
            assert "OPEN" in (await run(made, heard, "b", reach)).text
            made.rebind(place.binding())
            assert "OPEN" not in (await run(made, heard, "c", reach)).text
            assert await made.open(session) == session

    with world(tmp_path) as place:
        asyncio.run(check(place))


def test_a_codex_that_would_not_run_as_the_binding_says_is_refused(tmp_path: Path) -> None:
    async def check(place: World) -> None:
        async with adapter(place.binding()) as (made, _):
            made._thread._wanted = lambda: {  # type: ignore[method-assign]  # what a policy of the machine would do
                "cwd": str(place.directory),
                "approvalPolicy": "on-request",
                "sandbox": "read-only",
            }
            with pytest.raises(AdapterUnusable, match="instead of 'workspaceWrite'"):
                await made.open(None)

    with world(tmp_path) as place:
        asyncio.run(check(place))
