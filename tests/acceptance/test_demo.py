"""`relay demo`, as a person runs it; with the real Codex, its model is played by the tests."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from support_codex import CONFIG, codex_binary
from support_time import WITHIN

from relay_receiver.testing import demo
from relay_receiver.testing.demo_stage import Cast
from relay_receiver.testing.demo_words import LAST, SLOW_SECONDS
from relay_receiver.testing.model import ModelEndpoint


def relay(tmp_path: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Type one line; temporary directories are made below `tmp_path`."""
    return subprocess.run(
        [sys.executable, "-m", "relay_receiver.cli.main", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=5 * WITHIN,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )


def running(below: Path) -> list[str]:
    """The processes that have to do with a directory."""
    return [line for line in (" ".join(_argv(each)) for each in psutil.process_iter()) if str(below) in line]


def _argv(process: psutil.Process) -> list[str]:
    try:
        return [*process.cmdline(), process.environ().get("RELAY_HOME", "")]
    except psutil.Error:
        return []


def test_it_tells_what_happens_and_that_everything_held_and_leaves_nothing(tmp_path: Path) -> None:
    done = relay(tmp_path, "demo", "--output", "text")
    assert done.returncode == 0, done.stdout + done.stderr
    *told, last = done.stdout.splitlines()
    assert last.startswith("Everything held: 10 of 10 checks")
    text = "\n".join(told)
    for said in ("stored", "received", "starting", "answered", "kill -9", "17 + 25 = 42", "1 new line", "is paused"):
        assert said in text
    assert "NOT" not in done.stdout
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
    assert running(tmp_path) == []


def test_piped_it_is_one_json_value_and_a_wrong_agent_is_told_in_status_and_last_line(tmp_path: Path) -> None:
    program = tmp_path / "wrong.py"
    program.write_text(
        "import json, sys, time\n"
        "open('starts', 'a').write('started\\nstarted\\n')\n"
        "time.sleep(0.5)\n"
        "print(json.dumps({'text': '43'}))\n"
    )
    done = relay(tmp_path, "demo", "--argv", json.dumps([sys.executable, "-I", "-S", str(program)]))
    answer = json.loads(done.stdout)
    assert done.returncode == 1
    assert not answer["held"]
    assert answer["home"] is None
    failed = [check["what"] for check in answer["checks"] if not check["held"]]
    assert "the answer is right: 42" in failed
    assert "the job ran once" in failed
    assert done.stderr.splitlines()[-1].startswith(f"NOT everything held: {len(failed)} of {len(answer['checks'])}")
    assert list(tmp_path.iterdir()) == [program]
    assert running(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_in_the_middle_it_still_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "relay_receiver.cli.main", "demo", "--output", "text"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as playing:
        assert playing.stdout is not None
        assert any("you -> bob: Work for" in line for line in playing.stdout)
        playing.send_signal(number)
        rest = playing.stdout.read()
        assert playing.wait(WITHIN) == 130, rest
    assert running(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_kept_it_runs_on_and_says_how_to_look_around_and_to_end_it(tmp_path: Path) -> None:
    done = relay(tmp_path, "demo", "--keep", "--output", "text")
    [root] = tmp_path.iterdir()
    home = f"  export RELAY_HOME={root / 'relay'}"
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    typed = lines[lines.index(home) : -2]
    try:
        looked = _type([line for line in typed if "rm -r" not in line and "stop" not in line])
        assert "5" in looked
        assert "2 + 3 = 5" in looked
        assert running(tmp_path)
    finally:
        _type([typed[0], *(line for line in typed if "rm -r" in line or "stop" in line)])
    assert running(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def _type(lines: list[str]) -> str:
    """Type lines in a shell, where `relay` is this one."""
    here = f'relay() {{ "{sys.executable}" -m relay_receiver.cli.main "$@"; }}'
    script = "\n".join([here, *(line for line in lines if line.startswith("  "))])
    done = subprocess.run(
        ["bash", "-e", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=5 * WITHIN,
        env=dict(os.environ),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@dataclass(frozen=True)
class ScriptedWords:
    """The requests as the tests' model understands them."""

    def add(self, first: int, second: int) -> str:
        return f"A sum.\nmodel: say {first + second}"

    def slow(self) -> str:
        return f"Some work.\nmodel: run echo started >> starts; sleep {SLOW_SECONDS}"

    def count(self, other: str, *, me: str, number: int = 1) -> str:
        if number == LAST:
            return f"Count.\nmodel: say {number}"
        following: dict[str, Any] = {"to": other, "content": self.count(me, me=other, number=number + 1)}
        return f"Count.\nmodel: tool mcp__relay/send {json.dumps(following)}"

    def aside(self) -> str:
        return "And now?\nmodel: say in between"


def test_the_real_codex_plays_it_and_sends_through_relay_mcp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "codex"
    home.mkdir()
    told: list[str] = []
    with ModelEndpoint() as model:
        (home / "config.toml").write_text(CONFIG.format(url=model.url).replace('env_key = "MOCK_KEY"\n', ""))
        monkeypatch.setenv("CODEX_HOME", str(home))
        cast = Cast(adapter="codex", argv=[codex_binary()], words=ScriptedWords(), patience=WITHIN)
        played = demo.run(cast, told.append)
    assert played.held, "\n".join(told)
