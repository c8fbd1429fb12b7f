"""The one form in which an action is hashed, and what people are shown of it."""

import json

import pytest

from relay_receiver.wire.action import action_hash, canonical, visible

COMMAND = {"type": "command", "command": ["rm", "-rf", "build"], "cwd": "/srv/ünit"}


def test_the_same_action_has_one_form_whatever_order_its_names_came_in() -> None:
    other = json.loads(json.dumps(dict(reversed(COMMAND.items()))))
    assert canonical(COMMAND) == '{"command":["rm","-rf","build"],"cwd":"/srv/ünit","type":"command"}'
    assert action_hash(other) == action_hash(COMMAND)
    assert len(action_hash(COMMAND)) == 64


@pytest.mark.parametrize(
    "change",
    [
        {"cwd": "/srv/unit"},
        {"command": ["rm", "-rf", "build "]},
        {"command": ["rm", "-rf build"]},
        {"command": ["rm", "-rf", "bui\u200bld"]},
        {"more": None},
    ],
)
def test_any_difference_is_another_hash(change: dict[str, object]) -> None:
    assert action_hash({**COMMAND, **change}) != action_hash(COMMAND)


@pytest.mark.parametrize("action", [{"a": float("nan")}, {"a": {1, 2}}, {"a": "\ud800"}])
def test_what_is_not_json_has_no_hash(action: object) -> None:
    with pytest.raises(ValueError, match=r".+"):
        action_hash(action)


def test_what_cannot_be_seen_or_turns_the_line_around_is_made_visible() -> None:
    assert visible("rm \u202e-rf\u2066 x\x1b[2J\x00\r") == "rm ⟨U+202E⟩-rf⟨U+2066⟩ x⟨U+001B⟩[2J⟨U+0000⟩⟨U+000D⟩"
    assert visible("a\u200bb\u2028c\u00a0d\u3164e\ud800") == "a⟨U+200B⟩b⟨U+2028⟩c⟨U+00A0⟩d⟨U+3164⟩e⟨U+D800⟩"


def test_text_stays_as_it_is_with_its_lines_and_tabs() -> None:
    text = "if x:\n\tgrüße(日本, 'ключ')  # ✓"
    assert visible(text) == text


def test_nothing_is_cut() -> None:
    text = "x" * 300_000 + "\u202e"
    assert visible(text) == "x" * 300_000 + "⟨U+202E⟩"
