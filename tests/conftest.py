"""What every test gets: a home of its own, no proxies, no profile of the person who runs the tests."""

import os
from pathlib import Path

import pytest

_DROPPED = ("RELAY_HOME", "RELAY_PROFILE", "RELAY_JOB", "CODEX_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR")


@pytest.fixture(autouse=True)
def isolated(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path_factory.mktemp("user")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("RELAY_HOME", str(home / "relay"))
    for name in (*_DROPPED[1:], *(name for name in os.environ if name.lower().endswith("_proxy"))):
        monkeypatch.delenv(name, raising=False)
    return home
