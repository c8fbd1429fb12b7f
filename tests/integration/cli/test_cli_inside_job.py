"""A process that descends from a job may not do what only people may, whatever it does to its environment."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support_time import WITHIN

HIDES = """
import os, subprocess, sys
del os.environ["RELAY_JOB"]
os.environ["RELAY_HOME"] = sys.argv[1]
argv = [sys.executable, "-m", "relay_receiver.cli.main", *sys.argv[2:]]
sys.exit(subprocess.run(argv).returncode)
"""
ONLY_PEOPLE = [
    ["receiver", "resume"],
    ["receiver", "settle", "j1", "--retry"],
    ["receiver", "settings", "--chain-limit", "9"],
    ["receiver", "configure"],
    ["receiver", "start"],
    ["receiver", "stop"],
    ["receiver", "adopt"],
    ["hub", "start"],
    ["hub", "stop"],
    ["hub", "serve"],
    ["hub", "owner-code"],
    ["connect", "http://127.0.0.1:1#x", "--name", "x"],
    ["channels", "create", "x"],
    ["invites", "create"],
    ["console"],
    ["messages", "settle", "m1", "--retry", "--reason", "x"],
    ["messages", "send", "--content", "x"],
    ["requests", "respond", "r1", "--accept"],
    ["requests", "ask", "--title", "x"],
    ["profile", "update", "--name", "x"],
]


@pytest.mark.parametrize("words", ONLY_PEOPLE, ids=" ".join)
def test_refused_to_what_descends_from_a_job(words: list[str], tmp_path: Path) -> None:
    child = [sys.executable, "-c", HIDES, str(tmp_path / "home"), *words]
    done = subprocess.run(
        child,
        env={**os.environ, "RELAY_JOB": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN,
        stdin=subprocess.DEVNULL,
    )
    told = json.loads(done.stderr)
    assert (done.returncode, told["code"]) == (1, "inside_a_job"), told
    assert not (tmp_path / "home").exists()
