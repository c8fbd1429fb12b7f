"""A real job of a real receiver, and what its credential lets it do: on the command line and through `relay mcp`."""

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from support_cli import Machine, machine
from support_time import WITHIN


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Machine, str, str]]:
    """A machine with agents bob and ann, the path of the credential of bob's job that runs, and its request."""
    with machine(tmp_path_factory.mktemp("job") / "home") as here:
        url = here.ok("hub", "start", "--port", "0")["url"]
        invite = here.ok("channels", "create", "lab")["invite"]
        for name in ("bob", "ann"):
            here.ok("connect", f"{url}#{invite['code']}", "--name", name)
            invite = here.ok("invites", "create")
            binding = ["--adapter", "command", "--argv", here.argv, "--profile", name]
            here.ok("receiver", "start", *binding)
        sent = here.ok("messages", "send", "--to", "bob", "--content", "hold it")
        path = here.project / "jobs"
        end = time.monotonic() + WITHIN
        while not path.exists() or not path.read_text().endswith("\n"):
            assert time.monotonic() < end
        yield here, path.read_text().splitlines()[0], sent["id"]
        (here.project / "release").touch()


def test_the_command_line_uses_the_job_and_nothing_else(job: tuple[Machine, str, str]) -> None:
    here, credential, request = job
    me = here.ok("whoami", RELAY_JOB=credential)
    assert (me["name"], me["message"]) == ("bob", request)
    assert {each["name"] for each in here.ok("peers", RELAY_JOB=credential)["peers"]} >= {"bob", "ann"}
    answer = here.ok("messages", "send", "--to", "ann", "--wait", "60", "--content", "help", RELAY_JOB=credential)
    assert answer["result"]["content"] == "did it"
    asked = answer["request"]
    assert (asked["author"]["name"], asked["chain"]["root"]) == ("bob", request)
    assert asked["chain"]["hop"] == 1 + here.ok("messages", "show", request)["chain"]["hop"]
    for words in (["receiver", "resume"], ["messages", "send", "--content", "x", "--profile", "default"]):
        answered = here.relay(*words, RELAY_JOB=credential)
        if words[0] == "receiver":
            assert (answered.code, answered.err["code"]) == (1, "inside_a_job")
        else:
            assert answered.out["author"]["name"] == "bob"


def test_the_tools_do_the_same_over_stdio(job: tuple[Machine, str, str]) -> None:
    here, credential, request = job
    argv = ["-m", "relay_receiver.cli.main", "mcp"]
    server = StdioServerParameters(command=sys.executable, args=argv, env=here.environment(RELAY_JOB=credential))

    async def go() -> dict[str, Any]:
        async with Client(server) as client:
            peers = await said(client, "peers", {})
            assert {each["name"] for each in peers["peers"]} >= {"bob", "ann"}
            sent = await said(client, "send", {"to": "ann", "content": "help"})
            assert sent["chain"]["root"] == request
            answer = await said(client, "wait", {"id": sent["id"], "timeout": 60})
            listed = await said(client, "messages", {"limit": 5})
            assert answer["result"]["id"] in {each["id"] for each in listed["messages"]}
            return answer

    assert asyncio.run(go())["result"]["content"] == "did it"


def test_a_job_whose_credential_is_gone_is_told_so(job: tuple[Machine, str, str], tmp_path: Path) -> None:
    here, _, _ = job
    answer = here.relay("messages", "send", "--content", "x", RELAY_JOB=str(tmp_path / "gone"))
    assert (answer.code, answer.err["code"]) == (3, "not_connected")


async def said(client: Any, name: str, arguments: dict[str, Any]) -> Any:
    answer = await client.call_tool(name, arguments)
    assert not answer.is_error, answer
    return json.loads(answer.content[0].text)
