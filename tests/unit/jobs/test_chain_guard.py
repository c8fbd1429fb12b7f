import pytest

from relay_receiver.jobs.chain import DEFAULT_LIMIT, Chain, bases_after_resume


@pytest.mark.parametrize(
    ("count", "hop", "allowed"),
    [(0, 1, True), (2, 3, True), (3, 1, False), (0, 3, True), (0, 4, False), (2, 4, False), (99, 99, False)],
)
def test_both_the_turns_and_the_hops_are_limited(count: int, hop: int, *, allowed: bool) -> None:
    assert Chain(count=count, bases={}).allows("root", hop) is allowed
    assert DEFAULT_LIMIT == 3


def test_a_base_moves_where_the_hops_of_one_chain_count_from() -> None:
    chain = Chain(bases={"far": 8})
    assert chain.allows("far", 9)
    assert chain.allows("far", 11)
    assert not chain.allows("far", 12)
    assert not chain.allows("other", 9)


def test_a_limit_of_nothing_lets_no_agent_through() -> None:
    assert not Chain(limit=0, bases={}).allows("root", 0)


def test_after_a_resume_every_waiting_job_may_run_and_the_farthest_is_the_first_hop() -> None:
    waiting = [("a", 4), ("a", 9), ("b", 1), ("a", 7), ("c", 0)]
    bases = bases_after_resume(waiting)
    assert bases == {"a": 8, "b": 0, "c": -1}
    chain = Chain(bases=bases)
    assert all(chain.allows(root, hop) for root, hop in waiting)
    assert bases_after_resume([]) == {}


def test_two_agents_that_answer_each_other_come_to_an_end() -> None:
    """Each turn is one hop farther; both journals count for themselves, and neither resets."""
    counts = [0, 0]
    turns = 0
    for hop in range(1, 100):
        who = hop % 2
        if not Chain(count=counts[who], bases={}).allows("root", hop):
            break
        counts[who] += 1
        turns += 1
    assert turns == DEFAULT_LIMIT
