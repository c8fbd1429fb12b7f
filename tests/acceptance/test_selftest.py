"""`relay receiver selftest`, as a person runs it beside what is their own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support_world import World, until, world

from relay_receiver.cli import main
from relay_receiver.receiver import verbs
from relay_receiver.testing import selftest

RUNS_AGAIN_WHAT_IS_UNKNOWN = """
import sys
if "relay_receiver.receiver.main" in sys.orig_argv:
    from relay_receiver.jobs.transitions import JobEvent
    from relay_receiver.receiver.hand import Hand

    async def lose(self, why, evidence=None, suggestion=None):
        await self.requeue(JobEvent.RETRY, who="receiver", why=why)

    Hand.lose = lose
"""


@pytest.fixture
def w(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


def beside(w: World) -> list[str]:
    return sorted(path.name for path in w.home.parent.iterdir())


def test_it_holds_on_this_disk_and_touches_nothing_of_the_person(w: World, capfd: pytest.CaptureFixture[str]) -> None:
    bob = w.agent("bob")
    verbs.start(bob)
    before, pid = beside(w), verbs.status(bob)["pid"]
    capfd.readouterr()
    assert main.run(["receiver", "selftest", "--trials", "3", "--output", "json"]) == 0
    out, err = capfd.readouterr()
    answer = json.loads(out)
    assert answer["held"]
    assert answer["broken"] == []
    assert answer["directory"] == str(w.home.parent)
    assert [row["hit"] for row in answer["rows"]] == [1, 1, 1]
    assert sum(row["answered"] for row in answer["rows"]) == sum(row["asked"] for row in answer["rows"]) >= 3
    assert err.splitlines()[-1].startswith("Everything held in 3 trials")
    assert beside(w) == before
    assert os.environ["RELAY_HOME"] == str(w.home)
    assert verbs.status(bob)["pid"] == pid
    assert w.starts() == []


def test_a_broken_promise_is_told_and_makes_it_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A receiver that hands over again what nobody can prove."""
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "sitecustomize.py").write_text(RUNS_AGAIN_WHAT_IS_UNKNOWN)
    (tmp_path / "disk").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "broken"))
    monkeypatch.setattr(selftest, "KINDS", ("keeper killed, job running",))
    words = ["receiver", "selftest", "--trials", "1", "--directory", str(tmp_path / "disk"), "--output", "text"]
    assert main.run(words) == 1
    told = capfd.readouterr().out.splitlines()
    assert told[-1].startswith("NOT everything held: 1 times")
    assert any("started 2 times" in line for line in told)
    assert list((tmp_path / "disk").iterdir()) == []


def test_one_that_is_told_to_end_leaves_nothing(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "relay_receiver.cli.main", "receiver", "selftest", "--directory", str(tmp_path)]
    with subprocess.Popen([*words, "--output", "text"], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        until(lambda: list(tmp_path.glob("*/faults/seen")), what="its receiver")
        running.send_signal(signal.SIGTERM)
        running.stdout.read()
        assert running.wait(60) == 130
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_cannot_be_written_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    assert main.run(["receiver", "selftest", "--directory", "/proc", "--output", "json"]) == 1
    assert json.loads(capfd.readouterr().err.splitlines()[-1])["code"] == "not_writable"
