"""What doctor says of programs that are gone and of services that would not start."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support_world import world

from relay_receiver.cli.doctor import Check, _agent, _service
from relay_receiver.processes import units
from relay_receiver.receiver import verbs


def test_a_program_that_is_gone_and_a_service_that_would_not_start_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    runner = tmp_path / "runner"
    runner.write_text("#!/bin/sh\n")
    runner.chmod(0o755)
    with world(tmp_path) as w:
        bob = w.agent("bob", argv=(str(runner),))
        assert list(_agent("bob", verbs.status(bob))) == []
        runner.unlink()
        [gone] = _agent("bob", verbs.status(bob))
        assert not gone.ok
        assert str(runner) in gone.detail

        assert list(_service("bob", bob)) == []
        path = units.path_of(f"relay-receiver-{bob.folder.name}")
        path.parent.mkdir(parents=True)
        path.write_text("[Service]\n")
        monkeypatch.setattr(units, "lingers", lambda: None)
        assert _one(bob).mend == "relay receiver enable"
        monkeypatch.setattr(units, "lingers", lambda: False)
        assert _one(bob).mend == "loginctl enable-linger"


def _one(target: verbs.Target) -> Check:
    [check] = _service("bob", target)
    return check


def test_export_writes_one_value_a_line(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        bob = w.agent("bob")
        argv = [
            sys.executable,
            "-m",
            "relay_receiver.cli.main",
            "--profile",
            bob.profile,
            "receiver",
            "journal",
            "export",
        ]
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        assert "binding" in {row["table"] for row in rows}
