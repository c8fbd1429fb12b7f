"""What the simulation has found about questions to people."""

import pytest
from simulation.world import APPROVAL, World

from relay_receiver.testing.sim_agent import Turn
from relay_receiver.wire.message import seconds


@pytest.mark.parametrize("step", [3600.0, -3600.0])
def test_a_question_has_its_time_by_the_hubs_clock_whatever_this_machines_says(world: World, step: float) -> None:
    """The clock steps between the last renewal of the lease and the question."""
    here = world.configure("one")
    world.start(here)
    world.run(1.0)
    world.steps["one"] = step
    here.machine.turns.append(Turn.ASKS)
    world.hub.say("p_1", agent=False, kind="request", content="do it", to="a_me")
    world.run(3.0)
    [request] = world.hub.stored.asks.values()
    assert request["state"] == "open"
    assert seconds(request["expiresAt"]) - seconds(request["createdAt"]) == pytest.approx(APPROVAL, abs=1)
    world.run(APPROVAL + 15.0)
    assert here.rows("SELECT state FROM job") == [("done",)]
    assert here.rows("SELECT state, decided_by FROM approval") == [("expired", "hub")]
    world.judge.check()
