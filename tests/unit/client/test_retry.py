import pytest

from relay_receiver.client import retry
from relay_receiver.client.errors import HubAway, HubError, Unauthorized
from relay_receiver.wire.errors import RelayError


def answered(status: int, retry_after: float | None = None) -> HubError:
    kind = Unauthorized if status == 401 else HubError
    return kind("No.", status=status, code="x", retry_after=retry_after)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422])
def test_an_unwilling_hub_is_not_asked_again(status: int) -> None:
    assert not retry.retryable(answered(status))
    assert not retry.repeatable(answered(status), idempotent=True)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_busy_or_broken_hub_is(status: int) -> None:
    assert retry.retryable(answered(status))
    assert retry.repeatable(answered(status), idempotent=True)


@pytest.mark.parametrize("error", [answered(500), answered(503), HubAway("x", sent=True)])
def test_what_may_have_been_done_is_repeated_only_where_twice_is_once(error: RelayError) -> None:
    assert not retry.repeatable(error, idempotent=False)


@pytest.mark.parametrize("error", [answered(429), HubAway("x", sent=False)])
def test_what_was_not_done_is_repeated_always(error: RelayError) -> None:
    assert retry.repeatable(error, idempotent=False)


def test_other_errors_are_nobodys_business_here() -> None:
    assert not retry.retryable(RelayError("x"))
    assert not retry.retryable(KeyError("x"))


def test_a_pause_grows_and_is_never_shorter_than_asked_for() -> None:
    away = HubAway("x", sent=False)
    pauses = [retry.pause(away, failures, jitter=0.5) for failures in range(1, 8)]
    assert pauses == sorted(pauses)
    assert pauses[-1] <= retry.CEILING
    assert retry.pause(answered(429, 9.0), 1, jitter=0.0) == 9.0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("17", 17.0),
        ("-3", 0.0),
        ("Thu, 01 Jan 1970 00:02:00 GMT", 20.0),
        ("Thu, 01 Jan 1970 00:00:01 GMT", 0.0),
        ("soon", None),
        ("1.5", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_a_number_or_a_date(value: str | None, seconds: float | None) -> None:
    assert retry.retry_after(value, lambda: 100.0) == seconds
