"""Questions of Codex under the exact ids of its calls, and what closes them."""

import json
from typing import Any

import pytest

from relay_receiver.adapters import codex_questions
from relay_receiver.adapters.codex_questions import Questions
from relay_receiver.adapters.codex_turn import Turn
from relay_receiver.adapters.jsonrpc import Call, Fault, Id, Notice, Reply

COMMAND = "item/commandExecution/requestApproval"


def a_turn() -> Turn:
    return Turn(key="j.1", thread="T", id="U")


def a_call(name: Id = 0, **more: Any) -> Call:
    return Call(id=name, method=COMMAND, params={"threadId": "T", "turnId": "U", "command": "ls", **more})


def put(*calls: Call) -> tuple[Questions, list[str]]:
    questions = Questions()
    for call in calls:
        questions.asked(call)
    return questions, [questions.put(call, a_turn()).question for call in calls]


def test_an_id_keeps_its_type_and_a_question_is_answered_once() -> None:
    questions, (number, text) = put(a_call(0), a_call("0"))
    assert number != text
    found = questions.take(text)
    assert found is not None
    assert json.loads(codex_questions.answer(found, {"decision": "accept"})) == {
        "id": "0",
        "result": {"decision": "accept"},
    }
    assert questions.take(text) is None
    assert questions.take("U:7") is None
    other = questions.take(number)
    assert other is not None
    assert other.id == 0


@pytest.mark.parametrize("said", [{"decision": "decline"}, {}, {"decision": "acceptForSession"}, {"decision": True}])
def test_everything_but_accept_declines(said: dict[str, Any]) -> None:
    assert json.loads(codex_questions.answer(a_call(), said))["result"] == {"decision": "decline"}


def test_the_line_that_answers_closes_it_and_declines_are_counted() -> None:
    turn = a_turn()
    questions, (one, two, three) = put(a_call(1), a_call(2), a_call(3))
    over = questions.sent(Reply(id=1, result={"decision": "accept"}), turn)
    assert over is not None
    assert over.question == one
    assert questions.sent(Reply(id=2, result={"decision": "decline"}), turn) is not None
    assert questions.sent(Reply(id=3, fault=Fault("no")), turn) is not None
    assert turn.declined == 2
    assert questions.sent(Reply(id=1, result={}), turn) is None
    assert not questions
    assert [questions.take(each) for each in (one, two, three)] == [None, None, None]


def test_a_turn_that_is_over_drops_what_it_asked_also_without_naming_it() -> None:
    questions, _ = put(a_call(1), a_call(2, turnId=None))
    questions.asked(a_call(3, threadId="other"))
    turn = a_turn()
    turn.ended = {}
    assert len(questions.dropped(turn)) == 2
    assert [call.id for call in questions.pending()] == [3]
    assert not questions.waits()


def test_what_codex_resolves_by_itself_is_closed() -> None:
    questions, (one,) = put(a_call(1))
    over = questions.resolved(Notice(method="serverRequest/resolved", params={"threadId": "T", "requestId": 1}))
    assert over is not None
    assert over.question == one
    assert questions.resolved(Notice(method="serverRequest/resolved", params={})) is None


def test_calls_whose_answer_is_on_its_way_are_not_put_again() -> None:
    questions, (one,) = put(a_call(1))
    questions.take(one)
    assert questions.pending() == []
    assert [wait.question for wait in questions.waits()] == [one]
    questions.clear()
    assert not questions.waits()
