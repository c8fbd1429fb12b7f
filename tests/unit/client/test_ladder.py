import math

from relay_receiver.client.ladder import HEALTHY_SECONDS, STEPS, Ladder
from relay_receiver.testing.clock import FakeClock


def test_the_first_try_is_at_once() -> None:
    assert Ladder(FakeClock().clock()).left() == 0


def test_each_failure_waits_for_the_next_step_and_the_last_one_stays() -> None:
    clock = FakeClock()
    ladder = Ladder(clock.clock())
    waits = []
    for _ in range(7):
        ladder.down()
        waits.append(ladder.left())
        clock.advance(ladder.left())
    assert waits == [3, 15, 60, 300, 600, 600, 600] == [*STEPS, 600, 600]


def test_jitter_spreads_the_steps() -> None:
    low, high = Ladder(FakeClock().clock(jitter=0.0)), Ladder(FakeClock().clock(jitter=0.999))
    low.down()
    high.down()
    assert 2 < low.left() < 3 < high.left() < 4


def test_a_connection_that_was_healthy_starts_it_anew() -> None:
    clock = FakeClock()
    ladder = Ladder(clock.clock())
    for _ in range(4):
        ladder.down()
    ladder.up()
    clock.advance(HEALTHY_SECONDS)
    ladder.down()
    assert ladder.left() == 3


def test_a_short_connection_does_not() -> None:
    clock = FakeClock()
    ladder = Ladder(clock.clock())
    ladder.down()
    ladder.up()
    clock.advance(HEALTHY_SECONDS - 1)
    ladder.down()
    assert ladder.left() == 15


def test_the_hub_may_ask_for_more_and_never_is_never() -> None:
    ladder = Ladder(FakeClock().clock())
    ladder.down(retry_after=100)
    assert ladder.left() == 100
    ladder.down(never=True)
    assert ladder.left() == math.inf
