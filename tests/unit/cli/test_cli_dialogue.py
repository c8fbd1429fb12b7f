"""A request is answered at a terminal: shown first, and asked for until the answer fits."""

from typing import Any

import pytest

from relay_receiver.cli import dialogue

SCHEMA = {
    "type": "object",
    "properties": {
        "version": {"type": "string", "title": "Version\u202e", "maxLength": 3},
        "count": {"type": "integer", "default": 2},
        "push": {"type": "boolean"},
        "on": {"type": "array", "items": {"enum": ["linux", "macos"]}},
    },
    "required": ["version"],
}
OPTIONS = [{"id": "a", "label": "A"}, {"id": "b", "label": "B"}]


def request(kind: str, **more: Any) -> dict[str, Any]:
    return {
        "id": "r1",
        "kind": kind,
        "title": "Release?",
        "description": "",
        "options": None,
        "schema": None,
        "action": None,
        "actionHash": None,
        "author": {"id": "b1", "name": "bob", "kind": "agent"},
        "message": None,
        "state": "open",
        "answer": None,
        "answeredBy": None,
        "reason": None,
        "createdAt": "2030-01-01T00:00:00.000Z",
        "expiresAt": "2030-01-02T00:00:00.000Z",
        "endedAt": None,
        **more,
    }


def talk(asked: dict[str, Any], *typed: str) -> tuple[Any, list[str]]:
    """The answer, and all that was shown; `typed` are the lines of the person, in turn."""
    lines: list[str] = []
    left = list(typed)

    def prompt(label: str) -> str:
        lines.append(f"? {label}")
        if not left:
            raise EOFError
        return left.pop(0)

    answer = dialogue.answer(asked, say=lines.append, prompt=prompt)
    assert left == []
    return answer, lines


def test_an_approval_is_shown_whole_before_it_is_asked_for() -> None:
    asked = request("approval", action={"kind": "command", "command": "rm \u202ex", "agentSays": "safe"})
    answer, lines = talk(asked, "", "yes", "accept")
    assert answer == {"decision": "accept"}
    assert lines.index("  rm ⟨U+202E⟩x") < lines.index("? decision (one of accept | decline)")
    assert lines[-4:] == [
        "`decision` is missing.",
        "? decision (one of accept | decline)",
        "`decision` must be one of: accept, decline.",
        "? decision (one of accept | decline)",
    ]


def test_each_field_is_asked_for_until_it_fits() -> None:
    answer, lines = talk(request("form", schema=SCHEMA), "2.3.1", "2.3", "", "perhaps", "no", "linux, macos")
    assert answer == {"version": "2.3", "count": 2, "push": False, "on": ["linux", "macos"]}
    assert "? Version⟨U+202E⟩ (text, at most 3 characters)" in lines
    assert "`version` must have at most 3 characters." in lines
    assert "? push (true or false; may be left out)" in lines


def test_what_may_be_left_out_is_left_out() -> None:
    assert talk(request("form", schema=SCHEMA), "1", "", "", "")[0] == {"version": "1", "count": 2}


@pytest.mark.parametrize(
    ("kind", "typed", "answer"),
    [("input", ("", "main"), {"text": "main"}), ("choice", ("c", "b"), {"choice": "b"})],
)
def test_a_question_and_a_choice(kind: str, typed: tuple[str, ...], answer: dict[str, str]) -> None:
    asked = request(kind, options=OPTIONS if kind == "choice" else None)
    assert talk(asked, *typed)[0] == answer


def test_who_goes_away_answers_nothing() -> None:
    with pytest.raises(EOFError):
        talk(request("input"))
