"""Programs in the background: ready when they say so, stopped until gone."""

import os
import select
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support_time import WITHIN

from relay_receiver.processes import background, environment
from relay_receiver.processes.identity import Life, ProcessIdentity, identify, life
from relay_receiver.wire.errors import RelayError

PROGRAM = """\
import json, os, signal, sys
from relay_receiver.processes import background
report = background.reporter()
word = sys.argv[1]
if word == "ready":
    told = {"state": "ready", "session": os.getsid(0) == os.getpid(), "reported": "RELAY_REPORT_FD" in os.environ}
    told["open"] = [n for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}") and int(n) > 2]
    told["inheritable"] = [n for n in told["open"] if os.get_inheritable(int(n))]
    told["directory"], told["stdin"] = os.getcwd(), os.readlink("/proc/self/fd/0")
    report(told)
    report({"said": "twice"})
    print("went on", flush=True)
    signal.pause()
elif word == "error":
    report({"error": "It cannot start.", "code": "copied", "hint": "relay receiver adopt"})
elif word == "crash":
    print("some line", flush=True)
    raise SystemExit("the last words")
elif word == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    report({"state": "ready"})
    while True:
        signal.pause()
elif word == "silent":
    signal.pause()
"""


def spawn(tmp_path: Path, word: str, *, seconds: float = WITHIN) -> dict[str, object]:
    return background.spawn(
        [sys.executable, "-c", PROGRAM, word],
        log=tmp_path / "state" / "log",
        environment=environment.own(),
        seconds=seconds,
    )


@pytest.fixture
def started(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[ProcessIdentity]:
    told = spawn(tmp_path, request.param)
    found = identify(int(str(told["pid"])))
    assert found is not None
    yield found
    if life(found) is Life.ALIVE:
        os.kill(found.pid, signal.SIGKILL)


def test_it_reports_once_it_is_ready_and_has_nothing_of_ours(tmp_path: Path) -> None:
    with (tmp_path / "inherited").open("w") as ours:
        os.set_inheritable(ours.fileno(), True)
        told = spawn(tmp_path, "ready")
    pid = int(str(told.pop("pid")))
    try:
        reporting = [told.pop("open")]
        assert told == {
            "state": "ready",
            "session": True,
            "reported": False,
            "inheritable": [],
            "directory": "/",
            "stdin": "/dev/null",
        }
        assert len(str(reporting)) < 20, "one descriptor: that to report by"
        log = tmp_path / "state" / "log"
        assert stat.S_IMODE(log.stat().st_mode) == 0o600
    finally:
        os.kill(pid, signal.SIGKILL)


def test_an_error_that_it_reports_is_raised(tmp_path: Path) -> None:
    with pytest.raises(RelayError) as error:
        spawn(tmp_path, "error")
    assert (error.value.sentence, error.value.code) == ("It cannot start.", "copied")
    assert error.value.hint == "relay receiver adopt"


def test_of_one_that_ends_before_it_is_ready_the_last_words_are_told(tmp_path: Path) -> None:
    with pytest.raises(RelayError, match="the last words") as error:
        spawn(tmp_path, "crash")
    assert error.value.code == "not_ready"


def test_one_that_never_says_so_is_told_with_its_pid(tmp_path: Path) -> None:
    with pytest.raises(RelayError, match="is not ready") as error:
        spawn(tmp_path, "silent", seconds=0.5)
    (pid,) = [int(word) for word in error.value.sentence.split() if word.isdigit()]
    os.kill(pid, signal.SIGKILL)


def test_it_survives_the_end_of_its_starter_and_of_its_session(tmp_path: Path) -> None:
    starter = f"""\
import sys
from pathlib import Path
from relay_receiver.processes import background, environment
told = background.spawn([sys.executable, "-c", {PROGRAM!r}, "ready"], log=Path({str(tmp_path / "state" / "log")!r}),
    environment=environment.own(), seconds={WITHIN})
print(told["pid"], flush=True)
"""
    done = subprocess.run(
        [sys.executable, "-c", starter], capture_output=True, text=True, check=True, start_new_session=True
    )
    found = identify(int(done.stdout))
    assert found is not None
    assert life(found) is Life.ALIVE
    os.kill(found.pid, signal.SIGKILL)


@pytest.mark.parametrize("started", ["ready"], indirect=True)
def test_a_stop_waits_until_it_is_gone_and_is_idempotent(started: ProcessIdentity) -> None:
    assert background.stop(started, grace=WITHIN)
    assert life(started) is Life.GONE
    assert background.stop(started, grace=WITHIN)


@pytest.mark.parametrize("started", ["deaf"], indirect=True)
def test_a_stop_that_is_not_heard_says_so_after_its_grace(started: ProcessIdentity) -> None:
    assert not background.stop(started, grace=0.2)
    assert life(started) is Life.ALIVE


@pytest.mark.parametrize("started", ["ready"], indirect=True)
def test_a_stop_never_ends_what_only_has_the_number(started: ProcessIdentity) -> None:
    other = ProcessIdentity(pid=started.pid, started=started.started - 5.0, boot=started.boot)
    assert background.stop(other, grace=0.2)
    descriptor = os.pidfd_open(started.pid)
    assert select.select([descriptor], [], [], 0.3)[0] == []
    os.close(descriptor)
    assert life(started) is Life.ALIVE
