"""A request at the hub decides a question of the agent only where all of it fits."""

from dataclasses import replace
from typing import Any

import pytest

from relay_receiver.journal import approvals
from relay_receiver.journal.approvals import Approval
from relay_receiver.journal.tables import ApprovalState
from relay_receiver.receiver import decisions
from relay_receiver.receiver.decisions import Unfit
from relay_receiver.wire.action import action_hash

ACTION = {"kind": "command", "command": "rm x", "cwd": "/w"}
ANN = {"id": "p_ann", "name": "Ann"}
FORM = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 3}}, "required": ["n"]}


def asked(**changes: Any) -> Approval:
    given: dict[str, Any] = {"kind": "approval", "schema": None, "approvers": (), **changes}
    return approvals.new(job="j", attempt=1, question="U:0", title="rm?", action=ACTION, at=1.0, **given)


def request(**changes: Any) -> dict[str, Any]:
    return {
        "id": "req_1",
        "operationId": "ask:j.1:U:0",
        "channel": "c",
        "author": {"id": "a_me", "name": "me", "kind": "agent"},
        "actionHash": action_hash(ACTION),
        "state": "answered",
        "answer": {"decision": "accept"},
        "answeredBy": ANN,
        **changes,
    }


def read(row: Approval, told: dict[str, Any]) -> approvals.Decision | None:
    return decisions.read(row, told, agent="a_me", channel="c")


@pytest.mark.parametrize(("answer", "state"), [("accept", ApprovalState.APPROVED), ("decline", ApprovalState.DECLINED)])
def test_a_persons_word_decides(answer: str, state: ApprovalState) -> None:
    found = read(asked(), request(answer={"decision": answer}))
    assert found is not None
    assert (found.state, found.by) == (state, "Ann (p_ann)")


def test_an_open_request_decides_nothing() -> None:
    assert read(asked(), request(state="open", answer=None, answeredBy=None)) is None


@pytest.mark.parametrize(
    ("told", "state"),
    [("expired", ApprovalState.EXPIRED), ("superseded", ApprovalState.DECLINED), ("applied", ApprovalState.DECLINED)],
)
def test_what_ended_otherwise_never_accepts(told: str, state: ApprovalState) -> None:
    found = read(asked(), request(state=told))
    assert found is not None
    assert (found.state, found.by) == (state, "hub")
    assert found.reason


@pytest.mark.parametrize(
    "changes",
    [
        {"actionHash": action_hash({**ACTION, "cwd": "/other"})},
        {"actionHash": None},
        {"operationId": "ask:j.1:U:1"},
        {"operationId": "ask:j.2:U:0"},
        {"channel": "other"},
        {"author": {"id": "a_other"}},
        {"author": None},
        {"id": 5},
        {"answeredBy": None},
        {"answeredBy": {"id": "a_me", "name": "me"}},
        {"answer": {"decision": "acceptForSession"}},
        {"answer": {"decision": ["accept"]}},
        {"answer": {"decision": "accept", "more": 1}, "actionHash": "x"},
        {"answer": None},
        {"state": "something"},
    ],
)
def test_what_does_not_fit_is_not_used(changes: dict[str, Any]) -> None:
    with pytest.raises(Unfit) as why:
        read(asked(), request(**changes))
    assert str(why.value)


def test_another_request_under_the_same_operation_is_not_used() -> None:
    with pytest.raises(Unfit, match="request"):
        read(replace(asked(), request="req_0"), request())


def test_only_those_who_were_asked_decide() -> None:
    row = asked(approvers=("p_bob",))
    with pytest.raises(Unfit, match="p_ann"):
        read(row, request())
    assert read(row, request(answeredBy={"id": "p_bob", "name": "Bob"})) is not None


def test_an_input_must_fit_its_form() -> None:
    row = asked(kind="input", schema=FORM)
    found = read(row, request(answer={"n": 2}))
    assert found is not None
    assert (found.state, found.answer) == (ApprovalState.ANSWERED, {"n": 2})
    for bad in ({"n": 4}, {"n": "2"}, {}, {"m": 1}, None, {"decision": "accept"}):
        with pytest.raises(Unfit):
            read(row, request(answer=bad))
