"""`relay` as tools of the real Codex: its MCP server runs outside the sandbox, with the credential of the job."""

import asyncio
from pathlib import Path

from support_codex import World, adapter, work, world

from relay_receiver.adapters.base import Accepted, Result
from relay_receiver.client.profiles import JobCredential
from relay_receiver.testing.hub import Answer, FakeHub


def credential(url: str, path: Path) -> Path:
    JobCredential(
        url=url,
        workspace="w",
        agent="a",
        agent_name="alice",
        channel="c1",
        job="j",
        message="m",
        token="the-token-of-the-job",
    ).write(path)
    return path


def test_a_job_reaches_the_hub_by_its_tools_with_its_network_closed(tmp_path: Path) -> None:
    async def check(place: World) -> None:
        async with FakeHub() as hub, adapter(place.binding(tools=True)) as (made, heard):
            hub.on("GET", "/channels/c1/members", lambda _: Answer(json={"members": [{"id": "b", "name": "bob"}]}))
            await made.open(None)
            path = credential(hub.url, place.spool / "agent.job")
            answer = await made.submit(work("j", "model: tool mcp__relay/peers {}", credential=path))
            assert isinstance(answer, Accepted)
            end = await heard.end("j.1")
            assert end.result is Result.COMPLETED
            assert "bob" in end.text
            assert any("calls relay.peers" in getattr(event, "note", "") for event in heard.events)
            assert "declined" not in end.evidence
            assert hub.calls[-1].headers["authorization"] == "Bearer the-token-of-the-job"

    with world(tmp_path) as place:
        (place.directory / "relay_receiver").mkdir()
        (place.directory / "relay_receiver" / "__init__.py").write_text("raise SystemExit('planted by a job')")
        asyncio.run(check(place))


def test_without_tools_there_are_none_and_the_job_still_knows_that_it_is_one(tmp_path: Path) -> None:
    async def check(place: World) -> None:
        async with adapter(place.binding()) as (made, heard):
            await made.open(None)
            assert isinstance(await made.submit(work("j", "model: run echo job=$RELAY_JOB")), Accepted)
            assert f"job={place.spool / 'agent.job'}" in (await heard.end("j.1")).text
        assert "mcp__relay" not in place.model.requests[0]["tools"]

    with world(tmp_path) as place:
        asyncio.run(check(place))
