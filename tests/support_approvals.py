"""A world with an agent that is the real Codex, and people who answer what it asks."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support_codex import CONFIG, codex_binary
from support_world import World, until, world

from relay_receiver.receiver import verbs
from relay_receiver.receiver.target import Target
from relay_receiver.testing.model import ModelEndpoint


@contextmanager
def codex_world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **wishes: Any
) -> Iterator[tuple[World, ModelEndpoint, Target]]:
    """A hub, and one agent that is a Codex and works in a directory of its own."""
    home = tmp_path / "codex-home"
    home.mkdir()
    monkeypatch.setenv("CODEX_HOME", str(home))
    monkeypatch.setenv("MOCK_KEY", "x")
    with ModelEndpoint() as model, world(tmp_path) as w:
        (home / "config.toml").write_text(CONFIG.format(url=model.url))
        ada = w.agent("ada", adapter="codex", argv=(codex_binary(),), env=("MOCK_KEY",), tools=False, **wishes)
        yield w, model, ada


def requests(w: World, state: str = "open") -> list[dict[str, Any]]:
    """The requests to people at the hub, oldest first."""
    found: list[dict[str, Any]] = w.do("owner", lambda hub: hub.requests(w.channel, state))
    return found[::-1]


def asked(w: World, count: int = 1) -> list[dict[str, Any]]:
    """The open requests, once there are so many."""
    return until(lambda: len(found := requests(w)) >= count and found, what=f"{count} open requests")


def respond(w: World, request: dict[str, Any], decision: str, *, by: str = "owner") -> dict[str, Any]:
    """A person decides, for the action that was shown."""
    answer = {"decision": decision}
    told: dict[str, Any] = w.do(by, lambda hub: hub.respond(request["id"], answer, request["actionHash"]))
    return told


def state_of(w: World, request: dict[str, Any]) -> str:
    return str(w.do("owner", lambda hub: hub.request(request["id"]))["state"])


def until_state(w: World, request: dict[str, Any], *states: str) -> str:
    return until(lambda: (now := state_of(w, request)) in states and now, what=f"{request['id']} {states}")


def job_state(target: Target) -> str | None:
    job = verbs.status(target)["job"]
    return None if job is None else str(job["state"])
