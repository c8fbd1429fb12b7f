"""Each fault point once, with real processes: what comes to it is killed there, and nothing is lost by it."""

from pathlib import Path

import pytest
from support_faults import crash_world

from relay_receiver.testing.trials import HUB, KEEPER, RECEIVER, Row, at_point, at_start, points

LEAST = {RECEIVER: 18, HUB: 8, KEEPER: 8}
"""So many points are there at least: a boundary that lost its point fails here."""


@pytest.mark.parametrize("prefixes", [RECEIVER, HUB, KEEPER], ids=["receiver", "hub", "keeper"])
def test_killed_at_each_of_its_points_it_does_no_job_twice_and_loses_none(
    tmp_path: Path, prefixes: tuple[str, ...]
) -> None:
    row = Row(name="each once")
    with crash_world(tmp_path / "w") as c:
        ordinary, starting = points(c, prefixes)
        assert len(ordinary) + len(starting) >= LEAST[prefixes]
        for point in ordinary:
            at_point(c, row, point)
        for point in starting:
            at_start(c, row, point)
        assert c.faults_found() == []
        if prefixes != KEEPER:
            assert c.settled == set()
    assert row.missed == []
    assert row.ends["lost"] == 0
