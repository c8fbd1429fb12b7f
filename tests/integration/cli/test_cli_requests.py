"""Agents ask people, and people answer, on the command line: real processes, a real hub, a real job."""

import contextlib
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support_cli import Machine, machine
from support_time import WITHIN

from relay_receiver.client import profiles
from relay_receiver.wire.action import action_hash

ACTION = {"kind": "command", "command": "rm -rf \u202edliub\x1b[2J", "cwd": "/srv/app", "agentSays": "it is\u200b safe"}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Machine, str, str]]:
    """A machine with the agent bob, the credential of a run of bob's that is open, and its request."""
    place = tmp_path_factory.mktemp("requests")
    with machine(place / "home") as made:
        url = made.ok("hub", "start", "--port", "0")["url"]
        invite = made.ok("channels", "create", "lab")["invite"]
        made.ok("connect", f"{url}#{invite['code']}", "--name", "bob")
        message = made.ok("messages", "send", "--to", "bob", "--content", "do it")["id"]
        agent, _ = bob(made)
        fence = as_bob(made, "receiver", {"holderId": "h", "runtime": "test"})["fence"]
        run = {"holderId": "h", "fence": fence, "requestId": "j1", "message": message, "attempt": 1, "claim": "c"}
        begun = as_bob(made, "receiver/run", {"action": "begin", **run})
        credential = profiles.JobCredential(
            url=url,
            workspace=agent.workspace,
            agent=agent.agent,
            agent_name="bob",
            channel=agent.channels[0][0],
            job="j1",
            message=message,
            token=begun["credential"],
        )
        credential.write(place / "credential")
        yield made, str(place / "credential"), message


def approval(here: Machine, operation: str, **more: Any) -> Any:
    """As bob's receiver asks."""
    said = {"kind": "approval", "title": "Run it?", "action": ACTION, "operationId": operation}
    return as_bob(here, "requests", {**said, **more})


def as_bob(here: Machine, path: str, body: dict[str, Any]) -> Any:
    agent, token = bob(here)
    with httpx.Client(trust_env=False, headers={"authorization": f"Bearer {token}"}) as client:
        answer = client.post(f"{agent.url}/api/v1/{path}", json={"channel": agent.channels[0][0], **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


def bob(here: Machine) -> tuple[profiles.Profile, str]:
    """Bob's profile on that machine, and its token."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RELAY_HOME", str(here.home))
        found = profiles.load("bob")
        return found, found.token()


def test_a_job_asks_a_person_answers_and_the_job_goes_on(here: tuple[Machine, str, str]) -> None:
    machine, credential, message = here
    words = ["requests", "ask", "--title", "Which branch?", "--option", "main=The main one", "--option", "dev"]
    asked = machine.ok(*words, RELAY_JOB=credential)
    assert (asked["kind"], asked["message"], asked["state"]) == ("choice", message, "open")
    shown = machine.ok("messages", "show", message)["delivery"]
    assert (shown["stage"], shown["waitsOn"][0]["request"]) == ("waiting", asked["id"])
    text = machine.text("messages", "show", message)
    assert "on anybody in the channel: Which branch?" in text
    assert f"relay requests show {asked['id']}" in text
    assert [each["id"] for each in machine.ok("requests", "list")["requests"]] == [asked["id"]]
    assert "choice main: The main one" in machine.text("requests", "show", asked["id"])
    waiting = subprocess.Popen(
        [sys.executable, "-m", "relay_receiver.cli.main", "requests", "show", asked["id"], "--wait", "60"],
        env=machine.environment(RELAY_JOB=credential),
        stdout=subprocess.PIPE,
        text=True,
    )
    answered = machine.ok("requests", "respond", asked["id"], "--choice", "main")
    assert (answered["state"], answered["answeredBy"]["name"]) == ("answered", machine.ok("whoami")["name"])
    out, _ = waiting.communicate(timeout=WITHIN)
    assert waiting.returncode == 0
    assert json.loads(out)["answer"] == {"choice": "main"}
    again = machine.relay("requests", "show", asked["id"], "--wait", "1", RELAY_JOB=credential)
    assert (again.code, again.out["state"], again.out["answer"]) == (0, "applied", {"choice": "main"})
    assert machine.ok("messages", "show", message)["delivery"]["stage"] == "running"


def test_a_question_that_nobody_answers_in_time_can_be_asked_after_again(here: tuple[Machine, str, str]) -> None:
    machine, credential, _ = here
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}, "go": {"type": "boolean"}}}
    words = ["requests", "ask", "--title", "How many?", "--schema-file", "-", "--wait", "1"]
    late = machine.relay(*words, say=json.dumps({**schema, "required": ["n"]}), RELAY_JOB=credential)
    assert (late.code, late.out["state"]) == (5, "open")
    request = late.out["id"]
    for wrong in (["--field", "n=0"], ["--field", "m=1"], ["--field", "n"], ["--text", "1"], ["--json", "{"], []):
        answer = machine.relay("requests", "respond", request, *wrong)
        assert (answer.code, answer.err["code"]) == (2, "usage"), (wrong, answer)
    said = machine.ok("requests", "respond", request, "--field", "n=3", "--field", "go=yes")
    assert said["answer"] == {"n": 3, "go": True}
    assert machine.ok("requests", "show", request, "--wait", RELAY_JOB=credential)["answer"] == {"n": 3, "go": True}


def test_a_job_cannot_answer_nor_see_what_its_receiver_asks(here: tuple[Machine, str, str]) -> None:
    machine, credential, _ = here
    request = approval(machine, "ask:1")["id"]
    refused = machine.relay("requests", "respond", request, "--accept", RELAY_JOB=credential)
    assert (refused.code, refused.err["code"]) == (1, "inside_a_job")
    hidden = machine.relay("requests", "show", request, RELAY_JOB=credential)
    assert (hidden.code, hidden.err["code"]) == (3, "not_found")
    agent = machine.relay("requests", "respond", request, "--accept", "--profile", "bob")
    assert (agent.code, agent.err["code"]) == (3, "person_needed")
    assert machine.ok("requests", "show", request)["state"] == "open"


def test_an_approval_is_shown_whole_and_answered_once_for_what_was_shown(here: tuple[Machine, str, str]) -> None:
    machine, _, _ = here
    request = approval(machine, "ask:2", description="d" * 5000)["id"]
    text = machine.text("requests", "show", request)
    assert "rm -rf ⟨U+202E⟩dliub⟨U+001B⟩[2J" in text
    assert "\u202e" not in text
    assert "\x1b" not in text
    assert "/srv/app" in text
    assert "it is⟨U+200B⟩ safe" in text
    assert "d" * 5000 in text
    assert text.rstrip().endswith(f"next: relay requests respond {request} --accept|--decline")
    other = machine.relay("requests", "respond", request, "--accept", "--action-hash", "0" * 64)
    assert (other.code, other.err["code"]) == (1, "action_changed")
    done = machine.ok("requests", "respond", request, "--decline", "--action-hash", action_hash(ACTION))
    assert done["answer"] == {"decision": "decline"}
    assert machine.ok("requests", "respond", request, "--decline") == done
    second = machine.relay("requests", "respond", request, "--accept")
    assert (second.code, second.err["code"]) == (3, "request_answered")
    me = machine.ok("whoami")["name"]
    assert second.err["error"].startswith(f"{me} has answered")
    assert f"{request}  approval  bob  answered by {me}" in machine.text("requests", "list", "--state", "ended")


def test_at_a_terminal_it_is_shown_and_asked_for(here: tuple[Machine, str, str]) -> None:
    machine, _, _ = here
    request = approval(machine, "ask:3")["id"]
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "r+b", buffering=0) as terminal:
        person = subprocess.Popen(
            [sys.executable, "-m", "relay_receiver.cli.main", "requests", "respond", request],
            env=machine.environment(),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        seen = b""
        while b"accept | decline)" not in seen:
            seen += terminal.read(1024)
        assert "rm -rf ⟨U+202E⟩dliub" in seen.decode()
        assert machine.ok("requests", "show", request)["state"] == "open"
        terminal.write(b"decline\n")
        while b"Answered." not in seen:
            seen += terminal.read(1024)
        with contextlib.suppress(OSError):  # Linux says so at the end of a terminal
            while terminal.read(1024):
                pass
        assert person.wait(WITHIN) == 0
    assert machine.ok("requests", "show", request)["answer"] == {"decision": "decline"}


def test_only_a_choice_has_options_and_a_title_is_needed(here: tuple[Machine, str, str]) -> None:
    machine, credential, _ = here
    for wrong in (
        ["--title", " "],
        ["--title", "x", "--kind", "choice"],
        ["--title", "x", "--kind", "input", "--option", "a"],
        ["--title", "x", "--kind", "form"],
        ["--title", "x", "--kind", "approval"],
        [],
    ):
        answer = machine.relay("requests", "ask", *wrong, RELAY_JOB=credential)
        assert (answer.code, answer.err["code"]) == (2, "usage"), wrong


def test_what_the_hub_does_not_take_is_told_in_a_sentence(here: tuple[Machine, str, str], tmp_path: Path) -> None:
    machine, credential, _ = here
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "object", "properties": {"a": {"type": "string", "format": "uri"}}}')
    answer = machine.relay("requests", "ask", "--title", "x", "--schema-file", str(schema), RELAY_JOB=credential)
    assert (answer.code, answer.err["code"]) == (2, "usage")
    assert "`format`" in answer.err["error"]
    missing = machine.relay("requests", "respond", "req_guess", "--accept")
    assert (missing.code, missing.err["code"]) == (3, "not_found")
