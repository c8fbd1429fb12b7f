"""The unit in a real control group: what ends with the receiver's process, and what goes on without it."""

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from support_cgroup import Manager, group
from support_world import World, until, world

from relay_receiver.processes.kept import Kept
from relay_receiver.receiver import service, verbs
from relay_receiver.receiver.target import Target

MEBIBYTE = 1024 * 1024
MEMORY = 400 * MEBIBYTE
"""What the unit may use: a receiver with launcher, keeper and a small program use a quarter of it."""
HUNGRY = """
import json, sys
prompt = json.load(sys.stdin)["prompt"]
held = [bytearray(b"x" * 2**20) for _ in range(4000)] if "eat" in prompt.rpartition("This is for you:")[2] else []
print(json.dumps({"text": "ate nothing"}))
"""


@pytest.fixture
def w(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


@pytest.fixture
def short() -> Iterator[Path]:
    """A directory whose sockets have short paths."""
    with TemporaryDirectory(prefix="rs") as made:
        yield Path(made)


def keeper_and_program(bob: Target) -> tuple[int, int]:
    """The processes of the job that runs."""
    [job] = [each for each in verbs.jobs(bob)["jobs"] if each["state"] == "running"]
    kept = Kept.read(bob.folder / "spool", f"{job['id']}.{job['attempt']}")
    assert kept is not None
    assert kept.child is not None
    return kept.keeper.pid, kept.child.pid


def test_a_receiver_that_is_killed_leaves_keeper_and_job_in_its_group_and_the_next_one_takes_them_over(
    w: World, short: Path, request: pytest.FixtureRequest
) -> None:
    bob = w.agent("bob")
    with group(request) as made:
        manager = Manager(service.of(bob), made, short)
        first = manager.start()
        asked = w.ask(bob, "hold=a task=kept")
        w.until_stage(asked["id"], "running")
        alive = set(keeper_and_program(bob))
        assert alive | {first} <= made.members()
        manager.main_was_killed()
        assert alive <= made.members()
        assert manager.restarts()
        assert manager.start() != first
        until(lambda: verbs.status(bob)["state"] == "busy", what="the job in hand again")
        assert set(keeper_and_program(bob)) == alive
        w.release("a")
        w.until_stage(asked["id"], "answered")
        assert [each["content"] for each in w.results(asked["id"])] == ["did kept"]
        assert len(w.starts()) == 1
        assert manager.stop() == 0
        until(lambda: made.members().isdisjoint(alive), what="the end of keeper and program")


def test_a_job_that_runs_out_of_memory_ends_alone(w: World, short: Path, request: pytest.FixtureRequest) -> None:
    program = short / "hungry.py"
    program.write_text(HUNGRY)
    bob = w.agent("bob", argv=(sys.executable, "-I", "-S", str(program)))
    with group(request, "memory") as made:
        manager = Manager(service.of(bob), made, short)
        if made.made is not None:
            limit = "memory.limit_in_bytes" if (made.made / "memory.limit_in_bytes").exists() else "memory.max"
            (made.made / limit).write_text(str(MEMORY))
        first = manager.start()
        asked = w.ask(bob, "eat" if made.made is not None else "nothing")
        w.until_stage(asked["id"], "failed" if made.made is not None else "answered")
        manager.one_ran_out_of_memory()
        assert int(verbs.status(bob)["pid"]) == first
        if made.made is not None:
            assert "SIGKILL" in w.results(asked["id"])[0]["content"]
        after = w.ask(bob, "something small")
        w.until_stage(after["id"], "answered")
        assert manager.stop() == 0
