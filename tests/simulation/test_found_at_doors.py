"""What the simulation has found and only a death at one door shows."""

from simulation.world import World

from relay_receiver.testing.sim_agent import Turn


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
