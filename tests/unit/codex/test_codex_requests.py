import json
from typing import Any

import pytest

from relay_receiver.adapters import codex_requests
from relay_receiver.adapters.jsonrpc import Call


def asked(method: str, name: str | int = 0, **params: Any) -> Call:
    return Call(id=name, method=method, params=params)


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("item/commandExecution/requestApproval", {"decision": "decline"}),
        ("item/fileChange/requestApproval", {"decision": "decline"}),
        ("item/permissions/requestApproval", {"permissions": {}, "scope": "turn"}),
        ("item/tool/requestUserInput", {"answers": {}}),
        ("mcpServer/elicitation/request", {"action": "decline"}),
        ("execCommandApproval", {"decision": "denied"}),
    ],
)
def test_each_question_is_declined_so_that_the_turn_goes_on(method: str, answer: dict[str, Any]) -> None:
    assert json.loads(codex_requests.decline(asked(method, 7))) == {"id": 7, "result": answer}


@pytest.mark.parametrize("method", ["item/tool/call", "attestation/generate", "something/new"])
def test_what_is_not_known_gets_an_error_at_once(method: str) -> None:
    line = json.loads(codex_requests.decline(asked(method, "s")))
    assert line["id"] == "s"
    assert line["error"]["code"] == -32601


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (asked("item/commandExecution/requestApproval", command="rm x"), "rm x"),
        (asked("item/fileChange/requestApproval"), "files"),
        (asked("item/tool/requestUserInput", questions=[{"question": "Which?"}]), "Which?"),
        (asked("mcpServer/elicitation/request", message="Sure?"), "Sure?"),
        (asked("something/new"), "something/new"),
    ],
)
def test_what_was_asked_is_told_in_one_line(request_: Any, words: str) -> None:
    assert words in codex_requests.describe(request_)
