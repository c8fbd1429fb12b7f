"""Environments are built, never inherited whole."""

import os

import pytest

from relay_receiver.processes import environment


def test_only_what_is_allowed_or_named_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name in ("PATH", "HOME", "LC_ALL", "https_proxy", "AWS_SECRET_ACCESS_KEY", "RELAY_JOB", "NAMED", "LD_PRELOAD"):
        monkeypatch.setenv(name, f"the {name}")
    found = environment.build(["NAMED", "NOT_SET"], extra={"RELAY_JOB": "/file"})
    assert found == {
        **{name: f"the {name}" for name in ("PATH", "HOME", "LC_ALL", "https_proxy", "NAMED")},
        "RELAY_JOB": "/file",
    }
    assert set(environment.build()) == {"PATH", "HOME", "LC_ALL", "https_proxy"}


def test_a_background_process_of_ours_has_everything_but_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_JOB", "/file")
    monkeypatch.setenv("NAMED", "x")
    found = environment.own()
    assert "RELAY_JOB" not in found
    assert found["NAMED"] == "x"
