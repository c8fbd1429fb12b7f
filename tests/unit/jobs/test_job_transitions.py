import itertools

import pytest

from relay_receiver.jobs.job import job_id, notice_id, operation_id
from relay_receiver.jobs.outcome import END_STATE, WIRE_OUTCOME, Outcome
from relay_receiver.jobs.state import AT_THE_AGENT, IN_FLIGHT, OPEN, TERMINAL, JobState
from relay_receiver.jobs.transitions import TABLE, JobEvent, TransitionError, advance, posted_state

S, E = JobState, JobEvent
LEAVES = {
    S.QUEUED: {
        E.SUBMIT: S.SUBMITTING,
        E.CANCEL: S.CANCELLED,
        E.WITHDRAW: S.WITHDRAWN,
        E.EXPIRE: S.EXPIRED,
        E.ELSEWHERE: S.DONE_ELSEWHERE,
    },
    S.SUBMITTING: {
        E.ACCEPTED: S.RUNNING,
        E.REFUSED: S.QUEUED,
        E.RETRY: S.QUEUED,
        E.OUTPUT: S.OUTPUT,
        E.LOST: S.UNKNOWN,
        E.ELSEWHERE: S.DONE_ELSEWHERE,
        E.ABANDON: S.ABANDONED,
    },
    S.RUNNING: {
        E.WAIT: S.WAITING,
        E.REFUSED: S.QUEUED,
        E.RETRY: S.QUEUED,
        E.OUTPUT: S.OUTPUT,
        E.LOST: S.UNKNOWN,
        E.ELSEWHERE: S.DONE_ELSEWHERE,
        E.ABANDON: S.ABANDONED,
    },
    S.WAITING: {
        E.RESUME: S.RUNNING,
        E.RETRY: S.QUEUED,
        E.OUTPUT: S.OUTPUT,
        E.LOST: S.UNKNOWN,
        E.ELSEWHERE: S.DONE_ELSEWHERE,
        E.ABANDON: S.ABANDONED,
    },
    S.UNKNOWN: {
        E.ACCEPTED: S.RUNNING,
        E.RETRY: S.QUEUED,
        E.OUTPUT: S.OUTPUT,
        E.ELSEWHERE: S.DONE_ELSEWHERE,
        E.ABANDON: S.ABANDONED,
    },
    S.OUTPUT: {E.ELSEWHERE: S.DONE_ELSEWHERE, E.ABANDON: S.ABANDONED},
}
"""Written down a second time, from the design: a change of the table has to be meant."""


@pytest.mark.parametrize(("state", "event"), list(itertools.product(JobState, JobEvent)))
def test_every_state_takes_exactly_the_events_of_the_design(state: JobState, event: JobEvent) -> None:
    expected = LEAVES.get(state, {}).get(event)
    if expected is None:
        with pytest.raises(TransitionError) as refused:
            advance(state, event)
        assert (refused.value.state, refused.value.event) == (state, event)
    else:
        assert advance(state, event) is expected


def test_an_end_is_left_by_nothing() -> None:
    assert not {source for source, _ in TABLE} & TERMINAL


def test_only_a_queued_job_is_handed_over_and_nothing_in_flight_is_handed_over_again() -> None:
    assert [source for source, event in TABLE if event is E.SUBMIT] == [S.QUEUED]
    back = {event for (_, event), target in TABLE.items() if target is S.QUEUED}
    assert back == {E.REFUSED, E.RETRY}


def test_the_sets_of_states_fit_together() -> None:
    assert set(JobState) == OPEN | TERMINAL
    assert IN_FLIGHT | {S.QUEUED} == OPEN
    assert AT_THE_AGENT < IN_FLIGHT


def test_every_state_can_be_reached_and_every_open_one_can_end() -> None:
    reached = {S.QUEUED, *TABLE.values(), *END_STATE.values()}
    assert reached == set(JobState)
    for state in OPEN:
        seen, next_ones = set(), {state}
        while next_ones:
            seen |= next_ones
            next_ones = {target for (source, _), target in TABLE.items() if source in next_ones} - seen
        assert seen & TERMINAL


@pytest.mark.parametrize("outcome", Outcome)
def test_a_posted_result_ends_as_its_outcome_says(outcome: Outcome) -> None:
    assert posted_state(S.OUTPUT, outcome.value) is END_STATE[outcome]
    assert posted_state(S.OUTPUT, outcome.value, deliverable=False) is S.FAILED
    assert END_STATE[outcome] in TERMINAL
    assert WIRE_OUTCOME[outcome] in {"completed", "quiet", "failed", "cancelled"}


@pytest.mark.parametrize("state", sorted(set(JobState) - {S.OUTPUT}))
def test_only_what_is_in_output_can_be_posted(state: JobState) -> None:
    with pytest.raises(TransitionError):
        posted_state(state, "completed")


@pytest.mark.parametrize("outcome", ["", "fine"])
def test_an_outcome_that_is_none_is_an_error_that_futures_carry(outcome: str) -> None:
    with pytest.raises(ValueError, match="not a valid Outcome"):
        posted_state(S.OUTPUT, outcome)


def test_ids_are_the_same_everywhere_and_for_one_job_only() -> None:
    mine = job_id("w", "a", "c", "m")
    assert mine == job_id("w", "a", "c", "m")
    assert len(mine) == 32
    others = {job_id(*parts) for parts in itertools.permutations("wacm")} | {job_id("w", "a", "cm", ""), mine}
    assert len(others) == 25
    assert operation_id(mine) == f"receiver:{mine}"
    assert notice_id(mine, 1) != notice_id(mine, 2)
