import os

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from simulation.machine import History

EXAMPLES = int(os.environ.get("HISTORIES", "200"))


def test_histories():
    if os.environ.get("BLOB"):
        from hypothesis import reproduce_failure
        reproduce_failure("6.170.17", os.environ["BLOB"].encode())(History)
    run_state_machine_as_test(
        History,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=20,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
            phases=[Phase.generate, Phase.shrink] if os.environ.get("SHRINK") else [Phase.generate],
        ),
    )
