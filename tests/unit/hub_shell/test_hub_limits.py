import pytest

from relay_receiver.hub.errors import Refusal
from relay_receiver.hub.limits import Bucket, Rates, address_of


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_gives_its_burst_then_refills_evenly() -> None:
    clock = Clock()
    rates = Rates(clock=clock)
    for _ in range(300):
        rates.writes.take("a")
    with pytest.raises(Refusal) as refused:
        rates.writes.take("a")
    assert (refused.value.status, refused.value.headers["retry-after"]) == (429, "1")
    rates.writes.take("b")
    clock.now = 0.2
    rates.writes.take("a")
    with pytest.raises(Refusal):
        rates.writes.take("a")


def test_enrolments_are_ten_a_minute_and_a_right_code_costs_nothing() -> None:
    rates = Rates(clock=Clock())
    for _ in range(50):
        rates.enrolments.take("1.2.3.4")
        rates.enrolments.give_back("1.2.3.4")
    for _ in range(10):
        rates.enrolments.take("1.2.3.4")
    with pytest.raises(Refusal) as refused:
        rates.enrolments.take("1.2.3.4")
    assert refused.value.headers["retry-after"] == "6"


def test_callers_are_forgotten_only_once_they_are_free_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relay_receiver.hub.limits.KEYS", 3)
    clock = Clock()
    bucket = Bucket("calls", burst=1, per_second=1, clock=clock)
    bucket.take("limited")
    for n in range(10):
        clock.now = n / 20
        bucket.take(n)
    with pytest.raises(Refusal):
        bucket.take("limited")


def test_an_ipv6_network_is_one_caller() -> None:
    assert address_of("2001:db8::1") == address_of("2001:db8::ffff:1") != address_of("2001:db8:0:1::1")
    assert address_of("10.0.0.1") != address_of("10.0.0.2")
