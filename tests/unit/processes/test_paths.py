"""Where things are."""

import os
from pathlib import Path

import pytest

from relay_receiver.processes import paths
from relay_receiver.wire.errors import RelayError


def test_relay_home_holds_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_HOME", str(tmp_path))
    assert paths.home() == tmp_path
    for path in (paths.hub_dir(), paths.profile_dir("p"), paths.binding_dir("p", "w", "c")):
        assert path.is_relative_to(tmp_path)


def test_a_relative_relay_home_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RELAY_HOME", "state")
    assert paths.home() == tmp_path / "state"


def test_without_it_the_platforms_directory_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RELAY_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(paths.sys, "platform", "linux")
    assert paths.home() == tmp_path / ".local" / "state" / "relay-receiver"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert paths.home() == tmp_path / "xdg" / "relay-receiver"
    monkeypatch.setenv("XDG_STATE_HOME", "not/absolute")
    assert paths.home() == tmp_path / ".local" / "state" / "relay-receiver"
    monkeypatch.setattr(paths.sys, "platform", "darwin")
    assert paths.home() == tmp_path / "Library" / "Application Support" / "relay-receiver"


def test_without_any_home_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise RuntimeError

    monkeypatch.delenv("RELAY_HOME")
    monkeypatch.setattr(Path, "home", none)
    with pytest.raises(RelayError) as error:
        paths.home()
    assert error.value.code == "no_home"
    assert "RELAY_HOME" in (error.value.hint or "")


def test_each_binding_has_a_directory_of_its_own() -> None:
    found = {
        paths.binding_dir(p, w, c) for p in ("a", "b") for w, c in (("w", "c"), ("c", "w"), ("wc", ""), ("", "wc"))
    }
    assert len(found) == 8
    assert all(len(path.name) == 16 for path in found)


@pytest.mark.parametrize("deep", [1, 200])
def test_a_socket_fits_however_long_the_state_directory_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deep: int
) -> None:
    monkeypatch.setenv("RELAY_HOME", str(tmp_path / ("d" * deep)))
    binding = paths.binding_dir("profile", "w", "c")
    found = paths.runtime_dir(binding)
    assert len(os.fsencode(found / "control.sock")) < 100
    assert len(os.fsencode(found / f"{'f' * 16}.sock")) < 100
    assert found == paths.runtime_dir(binding)
    assert found != paths.runtime_dir(paths.binding_dir("profile", "w", "d"))


def test_one_directory_by_two_names_has_one_runtime_directory(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert paths.runtime_dir(tmp_path / "link") == paths.runtime_dir(tmp_path / "real")
