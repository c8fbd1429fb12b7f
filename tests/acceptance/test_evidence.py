"""A person who finds a job unknown gets from status to a settled job in three commands, told by the output itself."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from support_world import World, until, world

from relay_receiver.receiver import verbs


def typed(w: World, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "relay_receiver.cli.main", "--output", "text", "--profile", "bob", *words]
    return subprocess.run(argv, capture_output=True, text=True, check=False, cwd=w.project)


def test_three_commands_from_status_to_settled(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        bob = w.agent("bob")
        verbs.start(bob)
        asked = w.ask(bob, "hold=a please")
        until(w.starts, what="the start of the job")
        until(lambda: (verbs.status(bob)["job"] or {}).get("state") == "running", what="running")
        (w.project / "changed.txt").write_text("by the job")
        job = verbs.status(bob)["job"]["id"]
        sheet = verbs.job(bob, job)
        assert "changed.txt" in {each["path"] for each in sheet["now"]["changed"]}
        assert sheet["now"]["processes"]
        assert "hold=a please" in sheet["asked"]["text"]

        keeper = _keeper(sheet["keeper"])
        os.kill(keeper, signal.SIGKILL)
        w.until_stage(asked["id"], "unknown")

        first = typed(w, "receiver", "status")
        assert first.returncode == 4
        line = _next(first.stdout)
        assert line.startswith("relay receiver job")
        second = typed(w, *line.split()[1:])
        assert job in second.stdout
        assert "changed.txt" in second.stdout
        line = _next(second.stdout)
        assert line.startswith(f"relay receiver settle {job} ")
        third = typed(w, "receiver", "settle", job, "--abandon", "--reason", "the keeper was killed")
        assert third.returncode == 0, third.stderr
        w.until_stage(asked["id"], "failed")
        [result] = w.results(asked["id"])
        assert "the keeper was killed" in result["content"]
        w.release("a")


def _keeper(identity: str) -> int:
    found = re.search(r'"pid": ?(\d+)', identity)
    assert found
    return int(found[1])


def _next(text: str) -> str:
    found = re.search(r"^next: (.*)$", text, re.MULTILINE)
    assert found, text
    return found[1].replace(" --profile bob", "")
