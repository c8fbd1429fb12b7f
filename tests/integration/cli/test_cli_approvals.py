"""Who approves, and for how long: set, shown and changed at the command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support_world import World, world

from relay_receiver.client import profiles
from relay_receiver.receiver import verbs


def relay(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "relay_receiver.cli.main", "--output", "json", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def told(*words: str) -> dict[str, object]:
    result = relay(*words)
    assert result.returncode == 0, result.stderr
    found: dict[str, object] = json.loads(result.stdout)
    return found


def agent(w: World) -> str:
    return w.agent("ada").profile


def test_people_are_asked_unless_told_otherwise_and_a_running_receiver_can_be_told(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        name = agent(w)
        owner = profiles.load("owner")
        before = told("receiver", "status", "--profile", name)
        assert (before["approvals"], before["approvers"], before["approvalSeconds"]) == ("ask", [], 86400.0)
        said = told(
            "receiver", "configure", "--profile", name, "--approvers", owner.agent_name, "--approval-time", "2h"
        )
        assert said["approvers"] == [owner.agent]
        verbs.start(w.targets[0])
        now = told("receiver", "settings", "--profile", name, "--approvals", "decline", "--approvers", "anyone")
        assert (now["approvals"], now["approvers"], now["approvalSeconds"]) == ("decline", [], 7200.0)
        assert told("receiver", "start", "--profile", name, "--approvals", "decline", "--approvers", "anyone")[
            "state"
        ] == ("already_running")


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("--approvers", "nobody-here"), 1, "no person called nobody-here"),
        (("--approvers", "ada"), 1, "no person called ada"),
        (("--approval-time", "31d"), 2, "30 days"),
        (("--approval-time", "0s"), 2, "30 days"),
        (("--approvals", "maybe"), 2, "maybe"),
    ],
)
def test_what_cannot_be_is_said_and_changes_nothing(
    tmp_path: Path, words: tuple[str, ...], code: int, sentence: str
) -> None:
    with world(tmp_path) as w:
        name = agent(w)
        result = relay("receiver", "configure", "--profile", name, *words)
        assert result.returncode == code
        assert sentence in result.stderr
        after = told("receiver", "status", "--profile", name)
        assert (after["approvals"], after["approvers"], after["approvalSeconds"]) == ("ask", [], 86400.0)
