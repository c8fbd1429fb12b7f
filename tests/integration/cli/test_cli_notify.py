"""`relay notify`: a real hub, a real command, killed in the middle; what needs a person is told, once."""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from support_time import ENDLESS, WITHIN
from support_world import World, until, world

HOOK = """
import json, os, sys, time
home = {home!r}
def at(name):
    return os.path.join(home, name)
event = json.loads(sys.stdin.read())
try:
    os.close(os.open(at("running"), os.O_CREAT | os.O_EXCL))
except FileExistsError:
    open(at("clash"), "a").write(event["id"])
with open(at("events"), "a") as log:
    log.write(json.dumps({{"event": event, "env": dict(os.environ), "pid": os.getpid()}}) + "\\n")
while os.path.exists(at("hold")) and os.path.isdir(home):
    time.sleep(0.01)
os.unlink(at("running"))
print("the hook speaks")
sys.exit(3 if os.path.exists(at("fail")) else 0)
"""


class Desk:
    """A person with a hook, and an agent that asks."""

    def __init__(self, w: World, folder: Path) -> None:
        folder.mkdir()
        self.w, self.folder = w, folder
        self.program = folder / "hook.py"
        self.program.write_text(HOOK.format(home=str(folder)))
        self.errors = folder / "stderr"
        w.agent("bob")

    @property
    def argv(self) -> list[str]:
        command = shlex.join([sys.executable, "-I", "-S", str(self.program)])
        line = [sys.executable, "-m", "relay_receiver.cli.main", "--profile", "owner", "--output", "json", "notify"]
        return [*line, "--exec", command]

    @contextlib.contextmanager
    def notify(self, *more: str, **env: str) -> Iterator["subprocess.Popen[str]"]:
        with self.errors.open("a") as errors:
            process = subprocess.Popen(
                [*self.argv, *more], stdout=subprocess.PIPE, stderr=errors, text=True, env={**os.environ, **env}
            )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()
            self.release("hold")
            for each in self.entries():
                until(lambda pid=each["pid"]: not psutil.pid_exists(pid), seconds=WITHIN, what="the end of a hook")

    def once(self, *more: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*self.argv, "--once", *more], capture_output=True, text=True, check=False, timeout=WITHIN
        )

    def ask(self, title: str) -> str:
        body = {"channel": self.w.channel, "kind": "input", "title": title}
        return "request:" + str(self.w.do("bob", lambda hub: hub.create_request(body))["id"])

    def answer(self, need: str) -> None:
        self.w.do("owner", lambda hub: hub.respond(need.removeprefix("request:"), {"text": "yes"}))

    def entries(self) -> list[dict[str, Any]]:
        path = self.folder / "events"
        return [json.loads(each) for each in path.read_text().splitlines()] if path.exists() else []

    @property
    def told(self) -> list[str]:
        return [each["event"]["id"] for each in self.entries()]

    def remembered(self) -> dict[str, str]:
        try:
            found: dict[str, str] = json.loads((self.w.home / "profiles/owner/notify.json").read_text())["told"]
        except FileNotFoundError:
            return {}
        return found

    def until_told(self, *needs: str) -> None:
        """Each was told, and that is remembered."""
        until(lambda: set(needs) <= set(self.remembered()), seconds=WITHIN, what=f"{needs}, not only {self.told}")

    def until_said(self, words: str) -> None:
        until(lambda: words in self.errors.read_text(), seconds=WITHIN, what=words)

    def hold(self, name: str) -> None:
        (self.folder / name).touch()

    def release(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)

    @property
    def clash(self) -> bool:
        return (self.folder / "clash").exists()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with world(tmp_path) as w:
        yield Desk(w, tmp_path / "hook")


def test_each_thing_is_told_once_over_kills_of_it_and_of_the_hub(desk: Desk) -> None:
    first = desk.ask("one")
    with desk.notify() as process:
        desk.until_told(first)
        refused = desk.once()
        assert (refused.returncode, json.loads(refused.stderr)["code"]) == (1, "already_running")
        process.kill()
    second = desk.ask("two")
    with desk.notify():
        desk.until_told(first, second)
        desk.w.kill_hub()
        desk.until_said("The hub is away")
        desk.w.start_hub()
        third = desk.ask("three")
        desk.until_told(third)
    assert desk.told == [first, second, third]
    [entry, *_] = desk.entries()
    assert entry["event"]["request"]["title"] == "one"
    assert (entry["event"]["what"], entry["event"]["profile"]) == ("input", "owner")


def test_what_was_answered_meanwhile_is_not_told_and_is_forgotten(desk: Desk) -> None:
    answered, open_one = desk.ask("answered"), desk.ask("open")
    desk.answer(answered)
    assert desk.once().returncode == 0
    assert desk.told == [open_one]
    desk.answer(open_one)
    assert desk.once().returncode == 0
    assert (desk.told, desk.remembered()) == ([open_one], {})


@pytest.mark.parametrize(("point", "times"), [("notify.run.before", 1), ("notify.run.after", 2), ("notify.told", 1)])
def test_killed_at_any_point_nothing_is_lost_and_at_the_worst_one_is_told_again(
    desk: Desk, tmp_path: Path, point: str, times: int
) -> None:
    need = desk.ask("one")
    faults = tmp_path / "faults"
    faults.mkdir()
    (faults / "plan").write_text(json.dumps({"point": point, "do": "kill", "skip": 0}))
    with desk.notify(RELAY_FAULTS=str(faults)) as process:
        assert process.wait(WITHIN) == -signal.SIGKILL
    with desk.notify():
        desk.until_told(need)
    assert desk.told == [need] * times
    assert not desk.clash


def test_never_two_at_once_also_where_the_first_outlived_its_caller(desk: Desk) -> None:
    desk.hold("hold")
    need = desk.ask("one")
    with desk.notify("--time", str(ENDLESS)) as process:
        until(lambda: desk.told, seconds=WITHIN, what="the first call")
        process.kill()
        process.wait()
        [first] = desk.entries()
        assert psutil.pid_exists(first["pid"])
        with desk.notify("--time", str(ENDLESS)):
            desk.until_said("still runs; it is waited for")
            other = desk.ask("two")
            desk.release("hold")
            desk.until_told(need, other)
    assert desk.told == [need, need, other]
    assert not desk.clash


def test_what_outlives_its_caller_and_its_time_is_ended(desk: Desk) -> None:
    desk.hold("hold")
    desk.ask("one")
    with desk.notify("--time", str(ENDLESS)) as process:
        until(lambda: desk.told, seconds=WITHIN, what="the first call")
        process.kill()
        process.wait()
        [first] = desk.entries()
        with desk.notify("--time", "0.2"):
            until(lambda: not psutil.pid_exists(first["pid"]), seconds=WITHIN, what="its end")
            desk.until_said("It was ended")


def test_a_command_that_fails_is_run_again_and_says_so(desk: Desk) -> None:
    desk.hold("fail")
    need = desk.ask("one")
    with desk.notify():
        desk.until_said("exit status 3. It is run again in")
        assert need not in desk.remembered()
        desk.release("fail")
        desk.until_told(need)
    assert len(desk.told) >= 2
    assert set(desk.told) == {need}
    assert "the hook speaks" in desk.errors.read_text()


def test_a_command_that_takes_too_long_is_ended(desk: Desk) -> None:
    desk.hold("hold")
    need = desk.ask("one")
    with desk.notify("--time", "0.5"):
        desk.until_said("took longer than 0.5 s")
        [first, *_] = desk.entries()
        until(lambda: not psutil.pid_exists(first["pid"]), seconds=WITHIN, what="its end")
        desk.release("hold")
        desk.release("running")  # it was killed, and could not say that it is over
        desk.until_told(need)


def test_once_says_how_it_went(desk: Desk) -> None:
    assert desk.once().returncode == 0
    desk.hold("fail")
    need = desk.ask("one")
    failed = desk.once()
    assert failed.returncode == 1
    assert "exit status 3" in failed.stderr
    desk.release("fail")
    done = desk.once()
    assert (done.returncode, json.loads(done.stdout)["told"]) == (0, need)
    desk.w.kill_hub()
    assert desk.once().returncode == 3


def test_its_environment_is_built_and_its_input_is_the_event_alone(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "hidden")
    monkeypatch.setenv("A_TOOL", "shown")
    desk.ask("one")
    assert desk.once("--env", "A_TOOL").returncode == 0
    [entry] = desk.entries()
    assert "A_SECRET" not in entry["env"]
    assert entry["env"]["A_TOOL"] == "shown"
    assert entry["env"]["RELAY_HOME"] == os.environ["RELAY_HOME"]
    assert profiles_token(desk) not in json.dumps(entry)


def profiles_token(desk: Desk) -> str:
    return str(json.loads((desk.w.home / "profiles/owner/secrets.json").read_text())["token"])


def test_a_command_that_does_not_read_or_is_not_there(desk: Desk) -> None:
    desk.ask("one")
    quiet = [*desk.argv[:-1], "true", "--once"]
    assert subprocess.run(quiet, check=False, capture_output=True, timeout=WITHIN).returncode == 0
    for wrong in ("/no/such/program", "'", ""):
        answer = subprocess.run([*desk.argv[:-1], wrong], check=False, capture_output=True, text=True, timeout=WITHIN)
        assert (answer.returncode, json.loads(answer.stderr)["code"]) == (2, "usage")


def test_an_agents_profile_and_a_job_are_refused(desk: Desk) -> None:
    as_bob = [each if each != "owner" else "bob" for each in desk.argv]
    refused = subprocess.run(as_bob, check=False, capture_output=True, text=True, timeout=WITHIN)
    assert json.loads(refused.stderr)["code"] == "person_needed"
    inside = {**os.environ, "RELAY_JOB": "/nowhere"}
    refused = subprocess.run(desk.argv, check=False, capture_output=True, text=True, timeout=WITHIN, env=inside)
    assert json.loads(refused.stderr)["code"] == "inside_a_job"
