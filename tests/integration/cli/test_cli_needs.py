"""What needs a person, in `relay status`, `relay watch --needs-me` and `relay top`: real hub, real receivers."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest
from support_time import WITHIN
from support_world import World, until, world

from relay_receiver.client import profiles
from relay_receiver.processes.identity import ProcessIdentity, started_by
from relay_receiver.receiver import verbs

RELAY = [sys.executable, "-m", "relay_receiver.cli.main"]


@pytest.fixture
def w(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


def relay(*words: str, **env: str) -> tuple[int, Any]:
    done = subprocess.run(
        [*RELAY, "--output", "json", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN,
        env={**os.environ, **env},
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout or done.stderr)


def text(*words: str) -> str:
    line = [*RELAY, "--output", "text", *words]
    return subprocess.run(line, capture_output=True, text=True, check=False, timeout=WITHIN).stdout


def ask(w: World, title: str = "Which one?", **more: Any) -> str:
    body = {"channel": w.channel, "kind": "input", "title": title, **more}
    return str(w.do("bob", lambda hub: hub.create_request(body))["id"])


def pause(w: World, bob: Any) -> None:
    w.agent("carol")
    verbs.start(bob)
    first = w.ask(bob, "task=one", by="carol")
    w.until_stage(first["id"], "answered")
    w.ask(bob, "task=two", by="carol")
    until(lambda: verbs.status(bob)["chain"]["paused"], what="the pause")


def elsewhere(monkeypatch: pytest.MonkeyPatch, w: World) -> None:
    """From here on we are a person's machine without receivers."""
    home = w.home.parent / "elsewhere"
    profile = profiles.load("owner")
    token, identity = profile.token(), profile.identity()
    monkeypatch.setenv("RELAY_HOME", str(home))
    profiles.save(profile, token=token, identity=identity)


def test_nothing_needs_anybody_at_first(w: World) -> None:
    w.agent("bob")
    code, told = relay("status")
    assert (code, told["needsYou"], told["away"]) == (0, [], [])


def test_a_request_is_listed_with_its_line_until_it_is_answered(w: World) -> None:
    w.agent("bob")
    asked = ask(w)
    code, told = relay("status")
    [need] = told["needsYou"]
    assert (code, need["what"], need["who"]["name"], need["profile"]) == (4, "input", "bob", "owner")
    assert need["next"] == f"relay requests show {asked} --profile owner"
    shown = text("status")
    assert "  input of bob in lab: Which one? (until " in shown
    assert f"next: relay requests show {asked} --profile owner" in shown
    w.do("owner", lambda hub: hub.respond(asked, {"text": "this"}))
    assert relay("status")[0] == 0


def test_what_others_are_to_answer_needs_only_them(w: World) -> None:
    w.agent("bob")
    invite = w.do("owner", lambda hub: hub.invite(w.channel, person=True))
    relay("connect", f"{w.url}#{invite['code']}", "--name", "pat", "--profile", "pat")
    asked = ask(w, approvers=[profiles.load("pat").agent])
    code, told = relay("status")
    assert (code, [each["profile"] for each in told["needsYou"]]) == (4, ["pat"])
    assert told["needsYou"][0]["next"] == f"relay requests show {asked} --profile pat"


def test_a_paused_chain_is_told_once_here_and_from_elsewhere_by_its_report(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    bob = w.agent("bob", chain_limit=1)
    pause(w, bob)
    code, told = relay("status")
    assert (code, [each["what"] for each in told["needsYou"]]) == (4, ["paused"])
    assert told["needsYou"][0]["next"] == "relay receiver resume --profile bob"
    elsewhere(monkeypatch, w)
    code, told = until(lambda: (now := relay("status"))[0] == 4 and now, seconds=WITHIN, what="the report")
    [need] = told["needsYou"]
    assert (need["what"], need["who"]["name"], need["next"]) == ("paused", "bob", "relay console")
    monkeypatch.setenv("RELAY_HOME", str(w.home))
    verbs.resume(bob)
    elsewhere(monkeypatch, w)
    until(lambda: relay("status")[0] == 0, seconds=WITHIN, what="the resumption")
    monkeypatch.setenv("RELAY_HOME", str(w.home))


def test_an_unknown_job_is_listed_here_and_elsewhere(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    bob = w.agent("bob")
    verbs.start(bob)
    asked = w.ask(bob, "hold=a")
    w.until_stage(asked["id"], "running")
    job = verbs.status(bob)["job"]["id"]
    lose(bob, job)
    w.until_stage(asked["id"], "unknown", seconds=WITHIN)
    code, told = relay("status")
    assert (code, [each["next"] for each in told["needsYou"]]) == (4, [f"relay receiver job {job} --profile bob"])
    elsewhere(monkeypatch, w)

    def listed() -> Any:
        found = relay("status")[1]["needsYou"]
        return found and found[0]["message"] and found[0]

    need = until(listed, seconds=WITHIN, what="the report with its evidence")
    assert (need["what"], need["job"], need["message"]) == ("unknown", job, asked["id"])
    monkeypatch.setenv("RELAY_HOME", str(w.home))


def lose(bob: Any, job: str) -> None:
    """Kill the keeper of a job and all that it held."""
    kept = json.loads(verbs.job(bob, job)["keeper"])
    keeper = ProcessIdentity.from_json(json.dumps(kept.get("keeper", kept)))
    for pid in {keeper.pid, *started_by(keeper.nonce)}:
        os.kill(pid, signal.SIGKILL)


def test_with_the_hub_away_the_rest_is_told_and_that_it_is(w: World) -> None:
    bob = w.agent("bob", chain_limit=1)
    pause(w, bob)
    ask(w)
    w.kill_hub()
    code, told = relay("status")
    assert (code, [each["what"] for each in told["needsYou"]]) == (4, ["paused"])
    [away] = told["away"]
    assert (away["profile"], away["url"]) == ("owner", w.url)
    assert "What needs you there is not known." in text("status")


def test_inside_a_job_nothing_is_asked_in_a_persons_name(w: World) -> None:
    w.agent("bob")
    ask(w)
    code, told = relay("status", RELAY_JOB="/nowhere")
    assert (code, told["needsYou"]) == (0, [])


def test_a_receiver_that_does_not_answer_is_listed_and_holds_up_nothing(w: World) -> None:
    bob, carol = w.agent("bob"), w.agent("carol")
    pid = int(verbs.start(bob)["pid"])
    verbs.start(carol)
    os.kill(pid, signal.SIGSTOP)
    try:
        code, told = relay("status")
        assert (code, [each["what"] for each in told["needsYou"]]) == (4, ["silent"])
        states = {each["profile"]: each["state"] for each in relay("top")[1]["receivers"]}
        assert states["bob"] == "silent"
        assert states["carol"] != "silent"
    finally:
        os.kill(pid, signal.SIGCONT)


def test_watch_rings_once_for_each_thing_and_again_for_what_comes(w: World) -> None:
    w.agent("bob")
    first = ask(w, "one")
    with Terminal("--profile", "owner", "watch", "--needs-me") as terminal:
        terminal.until(lambda seen: f"relay requests show {first}" in seen)
        second = ask(w, "two")
        terminal.until(lambda seen: f"relay requests show {second}" in seen)
        w.kill_hub()
        terminal.until(lambda seen: "The hub is away" in seen)
        w.start_hub()
        third = ask(w, "three")
        terminal.until(lambda seen: f"relay requests show {third}" in seen)
        assert terminal.seen.count("\a") == 3
        terminal.type("\x03")
        assert terminal.ended() in {0, 130}


def test_watch_for_needs_is_a_persons_and_of_all_channels(w: World) -> None:
    w.agent("bob")
    assert relay("--profile", "bob", "watch", "--needs-me")[1]["code"] == "person_needed"
    assert relay("--profile", "owner", "watch", "--needs-me", "--channel", "lab")[0] == 2
    ask(w)
    done = subprocess.run(
        [*RELAY, "--profile", "owner", "watch", "--needs-me", "--seconds", "2"],
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN,
    )
    assert "\a" not in done.stdout
    assert [json.loads(each)["what"] for each in done.stdout.splitlines()] in ([], ["input"])


@pytest.mark.parametrize("size", [(24, 80), (24, 40), (6, 30)])
def test_top_draws_follows_a_new_size_and_gives_the_terminal_back(w: World, size: tuple[int, int]) -> None:
    bob = w.agent("bob")
    verbs.start(bob)
    with Terminal("top", size=size) as terminal:
        terminal.until(lambda seen: "1 receiver" in seen and "bob" in seen)
        before = len(terminal.seen)
        terminal.resize(24, 100)
        terminal.until(lambda seen: "websocket" in seen[before:] and "CHANNEL" in seen[before:])
        verbs.stop(bob)
        terminal.until(lambda seen: "stopped" in seen)
        terminal.type("q")
        assert terminal.ended() == 0
        terminal.until(lambda seen: seen.endswith("\x1b[?25h\x1b[?1049l"))
        assert terminal.cooked()


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_top_gives_the_terminal_back_however_it_ends(w: World, end: signal.Signals) -> None:
    with Terminal("top") as terminal:
        terminal.until(lambda seen: "No receiver is configured" in seen)
        terminal.process.send_signal(end)
        assert terminal.ended() == 130
        terminal.until(lambda seen: seen.endswith("\x1b[?25h\x1b[?1049l"))
        assert terminal.cooked()


def test_top_where_there_is_no_terminal_is_one_picture(w: World) -> None:
    w.agent("bob")
    told = relay("top")[1]
    assert [(each["profile"], each["state"]) for each in told["receivers"]] == [("bob", "stopped")]
    assert told["at"]
    assert "bob            lab        stopped" in text("top")


class Terminal:
    """A command on a terminal of its own; `seen` is all that it has written."""

    def __init__(self, *words: str, size: tuple[int, int] = (24, 80)) -> None:
        self.master, self._slave = pty.openpty()
        self.seen = ""
        self._rows = size
        self.words = words

    def __enter__(self) -> Self:
        self._size(*self._rows)
        env = {**os.environ, "TERM": "xterm", "PYTHONUTF8": "1"}
        line = [*RELAY, *self.words]
        self.process = subprocess.Popen(
            line,
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            env=env,
            start_new_session=True,
            preexec_fn=_own_terminal,  # noqa: PLW1509 - no other way gives it a terminal of its own
        )
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self._slave)

    def _size(self, rows: int, columns: int) -> None:

        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, rows: int, columns: int) -> None:
        self._size(rows, columns)

    def cooked(self) -> bool:

        return bool(termios.tcgetattr(self._slave)[3] & termios.ICANON)

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def until(self, condition: Callable[[str], bool]) -> None:
        end = time.monotonic() + WITHIN
        while not condition(self.seen):
            assert time.monotonic() < end, self.seen[-2000:]
            if select.select([self.master], [], [], 0.05)[0]:
                self.seen += os.read(self.master, 65536).decode("utf-8", "replace")

    def ended(self) -> int:
        end = time.monotonic() + WITHIN
        while self.process.poll() is None:
            assert time.monotonic() < end, self.seen[-2000:]
            if select.select([self.master], [], [], 0.02)[0]:
                self.seen += os.read(self.master, 65536).decode("utf-8", "replace")
        return int(self.process.returncode)


def _own_terminal() -> None:
    """The terminal becomes this process's own, so that its keys and its size reach it as signals."""

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
