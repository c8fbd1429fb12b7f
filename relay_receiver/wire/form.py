"""Forms that people fill in: the part of JSON schema that describes them, and what fits one.

A form is `{"type": "object", "properties": {NAME: FIELD, ...}, "required": [NAME, ...]}`; its fields are asked in
their order. A field has a `type` (string, number, integer, boolean, array), may have `title`, `description` and
`default`, and bounds: `enum`, `minLength`, `maxLength` of a string; `enum`, `minimum`, `maximum` of a number; an array
is several choices, `items: {"enum": [...]}` with `minItems` and `maxItems`.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from relay_receiver.wire.errors import RelayError

FIELDS = 64
"""Fields of a form, at the most."""
CHOICES = 200
TEXT_CHARS = 64 * 1024
"""Characters of a text that says no bound of its own."""
NAME_CHARS = 64
TITLE_CHARS = 1024

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_NOTES = {"type", "title", "description", "default"}
_BOUNDS = {
    "string": {"enum", "minLength", "maxLength"},
    "number": {"enum", "minimum", "maximum"},
    "integer": {"enum", "minimum", "maximum"},
    "boolean": set[str](),
    "array": {"items", "minItems", "maxItems"},
}
_KINDS = {
    "string": "text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list of choices",
}
_YES, _NO = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}

Json = dict[str, Any]


class FormError(RelayError):
    """A schema that is no form, or an answer that does not fit one; `field` says where, empty for the whole."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence, code="invalid_value", field=field)
        self.field = field


def schema_of(kind: str, options: Sequence[Mapping[str, Any]] | None, schema: Mapping[str, Any] | None) -> Json:
    """The form that a request of any kind is: `text`, `choice` or `decision`, or the fields of its own schema."""
    if kind == "form":
        return dict(schema or {})
    if kind == "input":
        field: Json = {"type": "string", "minLength": 1}
        return {"type": "object", "properties": {"text": field}, "required": ["text"]}
    if kind == "choice":
        field = {"type": "string", "enum": [each["id"] for each in options or ()]}
        return {"type": "object", "properties": {"choice": field}, "required": ["choice"]}
    field = {"type": "string", "enum": ["accept", "decline"]}
    return {"type": "object", "properties": {"decision": field}, "required": ["decision"]}


def check_schema(schema: Any) -> None:  # noqa: ANN401 - JSON
    """Accept a schema that is a form.

    Raises:
        FormError: it is none, or one that this does not know: nothing of a schema is passed over.
    """
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise FormError("", "The schema of a form must be an object of type `object`.")
    _known("", schema, {"type", "properties", "required"})
    fields = schema.get("properties")
    if not isinstance(fields, dict) or not 0 < len(fields) <= FIELDS:
        raise FormError("", f"A form must have `properties`: from 1 to {FIELDS} fields.")
    for name, field in fields.items():
        if not isinstance(name, str) or not name.strip() or len(name) > NAME_CHARS or not name.isprintable():
            raise FormError(
                str(name)[:NAME_CHARS], f"The name of a field must be 1 to {NAME_CHARS} visible characters."
            )
        _check_field(name, field)
    required = schema.get("required", [])
    if not isinstance(required, list) or any(not isinstance(each, str) or each not in fields for each in required):
        raise FormError("", "`required` must be a list of names of the form's fields.")


def _check_field(name: str, field: Any) -> None:  # noqa: ANN401 - JSON
    kind = field.get("type") if isinstance(field, dict) else None
    if not isinstance(kind, str) or kind not in _BOUNDS:
        raise FormError(name, f"The type of `{name}` must be one of: {', '.join(_BOUNDS)}.")
    _known(name, field, _NOTES | _BOUNDS[kind])
    for note in ("title", "description"):
        if note in field and (not _is_text(field[note]) or len(field[note]) > TITLE_CHARS):
            raise FormError(name, f"`{note}` of `{name}` must be text of at most {TITLE_CHARS} characters.")
    if kind == "array":
        items = field.get("items")
        if not isinstance(items, dict) or "enum" not in items:
            raise FormError(name, f"`{name}` is an array and must have `items` with an `enum` of texts.")
        _known(name, items, {"type", "enum"})
        if items.get("type", "string") != "string":
            raise FormError(name, f"The items of `{name}` must be texts.")
        _check_enum(name, items["enum"], "string")
    elif "enum" in field:
        _check_enum(name, field["enum"], kind)
    for least, most in (("minLength", "maxLength"), ("minItems", "maxItems"), ("minimum", "maximum")):
        _check_bounds(name, field, least, most)
    if field.get("default") is not None:
        _check_value(name, field, field["default"])


def _known(name: str, given: Mapping[str, Any], among: set[str]) -> None:
    for word in given:
        if word not in among:
            of = f" of `{name}`" if name else ""
            raise FormError(
                name, f"A form cannot have `{str(word)[:NAME_CHARS]}`{of}; it knows {_words(sorted(among))}."
            )


def _check_enum(name: str, given: Any, kind: str) -> None:  # noqa: ANN401 - JSON
    if not isinstance(given, list) or not 0 < len(given) <= CHOICES or not all(_is(kind, each) for each in given):
        raise FormError(name, f"`enum` of `{name}` must be a list of 1 to {CHOICES} choices, each {_KINDS[kind]}.")
    if len(set(given)) != len(given):
        raise FormError(name, f"`enum` of `{name}` has a choice twice.")


def _check_bounds(name: str, field: Mapping[str, Any], least: str, most: str) -> None:
    counts = least != "minimum"
    for word in (least, most):
        if word in field and (not _is("integer" if counts else "number", field[word]) or (counts and field[word] < 0)):
            raise FormError(
                name, f"`{word}` of `{name}` must be {'a whole number from 0 on' if counts else 'a number'}."
            )
    if least in field and most in field and field[least] > field[most]:
        raise FormError(name, f"`{least}` of `{name}` is above its `{most}`.")


def check_answer(schema: Mapping[str, Any], answer: Any) -> Json:  # noqa: ANN401 - JSON
    """An answer that fits a form, its fields in the form's order and defaults filled in.

    Raises:
        FormError: it does not fit; `field` says where.
    """
    if not isinstance(answer, dict):
        raise FormError("", "An answer must be an object of the form's fields.")
    fields: Mapping[str, Mapping[str, Any]] = schema["properties"]
    for name in answer:
        if name not in fields:
            raise FormError(_short(name), f"There is no field `{_short(name)}`: {_words(fields)}.")
    found: Json = {}
    for name, field in fields.items():
        value = answer.get(name)
        if value is None:
            value = field.get("default")
        if value is not None:
            found[name] = _check_value(name, field, value)
        elif name in schema.get("required", ()):
            raise FormError(name, f"`{name}` is missing.")
    return found


def _check_value(name: str, field: Mapping[str, Any], value: Any) -> Any:  # noqa: ANN401 - JSON
    kind = field["type"]
    if not _is(kind, value):
        raise FormError(name, f"`{name}` must be {_KINDS[kind]}.")
    if kind == "array":
        _among(name, field["items"]["enum"], value)
        if len(set(value)) != len(value):
            raise FormError(name, f"`{name}` has a choice twice.")
        _within(name, field, len(value), ("minItems", "maxItems"), "choices")
    elif "enum" in field:
        _among(name, field["enum"], [value])
    if kind == "string":
        _within(name, {"maxLength": TEXT_CHARS, **field}, len(value), ("minLength", "maxLength"), "characters")
    elif kind in {"number", "integer"}:
        _within(name, field, value, ("minimum", "maximum"))
    return value


def _among(name: str, choices: Sequence[Any], values: Iterable[Any]) -> None:
    for value in values:
        if value not in choices:
            raise FormError(name, f"`{name}` must be one of: {_words(choices)}.")


def _within(name: str, field: Mapping[str, Any], value: float, bounds: tuple[str, str], what: str = "") -> None:
    least, most = bounds
    unit = f" {what}" if what else ""
    verb = "have" if what else "be"
    if least in field and value < field[least]:
        raise FormError(name, f"`{name}` must {verb} at least {field[least]}{unit}.")
    if most in field and value > field[most]:
        raise FormError(name, f"`{name}` must {verb} at most {field[most]}{unit}.")


def _is_text(value: Any) -> bool:  # noqa: ANN401 - JSON
    return isinstance(value, str) and not _UNSTORABLE.search(value)


def _is_number(value: Any) -> bool:  # noqa: ANN401 - JSON
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "string": _is_text,
    "number": _is_number,
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list) and all(_is_text(each) for each in value),
}


def _is(kind: str, value: Any) -> bool:  # noqa: ANN401 - JSON
    return _CHECKS[kind](value)


def _words(among: Iterable[Any]) -> str:
    """Some names for a sentence that stays readable."""
    words = [_short(each) for each in among]
    return ", ".join(words[:12]) + (f" and {len(words) - 12} more" if len(words) > 12 else "")


def _short(word: object) -> str:
    return str(word)[:NAME_CHARS]


def read_fields(schema: Mapping[str, Any], pairs: Iterable[tuple[str, str]]) -> Json:
    """The answer that texts are, as a command line or an HTML form has them; `check_answer` is still to look at it.

    A field that is given several times is a list; an empty text counts as not given, except where text is asked for
    without a `default`.

    Raises:
        FormError: a field that is not in the form, one that is given twice, or no number where one is asked for.
    """
    fields: Mapping[str, Mapping[str, Any]] = schema["properties"]
    found: Json = {}
    for name, text in pairs:
        field = fields.get(name)
        if field is None:
            raise FormError(_short(name), f"There is no field `{_short(name)}`: {_words(fields)}.")
        kind = field["type"]
        if kind == "array":
            chosen = found.setdefault(name, [])
            if text:
                chosen.append(text)
        elif name in found:
            raise FormError(name, f"`{name}` is given twice.")
        elif text or (kind == "string" and "enum" not in field and field.get("default") is None):
            found[name] = _read(name, kind, text)
    return found


def _read(name: str, kind: str, text: str) -> Any:  # noqa: ANN401 - JSON
    if kind == "string":
        return text
    word = text.strip().lower()
    if kind == "boolean" and word in _YES | _NO:
        return word in _YES
    if kind == "integer" and len(word) < 20 and re.fullmatch(r"[+-]?[0-9]+", word):
        return int(word)
    if kind == "number" and len(word) < 64 and re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", word):
        return int(word) if word.lstrip("+-").isdigit() and len(word) < 20 else float(word)
    raise FormError(name, f"`{name}` must be {_KINDS[kind]}.")
