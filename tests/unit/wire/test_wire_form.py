"""Which schemas are forms, and which answers fit one."""

from typing import Any

import pytest

from relay_receiver.wire.form import FormError, check_answer, check_schema, read_fields, schema_of

TEXT = {"type": "string"}
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name", "description": "Of the branch", "minLength": 2, "maxLength": 8},
        "kind": {"type": "string", "enum": ["fix", "feature"], "default": "fix"},
        "count": {"type": "integer", "minimum": 1, "maximum": 5},
        "share": {"type": "number", "minimum": 0, "maximum": 1},
        "push": {"type": "boolean"},
        "files": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 1, "maxItems": 2},
    },
    "required": ["name"],
}


def form(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


def test_a_form_with_every_kind_of_field() -> None:
    check_schema(FORM)
    answer = {"files": ["c", "a"], "push": False, "share": 0.5, "count": 5, "name": "main"}
    assert check_answer(FORM, answer) == {
        "name": "main",
        "kind": "fix",
        "count": 5,
        "share": 0.5,
        "push": False,
        "files": ["c", "a"],
    }
    assert list(check_answer(FORM, answer)) == ["name", "kind", "count", "share", "push", "files"]


@pytest.mark.parametrize(
    "schema",
    [
        None,
        [],
        "object",
        {},
        {"type": "object"},
        {"type": "object", "properties": {}},
        {"type": ["object"], "properties": {"a": TEXT}},
        {"type": "object", "properties": {"a": TEXT}, "additionalProperties": False},
        {"type": "object", "properties": {"a": TEXT}, "required": ["b"]},
        {"type": "object", "properties": {"a": TEXT}, "required": "a"},
        {"type": "object", "properties": {"a": TEXT}, "required": [["a"]]},
        {"type": "object", "properties": {f"f{n}": TEXT for n in range(65)}},
        form(a=None),
        form(a={}),
        form(a={"type": "object", "properties": {}}),
        form(a={"type": "null"}),
        form(a={"type": ["string", "null"]}),
        form(a={"type": "string", "pattern": "(a+)+$"}),
        form(a={"type": "string", "format": "uri"}),
        form(a={"type": "string", "$ref": "#"}),
        form(a={"type": "string", "minimum": 1}),
        form(a={"type": "string", "title": 7}),
        form(a={"type": "string", "title": "x" * 2000}),
        form(a={"type": "string", "enum": []}),
        form(a={"type": "string", "enum": ["x", "x"]}),
        form(a={"type": "string", "enum": ["x", 1]}),
        form(a={"type": "string", "enum": [str(n) for n in range(300)]}),
        form(a={"type": "string", "minLength": -1}),
        form(a={"type": "string", "minLength": 2.5}),
        form(a={"type": "string", "minLength": 3, "maxLength": 2}),
        form(a={"type": "string", "default": 7}),
        form(a={"type": "string", "enum": ["x"], "default": "y"}),
        form(a={"type": "integer", "minimum": True}),
        form(a={"type": "integer", "minimum": None}),
        form(a={"type": "number", "minimum": float("inf")}),
        form(a={"type": "boolean", "enum": [True]}),
        form(a={"type": "array"}),
        form(a={"type": "array", "items": TEXT}),
        form(a={"type": "array", "items": {"type": "number", "enum": [1]}}),
        form(a={"type": "array", "items": {"enum": ["x"]}, "minItems": 2, "maxItems": 1}),
        form(**{"\u202ea": TEXT}),
        form(**{"": TEXT}),
        form(**{"x" * 65: TEXT}),
    ],
)
def test_anything_else_is_no_form_and_one_sentence_says_why(schema: Any) -> None:
    with pytest.raises(FormError) as refused:
        check_schema(schema)
    assert refused.value.sentence.endswith(".")
    assert len(refused.value.sentence) < 300
    assert refused.value.code == "invalid_value"


@pytest.mark.parametrize(
    ("answer", "field"),
    [
        (None, ""),
        ([], ""),
        ("main", ""),
        ({}, "name"),
        ({"name": None}, "name"),
        ({"name": "m"}, "name"),
        ({"name": "much too long"}, "name"),
        ({"name": 7}, "name"),
        ({"name": "a\x00b"}, "name"),
        ({"name": "a\ud800b"}, "name"),
        ({"name": "main", "other": 1}, "other"),
        ({"name": "main", "kind": "chore"}, "kind"),
        ({"name": "main", "kind": ["fix"]}, "kind"),
        ({"name": "main", "count": 0}, "count"),
        ({"name": "main", "count": 6}, "count"),
        ({"name": "main", "count": 2.0}, "count"),
        ({"name": "main", "count": True}, "count"),
        ({"name": "main", "count": "2"}, "count"),
        ({"name": "main", "share": 1.01}, "share"),
        ({"name": "main", "share": False}, "share"),
        ({"name": "main", "share": float("nan")}, "share"),
        ({"name": "main", "push": "true"}, "push"),
        ({"name": "main", "push": 1}, "push"),
        ({"name": "main", "files": []}, "files"),
        ({"name": "main", "files": ["a", "b", "c"]}, "files"),
        ({"name": "main", "files": ["a", "a"]}, "files"),
        ({"name": "main", "files": ["d"]}, "files"),
        ({"name": "main", "files": [["a"]]}, "files"),
        ({"name": "main", "files": "a"}, "files"),
    ],
)
def test_an_answer_that_does_not_fit_says_where(answer: Any, field: str) -> None:
    with pytest.raises(FormError) as refused:
        check_answer(FORM, answer)
    assert refused.value.field == field
    assert refused.value.sentence.endswith(".")


def test_a_text_without_a_bound_of_its_own_has_one() -> None:
    with pytest.raises(FormError):
        check_answer(form(a=TEXT), {"a": "x" * (64 * 1024 + 1)})


def test_every_kind_of_request_is_a_form() -> None:
    options = [{"id": "a", "label": "A"}, {"id": "b", "label": "B"}]
    for kind, good, bad in (
        ("input", {"text": "yes"}, {"text": ""}),
        ("choice", {"choice": "b"}, {"choice": "c"}),
        ("approval", {"decision": "decline"}, {"decision": "always"}),
        ("form", {"name": "main", "kind": "fix"}, {"name": ""}),
    ):
        schema = schema_of(kind, options, FORM)
        check_schema(schema)
        assert check_answer(schema, good) == good
        with pytest.raises(FormError):
            check_answer(schema, bad)


def test_fields_of_a_command_line_or_a_page_become_an_answer() -> None:
    pairs = [("name", "main"), ("count", " 3 "), ("share", ".5"), ("push", "yes"), ("files", "b"), ("files", "a")]
    answer = read_fields(FORM, pairs)
    assert check_answer(FORM, answer) == {
        "name": "main",
        "kind": "fix",
        "count": 3,
        "share": 0.5,
        "push": True,
        "files": ["b", "a"],
    }
    assert read_fields(FORM, [("count", ""), ("kind", ""), ("push", "")]) == {}
    assert read_fields(form(a=TEXT), [("a", "")]) == {"a": ""}


@pytest.mark.parametrize(
    "pair",
    [("other", "1"), ("count", "3.5"), ("count", "٣"), ("count", "9" * 5000), ("share", "nan"), ("push", "perhaps")],
)
def test_a_text_that_is_no_such_value_says_where(pair: tuple[str, str]) -> None:
    with pytest.raises(FormError) as refused:
        read_fields(FORM, [pair])
    assert refused.value.field == pair[0]


def test_a_field_that_takes_one_value_is_given_once() -> None:
    with pytest.raises(FormError):
        read_fields(FORM, [("name", "main"), ("name", "other")])
