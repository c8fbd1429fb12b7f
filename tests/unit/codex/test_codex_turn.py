from typing import Any

import pytest

from relay_receiver.adapters.base import Progress, Started
from relay_receiver.adapters.codex_turn import KEPT_CHARS, NOTE_CHARS, Turn, answer
from relay_receiver.adapters.jsonrpc import Call, Fault, Notice, Reply

KEY, THREAD, TURN = "j1.1", "T", "U"


def note(method: str, turn: str = TURN, thread: str = THREAD, **params: Any) -> Notice:
    return Notice(method=method, params={"threadId": thread, "turnId": turn, **params})


def begun() -> Turn:
    turn = Turn(key=KEY, thread=THREAD)
    turn.sent(Call(id="a.1", method="turn/start", params={"threadId": THREAD, "clientUserMessageId": KEY}), None)
    turn.heard(Reply(id="a.1", result={"turn": {"id": TURN}}))
    return turn


def test_the_turn_is_bound_by_the_answer_to_its_own_line() -> None:
    turn = Turn(key=KEY, thread=THREAD)
    turn.sent(Call(id="a.1", method="turn/start", params={"clientUserMessageId": "other.1"}), None)
    assert turn.call is None
    turn.sent(Call(id="a.2", method="turn/start", params={"clientUserMessageId": KEY}), None)
    turn.heard(Reply(id="a.1", result={"turn": {"id": "V"}}))
    assert turn.id is None
    turn.heard(Reply(id="a.2", result={"turn": {"id": TURN}}))
    assert turn.id == TURN


def test_an_answer_that_names_the_running_turn_means_merged_and_never_accepted() -> None:
    turn = Turn(key=KEY, thread=THREAD, call="a.1", known="old")
    turn.heard(Reply(id="a.1", result={"turn": {"id": "old"}}))
    assert turn.merged
    assert turn.id is None
    assert not turn.open


def test_an_error_answer_refuses() -> None:
    turn = Turn(key=KEY, thread=THREAD, call="a.1")
    turn.heard(Reply(id="a.1", fault=Fault("thread not found")))
    assert turn.refusal is not None
    assert not turn.open


@pytest.mark.parametrize("kind", ["userMessage", "hookPrompt", "contextCompaction"])
def test_items_that_are_not_of_the_model_do_not_prove_the_start(kind: str) -> None:
    events = begun().heard(note("item/started", item={"type": kind, "id": "i"}))
    assert not any(isinstance(event, Started) for event in events)


@pytest.mark.parametrize("kind", ["agentMessage", "reasoning", "commandExecution", "mcpToolCall", "somethingNew"])
def test_the_first_item_of_the_model_proves_the_start_once(kind: str) -> None:
    turn = begun()
    first = turn.heard(note("item/started", item={"type": kind, "id": "i"}))
    second = turn.heard(note("item/completed", item={"type": kind, "id": "i"}))
    assert [event for event in (*first, *second) if isinstance(event, Started)] == [Started(key=KEY)]


def test_an_approval_proves_the_start() -> None:
    turn = begun()
    request = Call(id=0, method="item/commandExecution/requestApproval", params={"threadId": THREAD, "turnId": TURN})
    assert list(turn.heard(request)) == [Started(key=KEY)]
    assert turn.asked == 1


@pytest.mark.parametrize(("thread", "other"), [("T2", TURN), (THREAD, "V")])
def test_lines_of_other_threads_and_of_other_turns_are_passed_over(thread: str, other: str) -> None:
    turn = begun()
    item = {"type": "agentMessage", "id": "i", "text": "not mine"}
    assert not turn.heard(note("item/completed", turn=other, thread=thread, item=item))
    end = Notice(method="turn/completed", params={"threadId": thread, "turn": {"id": other, "status": "completed"}})
    turn.heard(end)
    assert (turn.text, turn.started, turn.ended) == ("", False, None)


def test_usage_is_the_sum_of_the_requests_of_this_turn() -> None:
    turn = begun()
    for tokens in (100, 30):
        usage = {"last": {"inputTokens": tokens, "outputTokens": 1}, "total": {"inputTokens": 9999}}
        turn.heard(note("thread/tokenUsage/updated", tokenUsage=usage))
    assert turn.usage == {"inputTokens": 130, "outputTokens": 2}


def test_commands_are_open_from_start_to_completion() -> None:
    turn = begun()
    turn.heard(note("item/started", item={"type": "commandExecution", "id": "c", "command": "make"}))
    assert turn.commands == {"c": "make"}
    turn.heard(Notice(method="turn/completed", params={"threadId": THREAD, "turn": {"id": TURN}}))
    turn.heard(note("item/completed", item={"type": "commandExecution", "id": "c"}))
    assert turn.commands == {}


def test_a_limit_that_is_used_up_says_when_it_starts_anew() -> None:
    turn = begun()
    windows = {"primary": {"usedPercent": 100, "resetsAt": 5000}, "secondary": {"usedPercent": 40, "resetsAt": 9000}}
    turn.heard(Notice(method="account/rateLimits/updated", params={"rateLimits": windows}))
    assert turn.resets_at == 5000.0


def test_notes_are_one_short_line() -> None:
    item = {"type": "commandExecution", "id": "c", "command": "a\nb " * 200}
    events = begun().heard(note("item/started", item=item))
    notes = [event.note for event in events if isinstance(event, Progress)]
    assert len(notes) == 1
    assert "\n" not in notes[0]
    assert len(notes[0]) == NOTE_CHARS


def test_deltas_are_not_kept() -> None:
    turn = begun()
    for _ in range(1000):
        turn.heard(note("item/agentMessage/delta", delta="x" * 1000))
    assert turn.text == ""


def test_a_snapshot_restores_what_the_lines_came_to() -> None:
    turn = begun()
    turn.heard(note("item/started", item={"type": "commandExecution", "id": "c", "command": "make"}))
    turn.heard(note("item/completed", item={"type": "agentMessage", "id": "m", "text": "y" * KEPT_CHARS + "end"}))
    turn.sent(Call(id="a.9", method="turn/interrupt", params={"threadId": THREAD, "turnId": TURN}), None)
    again = Turn(key=KEY, thread=THREAD)
    again.restore(turn.snapshot())
    assert (again.id, again.call, again.started, again.interrupting) == (TURN, "a.1", True, True)
    assert again.commands == {"c": "make"}
    assert len(again.text) == KEPT_CHARS
    assert again.text.endswith("end")


def test_the_final_answer_is_the_last_message_that_is_no_commentary() -> None:
    said = [
        {"type": "agentMessage", "phase": "final_answer", "text": "the answer"},
        {"type": "agentMessage", "phase": "commentary", "text": "by the way"},
    ]
    assert answer(said) == "the answer"
    assert answer(said[1:]) == "by the way"
    assert answer([{"type": "userMessage"}]) is None


@pytest.mark.parametrize(
    "params", [{}, {"turn": 5}, {"threadId": THREAD, "turnId": TURN, "item": 3}, {"tokenUsage": []}]
)
def test_odd_lines_change_nothing(params: dict[str, Any]) -> None:
    turn = begun()
    for method in (
        "item/started",
        "item/completed",
        "thread/tokenUsage/updated",
        "error",
        "account/rateLimits/updated",
    ):
        turn.heard(Notice(method=method, params=params))
    assert turn.open
