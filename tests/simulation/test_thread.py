"""One message and one kill, at every door of the way: the thinnest history."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from simulation.quick import journals
from simulation.world import World

from relay_receiver.receiver.how import How


@pytest.fixture
def folder() -> Iterator[Path]:
    with journals() as found:
        yield found


def doors(folder: Path) -> list[str]:
    world = World(folder)
    try:
        here = world.configure("one")
        world.start(here)
        world.run(1.0)
        world.hub.say("p_1", agent=False, kind="request", content="do it", to="a_me")
        world.run(5.0)
        world.judge.check()
        assert here.rows("SELECT state FROM job") == [("done",)]
        world.stop(here, How.GRACE)
        world.run(5.0)
        return [line.rsplit(": ", maxsplit=1)[1] for line in world.trace]
    finally:
        world.close()


def test_one_message_and_one_kill_at_every_door(folder: Path) -> None:
    passed = doors(folder)
    assert len(passed) > 20
    seen: dict[str, int] = {}
    for door in passed:
        count = seen[door] = seen.get(door, -1) + 1
        world = World(folder)
        try:
            here = world.configure("one")
            world.deaths = [(door, count)]
            world.start(here)
            world.run(1.0)
            world.hub.say("p_1", agent=False, kind="request", content="do it", to="a_me")
            world.run(5.0)
            world.stop(here, How.GRACE)
            world.run(5.0)
            assert not world.alive(here), door
            world.start(here)
            world.run(60.0)
            world.judge.check()
            assert here.rows("SELECT state FROM job") == [("done",)], (door, count)
            [request] = world.hub.stored.stages.values()
            assert request == "answered"
        finally:
            world.close()
