"""The receiver of a Codex dies inside its hand-over, at each point of it: the same turn, one start, one answer."""

from pathlib import Path

from support_faults import codex_crash_world

from relay_receiver.testing.trials import Row, at_point

HAND_OVER = ("adapter.write-down.", "adapter.turn-start.")
LEAST = 4


def test_killed_inside_the_hand_over_to_codex_it_starts_no_turn_twice_and_loses_none(tmp_path: Path) -> None:
    row = Row(name="each once")
    with codex_crash_world(tmp_path / "w") as c:
        c.end(c.ask(c.quick()))
        points = sorted(point for point in c.faults.seen() if point.startswith(HAND_OVER))
        assert len(points) >= LEAST
        for point in points:
            at_point(c, row, point)
        assert c.faults_found() == []
        assert c.settled == set()
    assert row.missed == []
    assert row.hits == len(points)
