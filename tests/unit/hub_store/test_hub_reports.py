import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support_hubstore import Desk, desk

from relay_receiver.hub import leases, reports
from relay_receiver.hub.errors import Refusal
from relay_receiver.hub.live import Live


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
def hub(tmp_path: Path, clock: Time) -> Iterator[Desk]:
    with desk(tmp_path) as made:
        made.store.live = Live(clock=clock)
        made.agent("bob")
        yield made


def _report(queued: int = 0, **more: Any) -> dict[str, Any]:
    said = {"id": "j", "state": "running", "attempt": 1, "note": "secret words", "lastActivity": "t"}
    return {"wake": "addressed", "queue": {"queued": queued}, "job": {**said, **more}, "lastError": "secret words"}


def _queues(hub: Desk) -> list[int]:
    return [each["report"]["queue"]["queued"] for each in hub.events("receiver.updated")]


def _seen(hub: Desk, *, person: bool = True) -> Any:
    bob = hub.actor("bob").id
    return hub.store.read_now(leases.of_channel, hub.store, hub.lab, person=person)[bob]


def _tick(hub: Desk) -> None:
    asyncio.run(leases.tell_changed(hub.store))


def test_the_same_report_again_writes_nothing(hub: Desk, clock: Time) -> None:
    hub.take("bob", report=_report())
    wal = hub.store.path.with_name(hub.store.path.name + "-wal")
    before = wal.stat().st_size, wal.stat().st_mtime_ns
    for number in range(5):
        clock.now += 12
        hub.take("bob", report=_report(note=f"passing {number}", lastActivity=str(number)))
        _tick(hub)
    assert (wal.stat().st_size, wal.stat().st_mtime_ns) == before
    assert _seen(hub)["report"]["job"]["note"] == "passing 4"


def test_a_changed_report_is_told_at_once_and_then_once_a_second(hub: Desk, clock: Time) -> None:
    for queued in range(5):
        hub.take("bob", report=_report(queued))
    assert (_queues(hub), _seen(hub)["report"]["queue"]["queued"]) == ([0], 4)
    _tick(hub)
    assert _queues(hub) == [0]
    clock.now += 1
    for _ in range(2):
        _tick(hub)
    assert _queues(hub) == [0, 4]
    clock.now += 1
    hub.take("bob", report=_report(9))
    assert _queues(hub) == [0, 4, 9]


def test_the_last_report_is_shown_of_a_receiver_that_is_gone(hub: Desk, clock: Time) -> None:
    hub.take("bob", report=_report(3))
    clock.now += 31
    asyncio.run(leases.tell_lapsed(hub.store))
    assert (_seen(hub)["state"], _seen(hub)["report"]["queue"]) == ("offline", {"queued": 3})
    assert hub.events("receiver.updated")[-1]["report"]["queue"] == {"queued": 3}
    hub.store.live = Live(clock=clock)
    assert (_seen(hub)["state"], _seen(hub)["report"]) == ("offline", _report(3))


def test_another_holder_does_not_take_a_report_over(hub: Desk, clock: Time) -> None:
    hub.take("bob", "a", report=_report(3))
    clock.now += 31
    hub.take("bob", "b")
    assert _seen(hub)["report"] is None


def test_agents_jobs_and_events_are_given_no_words_of_an_agent(hub: Desk) -> None:
    sheet = {"job": "j", "message": "m", "attempt": 1, "now": {"stderr": "secret words"}}
    hub.take("bob", report={**_report(), "unknown": sheet, "needs": [{"what": "unknown", "why": "secret words"}]})
    told = _seen(hub, person=False)["report"]
    assert "secret words" not in str(told)
    assert "secret words" not in str(hub.events("receiver.updated"))
    assert (told["unknown"], told["needs"]) == ({"job": "j", "message": "m", "attempt": 1}, [{"what": "unknown"}])
    assert _seen(hub)["report"]["unknown"] == sheet


def test_a_report_of_any_shape_is_taken_and_its_size_is_bounded() -> None:
    for strange in ({"job": 7, "queue": [], "needs": {}, "chain": None}, {"needs": [1, None]}, {"wake": {"a": 1}}):
        reports.for_everybody(strange)
        reports.matter(strange)
    with pytest.raises(Refusal) as refusal:
        reports.check({"x": "y" * reports.BYTES})
    assert refusal.value.status == 413
    with pytest.raises(Refusal) as refusal:
        reports.check([])
    assert refusal.value.status == 422


def test_a_report_that_explains_a_new_state_or_is_the_last_one_is_stored_at_once(hub: Desk) -> None:
    def stored() -> Any:
        return hub.store.read_now(leases.last_report, hub.actor("bob").id, hub.lab)

    hub.take("bob", report=_report(0))
    hub.take("bob", report=_report(1))
    assert stored() == _report(0)
    hub.take("bob", state="paused", report=_report(2))
    assert stored() == _report(2)
    hub.take("bob", state="paused", report=_report(3))
    assert stored() == _report(2)
    asyncio.run(leases.release(hub.store, hub.actor("bob"), hub.lab, "h"))
    assert stored() == _report(3)


def test_a_report_that_comes_with_a_new_lease_is_stored_and_told(hub: Desk) -> None:
    hub.take("bob", report=_report(1))
    hub.take("bob", subscription=hub.subscribe("bob"), report=_report(2))
    assert _queues(hub) == [1, 2]
    hub.store.live.leases.clear()
    assert _seen(hub)["report"]["queue"] == {"queued": 2}
