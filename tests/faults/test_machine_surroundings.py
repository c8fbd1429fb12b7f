"""Where it runs: no HOME, a locale without UTF-8, bytes that are no text, links, a terminal that hangs up, floods."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from support_time import WITHIN
from support_world import World, until, world

from relay_receiver.processes.lock import InstanceLock
from relay_receiver.receiver import verbs
from relay_receiver.receiver.target import Target
from relay_receiver.wire.errors import RelayError

C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
NO_TEXT = os.fsdecode(b"\xff\xfe")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, Target]]:
    """A hub, and bob with a receiver that is configured."""
    with world(tmp_path_factory.mktemp("surroundings")) as w:
        yield w, w.agent("bob")


@pytest.fixture(autouse=True)
def at_home(place: tuple[World, Target], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One world for all cases of this file, with no receiver running at the start of each."""
    w, bob = place
    monkeypatch.setenv("RELAY_HOME", str(w.home))
    yield
    monkeypatch.undo()
    monkeypatch.setenv("RELAY_HOME", str(w.home))
    verbs.stop(bob, now=True)


def relay(*arguments: str, without: Sequence[str] = (), **environment: str) -> subprocess.CompletedProcess[bytes]:
    """The command line in an environment."""
    kept = {name: value for name, value in os.environ.items() if name not in without}
    argv = [sys.executable, "-m", "relay_receiver.cli.main", *arguments]
    return subprocess.run(argv, env={**kept, **environment}, capture_output=True, check=False, timeout=WITHIN)


def works(w: World, bob: Target) -> None:
    w.until_stage(w.ask(bob, "task=this")["id"], "answered")


def test_a_receiver_needs_no_home_where_it_is_told_where_its_state_is(place: tuple[World, Target]) -> None:
    w, bob = place
    bare = ("HOME", "USER", "LOGNAME", "LANG", "SHELL", "TERM")
    assert relay("receiver", "start", "--profile", "bob", without=bare).returncode == 0
    works(w, bob)


def test_a_locale_without_utf_8_damages_no_word(place: tuple[World, Target]) -> None:
    w, _ = place
    assert relay("receiver", "start", "--profile", "bob", **C_LOCALE).returncode == 0
    said = "hällo task=ünï✓"
    sent = relay("messages", "send", "--profile", "owner", "--to", "bob", "--wait", "60", "--content", said, **C_LOCALE)
    assert sent.returncode == 0
    asked = w.do("owner", lambda hub: hub.history(w.channel))["messages"][-2]
    assert asked["content"] == said
    assert [each["content"] for each in w.results(asked["id"])] == ["did ünï✓"]


def test_bytes_that_are_no_text_are_replaced_or_refused_in_one_sentence(place: tuple[World, Target]) -> None:
    w, bob = place
    started = relay("receiver", "start", "--profile", "bob", LC_BROKEN=NO_TEXT, LANG="xx_YY.none")
    assert started.returncode == 0
    assert relay("messages", "send", "--profile", "owner", "--to", "bob", "--content", NO_TEXT).returncode == 0
    works(w, bob)
    for words in (("receiver", "job", NO_TEXT, "--profile", "bob"), ("whoami", "--profile", NO_TEXT)):
        told = relay(*words)
        assert told.returncode in {1, 2}
        assert b"fault of relay" not in told.stderr
        assert b"codec" not in told.stderr
        assert b"Traceback" not in told.stderr


def test_a_state_directory_behind_a_link_is_the_same_one(
    place: tuple[World, Target], monkeypatch: pytest.MonkeyPatch
) -> None:
    w, bob = place
    verbs.start(bob)
    link = w.home.with_name("link")
    link.symlink_to(w.home)
    monkeypatch.setenv("RELAY_HOME", str(link))
    assert verbs.start(bob)["state"] == "already_running"
    until(lambda: verbs.status(bob)["state"] == "ready", what="the receiver")
    works(w, bob)


@pytest.mark.parametrize("home", ["/sys/relay", "/proc/relay", "/dev/null/relay"])
def test_a_state_directory_that_cannot_be_made_is_said_in_one_sentence(home: str) -> None:
    told = relay("connect", "http://127.0.0.1:1#CODE", "--name", "x", RELAY_HOME=home)
    assert told.returncode == 1
    assert home.encode() in told.stderr
    assert b"Traceback" not in told.stderr
    assert b"fault of relay" not in told.stderr


def test_a_terminal_that_hangs_up_takes_neither_receiver_nor_job_with_it(place: tuple[World, Target]) -> None:
    w, bob = place
    master, slave = os.openpty()
    argv = [sys.executable, "-m", "relay_receiver.cli.main", "receiver", "run", "--profile", "bob"]
    receiver = subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    try:
        until(lambda: verbs.status(bob)["state"] == "ready", what="the receiver")
        asked = w.ask(bob, "hold=hup task=hup")
        w.until_stage(asked["id"], "running")
        os.close(master)
        os.killpg(receiver.pid, signal.SIGHUP)
        w.release("hup")
        w.until_stage(asked["id"], "answered")
        works(w, bob)
        assert receiver.poll() is None
    finally:
        os.killpg(receiver.pid, signal.SIGTERM)
        assert receiver.wait(WITHIN) == 0


def test_a_receiver_that_is_just_starting_is_waited_for(place: tuple[World, Target]) -> None:
    _, bob = place
    argv = [sys.executable, "-m", "relay_receiver.cli.main", "receiver", "run", "--profile", "bob"]
    receiver = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        seen = {until(lambda: verbs.status(bob)["state"], what="a status") for _ in range(3)}
        until(lambda: verbs.status(bob)["state"] == "ready", what="the receiver")
        assert seen <= {"stopped", "offline", "ready"}
    finally:
        receiver.terminate()
        assert receiver.wait(WITHIN) == 0


def test_one_that_has_taken_its_lock_and_not_yet_said_who_it_is_is_waited_for(
    place: tuple[World, Target], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, bob = place
    lock = InstanceLock(bob.folder / "lock")
    assert lock.acquire()
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        lock.release()

    monkeypatch.setattr(verbs.time, "sleep", wait)
    assert verbs.status(bob)["state"] == "stopped"
    assert len(waits) == 1


def test_a_look_at_what_is_not_configured_makes_nothing(place: tuple[World, Target]) -> None:
    _, bob = place
    other = Target(bob.profile, bob.workspace, "another channel")
    with pytest.raises(RelayError, match="No receiver is configured"):
        verbs.jobs(other)
    assert not other.folder.exists()


def test_a_flood_of_output_fails_the_job_alone(place: tuple[World, Target]) -> None:
    w, bob = place
    verbs.start(bob)
    asked = w.ask(bob, f"big={25 * 1024 * 1024}")
    w.until_stage(asked["id"], "failed")
    assert "more than 20 MiB" in w.results(asked["id"])[0]["content"]
    works(w, bob)
    assert _resident(int(verbs.status(bob)["pid"])) < 300 * 1024 * 1024


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
