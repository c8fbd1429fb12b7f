"""Thousands of histories, each of which keeps the promises.

Each run plays the same histories; SIMULATION_SEED=N plays others. A failure ends with a line
`@reproduce_failure(...)`. Put it above `class History` in `machine.py` to see the same history again;
`Phase.shrink` among the phases finds a shorter one.
"""

import os

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from simulation.machine import History

PARTS = 24
"""So that all cores work, to the end of a run."""
HISTORIES = 210
STEPS = 12


@pytest.mark.parametrize("part", range(PARTS))
def test_the_promises_hold_in_every_history(part: int) -> None:
    chosen = int(os.environ.get("SIMULATION_SEED", "0")) * PARTS + part
    run_state_machine_as_test(
        seed(chosen)(type(f"History{part}", (History,), {})),
        settings=settings(
            max_examples=HISTORIES,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            print_blob=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
