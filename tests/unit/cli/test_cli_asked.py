"""A request to people in words, and what is typed in answer."""

from typing import Any

import pytest

from relay_receiver.cli import asked, requests
from relay_receiver.wire.action import action_hash
from relay_receiver.wire.errors import RelayError

ACTION = {"kind": "command", "command": "make\u202e", "cwd": "/srv", "agentSays": "fine"}
REQUEST: dict[str, Any] = {
    "id": "r1",
    "kind": "approval",
    "title": "Run it?",
    "description": "",
    "options": None,
    "schema": None,
    "action": ACTION,
    "actionHash": action_hash(ACTION),
    "author": {"id": "b1", "name": "bob", "kind": "agent"},
    "message": "m1",
    "state": "open",
    "answer": None,
    "answeredBy": None,
    "reason": None,
    "createdAt": "2030-01-01T00:00:00.000Z",
    "expiresAt": "2030-01-02T00:00:00.000Z",
    "endedAt": None,
}
SCHEMA = {
    "type": "object",
    "properties": {
        "version": {"type": "string", "title": "Version", "description": "As\nin 2.3", "maxLength": 9},
        "kind": {"type": "string", "enum": ["beta", "stable"], "default": "beta"},
        "percent": {"type": "number", "minimum": 1, "maximum": 100},
        "on": {"type": "array", "items": {"enum": ["linux", "macos"]}, "minItems": 1},
    },
    "required": ["version"],
}
OPTIONS = [{"id": "a", "label": "A", "description": "the first"}, {"id": "b", "label": "B\u200b"}]


def of(kind: str, **more: Any) -> dict[str, Any]:
    return {**REQUEST, "kind": kind, "action": None, "actionHash": None, **more}


def test_an_approval_in_words() -> None:
    assert asked.shown(REQUEST) == [
        "approval r1 by bob (agent), 2030-01-01T00:00:00.000Z",
        "state: open until 2030-01-02T00:00:00.000Z",
        "for the request: relay messages show m1",
        "asks, in the words of bob:",
        "  Run it?",
        "Command:",
        "  make⟨U+202E⟩",
        "Working directory:",
        "  /srv",
        "The agent says (its own words):",
        "  fine",
        f"action hash: {action_hash(ACTION)}",
    ]


def test_choices_and_fields_in_words() -> None:
    assert asked.shown(of("choice", options=OPTIONS))[-2:] == ["choice a: A: the first", "choice b: B⟨U+200B⟩"]
    assert asked.shown(of("form", schema=SCHEMA))[5:] == [
        "field version: text, at most 9 characters; needed",
        "  Version",
        "  As",
        "  in 2.3",
        'field kind: one of beta | stable, else "beta"; may be left out',
        "field percent: a number, at least 1, at most 100; may be left out",
        "field on: several of linux | macos, at least 1 of them; may be left out",
    ]


@pytest.mark.parametrize(
    ("request_", "line"),
    [
        (REQUEST, "relay requests respond r1 --accept|--decline"),
        (of("input"), 'relay requests respond r1 --text "..."'),
        (of("choice", options=OPTIONS), "relay requests respond r1 --choice a"),
        (of("form", schema=SCHEMA), "relay requests respond r1 --field version=..."),
        ({**REQUEST, "state": "expired"}, "relay messages show m1"),
        ({**REQUEST, "state": "answered", "message": None}, "relay requests list"),
    ],
)
def test_the_next_line_to_type(request_: dict[str, Any], line: str) -> None:
    assert asked.next_line(request_) == line


def test_how_it_ended_in_words() -> None:
    by = {"id": "a1", "name": "ann"}
    answered = of("input", state="answered", answer={"text": "a\u202eb"}, answeredBy=by, endedAt="then")
    assert asked.shown(answered)[1] == "state: answered by ann, then"
    assert asked.shown(answered)[-2:] == ["answer:", "  a⟨U+202E⟩b"]
    ended = of("input", state="superseded", reason="The job\u2028 has ended.", endedAt="then")
    assert asked.state(ended) == "superseded, then: The job⟨U+2028⟩ has ended."
    form = of("form", schema=SCHEMA, state="applied", answer={"version": "2", "on": ["linux"]}, endedAt="then")
    assert asked.said(form) == 'version: "2"\non: ["linux"]'


def test_an_answer_is_for_the_action_that_is_shown_here() -> None:
    assert requests._shown_hash(REQUEST, None) == REQUEST["actionHash"]
    assert requests._shown_hash(REQUEST, REQUEST["actionHash"]) == REQUEST["actionHash"]
    assert requests._shown_hash(of("input"), None) is None
    for wrong, typed in (
        ({**REQUEST, "action": {**ACTION, "cwd": "/"}}, None),
        ({**REQUEST, "actionHash": "0" * 64}, "0" * 64),
        ({**REQUEST, "actionHash": None}, None),
        (REQUEST, "0" * 64),
        (of("input"), "0" * 64),
    ):
        with pytest.raises(RelayError) as refused:
            requests._shown_hash(wrong, typed)
        assert refused.value.code == "action_changed"
