"""A real job of a real receiver asks a person by itself, through the command line that it was given."""

import json
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support_cli import Machine, machine
from support_time import WITHIN

ASKING = """
import json, subprocess, sys
said = json.loads(sys.stdin.read())["prompt"].rpartition("This is for you:")[2]
relay = [sys.executable, "-m", "relay_receiver.cli.main", "requests"]
words = ["ask", "--title", "Which branch?", "--option", "main", "--option", "dev"]
if "wait" in said:
    words.append("--wait")
done = subprocess.run([*relay, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
if done.returncode:
    sys.exit(done.stderr)
asked = json.loads(done.stdout)
tried = subprocess.run([*relay, "respond", asked["id"], "--choice", "main"], capture_output=True, text=True)
told = [asked["id"], asked["state"], asked["answer"], json.loads(tried.stderr)["code"]]
print(json.dumps({"text": json.dumps(told)}))
"""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    path = tmp_path_factory.mktemp("asks")
    program = path / "asking.py"
    program.write_text(textwrap.dedent(ASKING))
    with machine(path / "home") as made:
        url = made.ok("hub", "start", "--port", "0")["url"]
        invite = made.ok("channels", "create", "lab")["invite"]
        made.ok("connect", f"{url}#{invite['code']}", "--name", "bob")
        argv = json.dumps([sys.executable, str(program)])
        made.ok("receiver", "start", "--adapter", "command", "--argv", argv, "--profile", "bob")
        yield made


def until(look: Callable[[], Any]) -> Any:
    end = time.monotonic() + WITHIN
    while not (found := look()):
        assert time.monotonic() < end
    return found


def test_the_job_waits_the_requester_sees_on_whom_and_the_answer_reaches_it(here: Machine) -> None:
    message = here.ok("messages", "send", "--to", "bob", "--content", "wait for it")["id"]
    asked = until(lambda: here.ok("requests", "list")["requests"])[0]
    assert (asked["message"], asked["author"]["name"]) == (message, "bob")
    shown = here.text("messages", "show", message)
    assert "waiting" in shown
    assert "Which branch?" in shown
    assert f"relay requests show {asked['id']}" in shown
    here.ok("requests", "respond", asked["id"], "--choice", "dev")
    answer = here.ok("messages", "wait", message, "--timeout", str(WITHIN))
    said = json.loads(answer["result"]["content"])
    assert said == [asked["id"], "applied", {"choice": "dev"}, "inside_a_job"]
    assert here.ok("requests", "show", asked["id"])["state"] == "applied"


def test_what_a_job_still_asks_ends_with_it(here: Machine) -> None:
    answer = here.ok("messages", "send", "--to", "bob", "--content", "do not hold", "--wait", str(WITHIN))
    request, state, nothing, _ = json.loads(answer["result"]["content"])
    assert (state, nothing) == ("open", None)
    ended = here.relay("requests", "show", request, "--wait")
    assert (ended.code, ended.out["state"]) == (1, "superseded")
    late = here.relay("requests", "respond", request, "--choice", "main")
    assert (late.code, late.err["code"]) == (3, "request_superseded")
