"""Words of a text and of a query, and the snippet around what was found."""

import pytest

from relay_receiver.wire.words import QUERY_WORDS, parse, snippet, words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Deploy the café, twice!", ["deploy", "the", "cafe", "twice"]),
        ("retry_count=3 foo.py", ["retry", "count", "3", "foo", "py"]),
        ("Straße ŽLUŤOUČKÝ ﬁle İstanbul", ["strasse", "zlutoucky", "file", "istanbul"]),
        ("cafe\u0301", ["cafe"]),
        ("東京タワー", ["東", "京", "タ", "ワ", "ー"]),
        ("한국어 русский", ["한국어", "русскии"]),
        ("x" * 100, ["x" * 64]),
        ("!!! ... \u202e", []),
    ],
)
def test_words_are_folded_and_cut_at_what_is_no_letter(text: str, found: list[str]) -> None:
    assert words(text) == found


@pytest.mark.parametrize(
    ("typed", "phrases", "open_end"),
    [
        ("deploy now", (("deploy",), ("now",)), True),
        ('"deploy now"', (("deploy", "now"),), False),
        ('"deploy now', (("deploy", "now"),), False),
        ('say "a b" retry_c', (("say",), ("a", "b"), ("retry", "c")), True),
        ("東京", (("東", "京"),), True),
        ("", (), False),
        ('""" * ( NEAR', (("near",),), False),
        ("-x AND y) OR (", (("x",), ("and",), ("y",), ("or",)), True),
    ],
)
def test_whatever_is_typed_is_a_query(typed: str, phrases: tuple[tuple[str, ...], ...], open_end: bool) -> None:  # noqa: FBT001 - a parameter of the test
    found = parse(typed)
    assert found.phrases == phrases
    assert found.open_end == open_end


def test_a_long_query_counts_up_to_its_limit() -> None:
    assert sum(map(len, parse(" ".join(map(str, range(100)))).phrases)) == QUERY_WORDS
    assert sum(map(len, parse("_".join(map(str, range(100)))).phrases)) == QUERY_WORDS


def _said(text: str, *wanted: str) -> str:
    return "".join(f"[{part.text}]" if part.hit else part.text for part in snippet(text, wanted))


def test_a_snippet_shows_the_first_word_found_and_marks_each_hit() -> None:
    assert _said("Deploy the café now", "cafe", "now") == "Deploy the [café] [now]"
    long = "word " * 100 + "Needle and Needles" + " word" * 100
    said = _said(long, "needle")
    assert said.startswith("…word ")
    assert said.endswith("…")
    assert "[Needle] and Needles" in said
    assert len(said) < 200
    assert _said("nothing here", "needle") == "nothing here"
    assert _said("Straße " * 3 + "needle", "needle").endswith("[needle]")
    assert _said("ich sehe 東京 gern", "京") == "ich sehe 東[京] gern"
    assert _said("needle_one", "one") == "needle_[one]"
    assert _said("") == ""
