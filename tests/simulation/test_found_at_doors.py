"""What the simulation has found and only a death at one door shows."""

import pytest
from simulation.world import Lineage, Stored, World

from relay_receiver.testing.sim_agent import Turn
from relay_receiver.testing.sim_line import Fault


def test_an_answer_loses_its_run_and_keeps_itself_in_one_commit(world: World) -> None:
    """A person frees the run at the hub; the receiver dies while it takes the run out of its answer."""
    here = world.configure("one")
    world.start(here)
    here.machine.turns.append(Turn.LONG)
    asked = world.hub.say("p_1", agent=False, kind="request", content="do it", to="a_me")["id"]
    world.run(5.0)
    world.settle_at_hub(asked, "not-accepted")
    world.deaths = [("after run_closed", 0), ("after set_columns", 0)]
    world.run(60.0)
    assert not world.alive(here)
    world.deaths = []
    world.start(here)
    world.run(60.0)
    assert here.rows("SELECT state FROM job") == [("done",)]
    assert world.hub.stored.stages[asked] == "answered"
    world.judge.check()


def test_a_restored_hub_that_still_has_the_run_open_gets_the_result_again(world: World) -> None:
    """Also where the receiver has not seen its own result, and so nothing that tells it of the restore."""
    here = world.configure("one")
    world.start(here)
    here.machine.turns.append(Turn.LONG)
    asked = world.hub.say("p_1", agent=False, kind="request", content="do it", to="a_me")["id"]
    world.run(5.0)
    backup = world.hub.backup()
    world.network.sockets = False
    world.network.drop_sockets()
    world.network.faults["updates"].extend([Fault.DROPPED] * 99)
    world.run(25.0)
    assert world.hub.stored.stages[asked] == "answered"
    world.kill(here)
    world.restore_hub(backup)
    world.start(here)
    world.run(60.0)
    assert world.hub.stored.stages[asked] == "answered"
    assert any(each["replyTo"] == asked for each in world.hub.stored.messages.values())


def test_what_a_person_frees_at_the_hub_is_not_begun_while_the_agent_works_on_it(world: World) -> None:
    """It would run twice at once; the answer that comes is the one that was wanted."""
    here = world.configure("one")
    world.start(here)
    here.machine.turns.append(Turn.LONG)
    asked = world.hub.say("p_1", agent=False, kind="request", content="do it", to="a_me")["id"]
    world.run(2.0)
    world.settle_at_hub(asked, "not-accepted")
    world.run(60.0)
    assert world.judge.executions == {asked: 1}
    assert world.hub.stored.stages[asked] == "answered"


def test_what_a_person_ends_at_the_hub_is_stopped_before_anything_else_begins(world: World) -> None:
    here = world.configure("one")
    world.start(here)
    here.machine.turns.append(Turn.HANGS)
    asked = world.hub.say("p_1", agent=False, kind="request", content="do it", to="a_me")["id"]
    world.hub.say("p_1", agent=False, kind="request", content="and this", to="a_me")
    world.run(2.0)
    world.settle_at_hub(asked, "abandoned")
    world.run(60.0)
    assert here.rows("SELECT state FROM job ORDER BY event") == [("done_elsewhere",), ("done",)]
    world.judge.check()


def test_a_clock_that_was_ahead_at_configure_hides_nothing(world: World) -> None:
    """The cursor expires within the hour that the machine was ahead; what came meanwhile is read from the history."""
    world.steps["one"] = 3600.0
    here = world.configure("one")
    first = world.hub.say("p_1", agent=False, kind="request", content="do it", to="a_me")["id"]
    world.start(here)
    world.run(5.0)
    world.kill(here)
    second = world.hub.say("p_1", agent=False, kind="request", content="and this", to="a_me")["id"]
    world.hub.forget(world.hub.stored.head)
    world.start(here)
    world.run(60.0)
    assert world.hub.stored.stages == {first: "answered", second: "answered"}
    world.judge.check()


def test_a_clock_that_was_ahead_at_configure_hides_nothing_behind_a_restore_either(world: World) -> None:
    """What bounds healing are the hub's own dates."""
    world.steps["one"] = 3600.0
    here = world.configure("one")
    backup = world.hub.backup()
    world.start(here)
    world.hub.say("p_1", agent=False, kind="request", content="do it", to="a_me")
    world.run(5.0)
    world.kill(here)
    world.restore_hub(backup)
    again = world.hub.say("p_1", agent=False, kind="request", content="do it, I said", to="a_me")["id"]
    world.hub.say("p_1", agent=False, kind="message", content="now")
    world.hub.say("p_1", agent=False, kind="message", content="please")
    world.start(here)
    world.run(60.0)
    assert world.hub.stored.stages == {again: "answered"}
    world.judge.check()


@pytest.mark.parametrize("door", ["after store", "call message", "answered message", "after post_again"])
def test_a_death_between_healing_and_posting_again_loses_no_result(world: World, door: str) -> None:
    here, asked, backup = answered(world)
    world.hub.say("p_1", agent=False, kind="message", content="seen, so that the restore shows")
    world.run(5.0)
    world.kill(here)
    world.restore_hub(backup)
    for _ in range(20):
        world.hub.say("p_1", agent=False, kind="message", content="so that the numbers pass the lost ones")
    world.start(here)
    world.deaths = [(door, 0)]
    world.run(5.0)
    assert not world.alive(here)
    world.start(here)
    world.run(60.0)
    assert world.hub.stored.stages[asked] == "answered"
    assert here.rows("SELECT mend_after FROM binding") == [(None,)]
    world.judge.check()


@pytest.mark.parametrize("killed", [False, True])
def test_a_result_that_is_lost_before_its_receiver_saw_it_in_the_stream_goes_out_again(
    world: World, *, killed: bool
) -> None:
    """Nothing diverges: the cursor is older than the backup."""
    here, asked, backup = answered(world, blind=True)
    if killed:
        world.kill(here)
    world.restore_hub(backup)
    world.network.heal()
    world.start(here)
    world.run(60.0)
    assert world.hub.stored.stages[asked] == "answered"
    assert any(each["replyTo"] == asked for each in world.hub.stored.messages.values())
    assert world.judge.executions == {asked: 1}
    world.judge.check()


def answered(world: World, *, blind: bool = False) -> tuple[Lineage, str, Stored]:
    """A request that was received before the hub's backup, and begun and answered after it.

    Args:
        blind: nothing of that is seen in the stream.
    """
    here = world.configure("one")
    here.machine.usable = False
    world.start(here)
    asked = str(world.hub.say("p_1", agent=False, kind="request", content="do it", to="a_me")["id"])
    world.run(1.0)
    backup = world.hub.backup()
    if blind:
        world.network.sockets = False
        world.network.drop_sockets()
        world.network.faults["updates"].extend([Fault.DROPPED] * 99)
    here.machine.usable = True
    world.run(400.0)
    assert world.hub.stored.stages[asked] == "answered"
    return here, asked, backup
