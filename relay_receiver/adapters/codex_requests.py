"""What Codex asks of its client: each question has an answer at once, so that nothing waits for ever."""

from collections.abc import Callable, Mapping
from typing import Any

from relay_receiver.adapters import jsonrpc
from relay_receiver.adapters.jsonrpc import JSON, Call, Reply

_HEAD = "A note from the program that runs you, not from a person:"
_TAIL = "Go on without it, inside the sandbox, or say in your answer what is missing and why."

DECLINED = f"{_HEAD} nobody is there to approve or to answer, so what you asked for was declined. {_TAIL}"
"""What the agent is told, once a turn, when something was declined and nobody was asked."""

_DECLINES: Mapping[str, JSON] = {
    "item/commandExecution/requestApproval": {"decision": "decline"},
    "item/fileChange/requestApproval": {"decision": "decline"},
    "item/permissions/requestApproval": {"permissions": {}, "scope": "turn"},
    "item/tool/requestUserInput": {"answers": {}},
    "mcpServer/elicitation/request": {"action": "decline"},
    "applyPatchApproval": {"decision": "denied"},
    "execCommandApproval": {"decision": "denied"},
}
"""The answer that declines and lets the turn go on."""


def not_shown(why: str) -> str:
    """What the agent is told when it asked for what is not put to people."""
    return f"{_HEAD} what you asked for was declined without asking anybody: {why}. {_TAIL}"


def declinable(request: Call) -> bool:
    """Whether this is an approval or a question that a decline answers."""
    return request.method in _DECLINES


def decline(request: Call) -> bytes:
    """The line that declines; an error for what is not known here, on which Codex fails closed."""
    answer = _DECLINES.get(request.method)
    if answer is None:
        words = f"this client does not offer {request.method}"
        return jsonrpc.fault(request.id, jsonrpc.METHOD_NOT_FOUND, words)
    return jsonrpc.reply(request.id, answer)


def declines(request: Call, answer: Reply) -> bool:
    """Whether this was the answer that declines, or an error in its place."""
    return answer.fault is not None or answer.result == _DECLINES.get(request.method)


def describe(request: Call) -> str:
    """What was asked, in one line."""
    words = _WORDS.get(request.method)
    return f"asked for {request.method}" if words is None else words(request.params)


def _command(params: Mapping[str, Any]) -> str:
    return f"asked to run, outside the sandbox: {params.get('command', '')}"


def _questions(params: Mapping[str, Any]) -> str:
    asked = [
        str(question.get("question", "")) for question in params.get("questions", []) if isinstance(question, dict)
    ]
    return f"asked: {' / '.join(asked)}"


_WORDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "item/commandExecution/requestApproval": _command,
    "item/fileChange/requestApproval": lambda _: "asked to change files outside its directory",
    "item/permissions/requestApproval": lambda params: f"asked for more permissions: {params.get('reason') or ''}",
    "item/tool/requestUserInput": _questions,
    "mcpServer/elicitation/request": lambda params: f"a tool asked: {params.get('message', '')}",
}
