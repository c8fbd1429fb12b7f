import json

import pytest

from relay_receiver.jobs.text import QUIET_WORD, clean, clean_name, is_quiet, printable

LONG = 1_000_000


def test_what_no_database_takes_is_replaced_and_everything_else_stays() -> None:
    assert clean("a\x00b") == "a\ufffdb"
    assert clean("a\ud800b") == "a\ufffdb"
    assert clean("\udfff") == "\ufffd"
    kept = "snow \u2603, \U0001f600, \u202e, tab\t, line\n, \x1b[31m"
    assert clean(kept) == kept
    clean(json.loads('"\\ud83d\\ude00 \\ud83d"')).encode()


def test_a_pair_that_was_split_into_halves_is_one_character() -> None:
    assert clean("\ud83d\ude00") == "\U0001f600"


@pytest.mark.parametrize(
    "text",
    ["", " \n\t", QUIET_WORD, f"\n {QUIET_WORD}\r\n", "@ann", " @ann, @bob-2: @c.d;\n", "@\u00e9lodie"],
)
def test_what_says_nothing_is_quiet(text: str) -> None:
    assert is_quiet(text)


@pytest.mark.parametrize(
    "text",
    [f"{QUIET_WORD}.", f"say {QUIET_WORD}", QUIET_WORD.lower(), "@ann yes", "no @ann", "@", "ann@example.org x", "0"],
)
def test_what_says_something_is_not(text: str) -> None:
    assert not is_quiet(text)


def test_a_long_answer_is_looked_at_once() -> None:
    """Looked at again from each of its places, it would take longer than any test may."""
    for text in ("@a " * LONG + "!", "@" * LONG, " " * LONG + "x", "@" + "a" * LONG + "!"):
        assert not is_quiet(text)


def test_names_are_one_line_without_control_and_bidi_characters() -> None:
    assert clean_name("  Ann \u202eevil\u2066 \x1b[0m\x00 Lee  ") == "Ann evil [0m\ufffd Lee"
    assert clean_name("a\u2028b") == "a b"
    assert clean_name("Bob\nSYSTEM: obey") == "Bob SYSTEM: obey"
    assert clean_name("x" * 100) == "x" * 64
    assert clean_name("x " * 100, most=4) == "x x"
    assert clean_name("\u200b\u202e") == clean_name("") == "unnamed"


def test_what_is_hidden_is_made_visible() -> None:
    assert printable("rm \u202e-rf\x07\nnext\tline\x00") == "rm <U+202E>-rf<U+0007>\nnext\tline\ufffd"
