"""The page about states says what the table of transitions says."""

import re
from pathlib import Path

from relay_receiver.jobs.outcome import END_STATE
from relay_receiver.jobs.state import IN_FLIGHT, TERMINAL, JobState
from relay_receiver.jobs.transitions import TABLE, JobEvent

PAGE = (Path(__file__).parents[3] / "docs" / "states.md").read_text()
HUB_ONLY = {JobEvent.ELSEWHERE, JobEvent.ABANDON}
"""Moves on the hub's word, from any state in flight: said in the text, left out of the picture."""


def test_the_picture_has_exactly_the_moves_of_the_table() -> None:
    drawn = set(re.findall(r"^  (\w+) --> (\w+)$", PAGE, re.MULTILINE))
    moves = {
        (source.value, target.value)
        for (source, event), target in TABLE.items()
        if not (event in HUB_ONLY and source in IN_FLIGHT)
    }
    posted = {("output", end.value) for end in END_STATE.values()}
    assert drawn == moves | posted


def test_every_state_has_a_paragraph_and_those_that_move_on_say_what_a_crash_means() -> None:
    sections = dict(re.findall(r"^## (\w+)\n\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
    assert set(sections) == {state.value for state in JobState}
    for state in set(JobState) - TERMINAL:
        assert "A crash" in sections[state.value].replace("\n", " "), state
