"""What the doctor finds: each thing that can be wrong is said with the line that mends it."""

from pathlib import Path
from typing import Any

import pytest

from relay_receiver.cli.doctor import SKEW_SECONDS, _agent, _files, clock, version, wake
from relay_receiver.wire import limits
from relay_receiver.wire.message import iso

HUB_NOW = 1_800_000_000.0


@pytest.mark.parametrize("skew", [-3600.0, -SKEW_SECONDS - 1, SKEW_SECONDS + 1, 3600.0])
def test_a_clock_that_is_wrong_is_said_with_its_direction(skew: float) -> None:
    [check] = clock({"now": iso(HUB_NOW)}, HUB_NOW + skew)
    assert not check.ok
    assert ("ahead of" if skew > 0 else "behind") in check.detail
    assert f"{abs(skew):.0f} s" in check.detail
    assert check.mend


def test_a_clock_that_is_right_is_no_fault_and_an_older_hub_does_not_tell() -> None:
    [check] = clock({"now": iso(HUB_NOW)}, HUB_NOW + SKEW_SECONDS / 2)
    assert check.ok
    assert list(clock({}, HUB_NOW)) == []
    assert list(clock({"now": "soon"}, HUB_NOW)) == []


def test_a_hub_of_another_version_is_said_with_who_has_to_upgrade() -> None:
    assert version({"protocol": limits.PROTOCOL}).ok
    newer, older = version({"protocol": limits.PROTOCOL + 1}), version({"protocol": None})
    assert (newer.ok, older.ok) == (False, False)
    assert newer.mend == "pip install --upgrade relay-receiver"
    assert older.mend is not None
    assert "the hub's machine" in older.mend


@pytest.mark.parametrize("name", ["profile.json", "profiles"])
def test_what_others_may_read_is_named_with_the_line_that_closes_it(isolated: Path, name: str) -> None:
    home = isolated / "relay"
    (home / "profiles").mkdir(parents=True)
    (home / "profile.json").touch()
    for path in (home, home / "profiles", home / "profile.json"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    assert [check.ok for check in _files()] == [True]
    (home / name).chmod(0o755)
    [check] = _files()
    assert not check.ok
    assert str(home / name) in check.detail
    assert check.mend == f"chmod -R go= {home}"


def status(tmp_path: Path, adapter: str, program: Path) -> dict[str, Any]:
    return {"adapter": adapter, "argv": [str(program)], "directory": str(tmp_path), "state": "stopped"}


def program(tmp_path: Path, name: str, line: str) -> Path:
    path = tmp_path / name
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("adapter", ["command", "codex"])
def test_an_agent_that_is_missing_is_named(tmp_path: Path, adapter: str) -> None:
    [check] = _agent("bob", status(tmp_path, adapter, tmp_path / "gone"))
    assert not check.ok
    assert str(tmp_path / "gone") in check.detail
    assert check.mend == "relay receiver configure --argv JSON"


def test_an_agent_that_nobody_signed_in_is_told_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    codex = program(tmp_path, "codex", "echo codex-cli 1.0")
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex-home"))
    [check] = _agent("bob", status(tmp_path, "codex", codex))
    assert not check.ok
    assert "not signed in" in check.detail
    assert check.mend == "codex login"
    (tmp_path / "codex-home").mkdir()
    (tmp_path / "codex-home" / "auth.json").touch()
    assert list(_agent("bob", status(tmp_path, "codex", codex))) == []


def test_an_agent_that_does_not_start_is_said(tmp_path: Path) -> None:
    codex = program(tmp_path, "codex", "echo no such library >&2; exit 1")
    [check] = _agent("bob", status(tmp_path, "codex", codex))
    assert "no such library" in check.detail


def test_a_running_receiver_whose_agent_lost_its_login_is_told_how() -> None:
    check = wake("bob", {"state": "refused", "adapterError": "Codex is not signed in: run `codex login`."})
    assert (check.ok, check.mend) == (False, "codex login")
