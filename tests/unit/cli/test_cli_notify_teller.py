"""What `relay notify` remembers, what it runs and when; without a hub and without a process."""

import asyncio
import json
from pathlib import Path

import pytest

from relay_receiver.cli.notify import Memory, Teller
from relay_receiver.wire.need import Need


class Time:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Hook:
    """Notes what it was run for; `wrong` is what it answers."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.wrong: str | None = None
        self.meanwhile = lambda: None

    async def __call__(self, event: bytes, nonce: str) -> str | None:
        assert len(nonce) == 32
        self.ran.append(json.loads(event)["id"])
        self.meanwhile()
        return self.wrong


def need(name: str) -> Need:
    lab, bob = {"id": "c", "name": "lab"}, {"id": "b", "name": "bob"}
    return Need(id=name, what="input", title="?", channel=lab, who=bob, next="relay requests list")


def teller(path: Path, hook: Hook, clock: Time) -> Teller:
    return Teller(Memory.load(path), hook, profile="owner", told=lambda _: None, clock=clock, now=clock)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path / "notify.json"


def test_each_is_run_once_and_remembered_by_the_next_process(path: Path) -> None:
    hook, clock = Hook(), Time()
    first = teller(path, hook, clock)
    first.see([need("a"), need("b")])
    assert asyncio.run(first.step()) is None
    second = teller(path, hook, clock)
    second.see([need("b"), need("c")])
    asyncio.run(second.step())
    assert hook.ran == ["a", "b", "c"]
    assert set(json.loads(path.read_text())["told"]) == {"b", "c"}
    assert path.stat().st_mode & 0o777 == 0o600


def test_nothing_is_forgotten_before_the_first_look(path: Path) -> None:
    hook, clock = Hook(), Time()
    first = teller(path, hook, clock)
    first.see([need("a")])
    asyncio.run(first.step())
    second = teller(path, hook, clock)
    asyncio.run(second.step())
    second.see([need("a")])
    asyncio.run(second.step())
    assert hook.ran == ["a"]


def test_what_fails_is_run_again_later_and_later_and_holds_up_nothing_else(path: Path) -> None:
    hook, clock = Hook(), Time()
    it = teller(path, hook, clock)
    hook.wrong = "it ended with exit status 1"
    it.see([need("a"), need("b")])
    waits = []
    for _ in range(12):
        wait = asyncio.run(it.step())
        assert wait is not None
        waits.append(wait)
        assert asyncio.run(it.step()) is not None
        clock.now += 300
    assert waits[0] <= 1
    assert 150 <= waits[-1] <= 300
    assert hook.ran == ["a", "b"] * 12
    assert it.failing
    hook.wrong = None
    asyncio.run(it.step())
    assert not it.failing
    assert hook.ran == ["a", "b"] * 13


def test_what_is_answered_while_a_command_runs_is_not_told(path: Path) -> None:
    hook, clock = Hook(), Time()
    it = teller(path, hook, clock)
    hook.meanwhile = lambda: it.see([need("a")])
    it.see([need("a"), need("b")])
    asyncio.run(it.step())
    assert hook.ran == ["a"]


def test_a_failing_one_that_needs_nobody_any_more_is_given_up(path: Path) -> None:
    hook, clock = Hook(), Time()
    it = teller(path, hook, clock)
    hook.wrong = "x"
    it.see([need("a")])
    asyncio.run(it.step())
    it.see([])
    assert asyncio.run(it.step()) is None
    assert not it.failing


def test_a_damaged_memory_is_put_aside_and_all_is_told_again(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for damaged in ("{", "[]", '{"told": 7}', '{"told": {}, "telling": {"id": "a"}}', ""):
        path.write_text(damaged)
        path.chmod(0o600)
        assert Memory.load(path).told == {}
        assert path.with_name("notify.json.damaged").read_text() == damaged
        assert "told again" in capsys.readouterr().err


def test_a_disk_that_takes_nothing_lets_no_command_run(path: Path) -> None:
    hook, clock = Hook(), Time()
    it = teller(path / "nowhere", hook, clock)
    it.see([need("a")])
    with pytest.raises(OSError, match="nowhere"):
        asyncio.run(it.step())
    assert hook.ran == []
