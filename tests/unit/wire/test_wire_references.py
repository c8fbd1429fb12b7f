"""References to documents and tasks in a text."""

import pytest

from relay_receiver.wire.references import references

PLAN, TODO = "d_abcdefgh2345", "t_abcdefgh2345"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"see doc:{PLAN}, then task:{TODO}.", [("doc", PLAN), ("task", TODO)]),
        (f"(doc:{PLAN}) [task:{TODO}]\ndoc:{PLAN}", [("doc", PLAN), ("task", TODO), ("doc", PLAN)]),
        (f"`doc:{PLAN}` and\n```\ntask:{TODO}\n```", []),
        (f"~~~\ndoc:{PLAN}", []),
        (f"mydoc:{PLAN} x/doc:{PLAN} doc:{PLAN}-more DOC:{PLAN}", []),
        (f"doc: {PLAN} doc:plan doc:{PLAN}X message:{PLAN}", []),
        ("doc:d_" + "a" * 65, []),
        ("", []),
    ],
)
def test_references_are_whole_words_outside_code(text: str, found: list[tuple[str, str]]) -> None:
    parsed = references(text)
    assert [(each.kind, each.id) for each in parsed] == found
    assert all(text[each.start : each.end] == f"{each.kind}:{each.id}" for each in parsed)


def test_a_reference_behind_code_is_where_it_stands() -> None:
    text = f"`é` 東 doc:{PLAN}"
    (only,) = references(text)
    assert text[only.start :] == f"doc:{PLAN}"
