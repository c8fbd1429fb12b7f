from typing import Any

import pytest

from relay_receiver.adapters import codex_recovery
from relay_receiver.adapters.base import Finished, NeverStarted, Recovery, Refused, Result, Scope, Unprovable
from relay_receiver.adapters.codex_recovery import Look
from relay_receiver.adapters.codex_turn import Turn

KEY, NOW = "j.1", 1_000_000.0


def a_turn(**facts: Any) -> Turn:
    return Turn(key=KEY, thread="T", **facts)


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "agentMessage", "text": text, **more}


def record(status: str, *items: Any, name: str = "U", client: str | None = KEY, **more: Any) -> dict[str, Any]:
    own = [] if client is None else [{"type": "userMessage", "clientId": client}]
    return {"id": name, "status": status, "items": [*own, *items], **more}


def judge(turns: Any, turn: Turn | None = None, **facts: Any) -> Recovery:
    return codex_recovery.judge(Look(turn=turn or a_turn(), turns=turns, **facts), now=NOW)


def test_a_completed_turn_with_our_client_id_is_finished() -> None:
    found = judge([record("completed", said("yes"), completedAt=5)])
    assert isinstance(found, Finished)
    assert (found.result, found.text) == (Result.COMPLETED, "yes")


def test_a_failed_turn_with_our_client_id_is_finished() -> None:
    found = judge([record("failed", error={"message": "x", "codexErrorInfo": "contextWindowExceeded"})])
    assert isinstance(found, Finished)
    assert found.result is Result.FAILED


@pytest.mark.parametrize("completed_at", [None, 5])
def test_an_interrupted_turn_is_unknown_with_its_text_as_the_suggestion(completed_at: int | None) -> None:
    found = judge([record("interrupted", said("half done"), completedAt=completed_at)])
    assert isinstance(found, Unprovable)
    assert found.suggestion == "half done"
    assert found.evidence["brokenOff"] == ("Codex died" if completed_at is None else "on purpose")


def test_a_turn_without_items_is_ours_by_its_id() -> None:
    assert isinstance(judge([record("interrupted", client=None)], a_turn(id="U")), Unprovable)


def test_no_trace_of_it_on_the_same_boot_and_home_is_never_started() -> None:
    assert isinstance(judge([record("completed", said("old"), name="A", client="other.1")]), NeverStarted)
    assert isinstance(judge([]), NeverStarted)


def test_a_thread_lost_before_its_first_turn_proves_the_same() -> None:
    assert isinstance(judge(None, lost=True), NeverStarted)


@pytest.mark.parametrize(
    "facts",
    [
        {"same_boot": False},
        {"same_home": False},
        {"recorded": False},
        {"turn": a_turn(started=True)},
        {"turns": None},
        {"turns": [record("interrupted", name="V", client=None)]},
    ],
)
def test_each_missing_condition_makes_it_unprovable(facts: Any) -> None:
    found = judge(**{"turns": [], **facts})
    assert isinstance(found, Unprovable)
    assert found.evidence["thread"] == "T"


def test_turns_without_items_before_the_hand_over_are_explained() -> None:
    old = [record("interrupted", name="A", client=None), record("completed", said("x"), name="B", client="k.1")]
    assert isinstance(judge(old, before="B"), NeverStarted)
    assert isinstance(judge(old), Unprovable)


def test_a_turn_that_holds_another_message_too_is_unprovable() -> None:
    both = [{"type": "userMessage", "clientId": "other.1"}, {"type": "userMessage", "clientId": KEY}, said("both")]
    found = judge([{"id": "U", "status": "completed", "items": both}])
    assert isinstance(found, Unprovable)
    assert found.suggestion == "both"


def test_our_own_note_in_the_turn_is_no_other_message() -> None:
    noted = record("completed", {"type": "userMessage", "clientId": f"{KEY}.note"}, said("yes"))
    assert isinstance(judge([noted]), Finished)


def test_as_an_end_never_started_goes_back_to_the_queue_and_the_unprovable_is_unknown() -> None:
    never = codex_recovery.as_finished(KEY, NeverStarted(proof="p"), how="it died")
    assert never.result is Result.REFUSED
    assert isinstance(never.refused, Refused)
    assert never.refused.scope is Scope.BINDING
    lost = codex_recovery.as_finished(KEY, Unprovable(reason="r", suggestion="s"), how="it died")
    assert (lost.result, lost.text, lost.evidence["ended"]) == (Result.UNKNOWN, "s", "it died")
