import pytest

from relay_receiver.jobs.backoff import CEILING, FIRST, delay


def test_it_doubles_from_a_second_to_five_minutes() -> None:
    waits = [delay(failures, jitter=1.0) for failures in range(1, 13)]
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]
    assert (FIRST, CEILING) == (1.0, 300.0)


def test_jitter_spreads_over_the_upper_half() -> None:
    assert delay(4, jitter=0.0) == 4.0
    assert delay(4, jitter=0.5) == 6.0
    assert 7.9 < delay(4, jitter=0.999) < 8.0


@pytest.mark.parametrize("failures", [-5, 0, 1])
def test_the_first_failure_waits_at_least_half_a_second(failures: int) -> None:
    assert delay(failures, jitter=0.0) == 0.5


def test_any_number_of_failures_is_fine_with_any_first_and_ceiling() -> None:
    assert delay(10**9, jitter=1.0) == CEILING
    assert delay(10**9, jitter=1.0, first=0.001, ceiling=1e6) == 65.536
    assert delay(3, jitter=1.0, first=10.0, ceiling=15.0) == 15.0
