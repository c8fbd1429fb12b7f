"""Each fault point of receiver and hub raises, once: what fails is begun anew, nothing is lost or done twice."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support_raising import Stage

from relay_receiver.receiver.how import How
from relay_receiver.testing.trials import AT_START, HUB, RECEIVER

JOINING = ("hub.create", "hub.enroll", "hub.invite", "hub.owner_code")
"""Points of joining, which no request passes."""
LEAST = {RECEIVER: 20, HUB: 8}
"""So many points a request passes at least: a boundary that lost its point fails here."""
LEAST_AT_START = 7


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    made = Stage(tmp_path, monkeypatch)
    yield made
    made.close()


def test_whatever_raises_in_the_life_of_a_request_it_is_done_once_and_answered_once(stage: Stage) -> None:
    raised: list[str] = []

    async def each_once() -> None:
        for _ in range(2):  # the second begins when the first has passed its last point
            await stage.answered("task=dry")
        for point in sorted(stage.points.seen):
            if point.startswith((*RECEIVER, *HUB)) and not point.startswith((*AT_START, *JOINING)):
                stage.points.arm(point)
                await stage.answered("task=armed")
                await stage.answered("task=after")
                raised.extend(stage.points.raised)

    stage.run(each_once)
    for prefixes, least in LEAST.items():
        assert len([point for point in raised if point.startswith(prefixes)]) >= least, raised
    stage.nothing_twice()


def test_whatever_raises_as_a_receiver_comes_back_to_a_job_it_takes_it_over(stage: Stage) -> None:
    raised: list[str] = []
    points = ["dry"]
    for number, point in enumerate(points):
        stage.points.arm(None)
        stage.run(lambda number=number: stage.begun(f"hold={number}"), how=How.DETACH)
        stage.points.arm(point)

        async def release(number: int = number) -> None:
            await stage.points.passed("adapter.recover.after")
            stage.release(str(number))
            await stage.ended()

        stage.run(release)
        raised += stage.points.raised
        if point == "dry":
            points += sorted(each for each in stage.points.seen if each.startswith(AT_START))
    assert len(raised) >= LEAST_AT_START, raised
    stage.nothing_twice()
