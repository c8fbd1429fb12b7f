"""Waiting for people's answer: held calls, also while the hub comes and goes, and an end when the time is up."""

import asyncio
from typing import Any

import pytest

from relay_receiver.client.answer import HELD_SECONDS, answered
from relay_receiver.client.errors import HubAway, HubError, Unauthorized

OPEN: dict[str, Any] = {"id": "r1", "state": "open", "answer": None}
DONE: dict[str, Any] = {"id": "r1", "state": "answered", "answer": {"text": "yes"}}
AWAY = HubAway("The hub is away.", sent=False)
LONG = 6000.0


class Hub:
    """Answers in turn; the last answer stands."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.waits: list[int | None] = []

    async def request(self, request: str, *, wait: int | None = None) -> dict[str, Any]:
        assert request == "r1"
        self.waits.append(wait)
        now = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(now, Exception):
            raise now
        return dict(now)


def go(hub: Hub, timeout: float) -> dict[str, Any]:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await asyncio.sleep(0)

    return asyncio.run(answered(hub, "r1", timeout, sleep=sleep))  # type: ignore[arg-type]  # a stand-in


def test_each_call_is_held_until_there_is_an_answer() -> None:
    hub = Hub(OPEN, OPEN, DONE)
    assert go(hub, LONG) == DONE
    assert hub.waits == [HELD_SECONDS] * 3


def test_one_look_is_taken_however_little_time_there_is() -> None:
    hub = Hub(OPEN)
    assert go(hub, 0) == OPEN
    assert hub.waits == [0]


def test_a_hub_that_is_away_for_a_while_costs_nothing() -> None:
    busy = HubError("busy", status=503, code="stopping")
    assert go(Hub(AWAY, busy, OPEN, AWAY, DONE), LONG) == DONE


def test_what_was_known_is_told_where_the_hub_is_away_at_the_end() -> None:
    assert go(Hub(OPEN, AWAY), 0.05) == OPEN


def test_a_hub_that_was_never_reached_is_told() -> None:
    with pytest.raises(HubAway):
        go(Hub(AWAY), 0.05)


@pytest.mark.parametrize(
    "error",
    [Unauthorized("over", status=401, code="unauthorized"), HubError("no", status=404, code="not_found")],
)
def test_a_refusal_ends_the_wait(error: HubError) -> None:
    with pytest.raises(HubError) as caught:
        go(Hub(OPEN, error), LONG)
    assert caught.value is error
