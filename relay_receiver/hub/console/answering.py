"""What a person gives as the answer to a request in a browser, and how its form is shown again where it did not fit."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from relay_receiver.hub.console.form import Form
from relay_receiver.hub.errors import Refusal
from relay_receiver.wire.form import FormError, read_fields, schema_of

FIELD = "answer."
"""What the names of a form's fields begin with, so that none of them is another field of the page."""

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """One field of a form as HTML needs it; `values` are those that are chosen or typed already."""

    name: str
    id: str
    label: str
    hint: str
    type: str
    required: bool
    choices: tuple[str, ...]
    several: bool
    values: tuple[str, ...]
    bounds: Json


def fields(request: Json, given: Form | None = None) -> list[Field]:
    """The fields of a request of kind `form`, in its order.

    Args:
        given: what was sent and did not fit.
    """
    schema = request["schema"] or {}
    required = schema.get("required", ())
    return [
        _field(request["id"], name, field, given=given, required=name in required)
        for name, field in schema.get("properties", {}).items()
    ]


def _field(of: str, name: str, field: Json, *, given: Form | None, required: bool) -> Field:
    several = field["type"] == "array"
    choices = field["items"]["enum"] if several else field.get("enum", ())
    default = field.get("default")
    defaults = () if default is None else default if isinstance(default, list) else (default,)
    return Field(
        name=FIELD + name,
        id=f"{of}-{name}",
        label=field.get("title") or name,
        hint=field.get("description", ""),
        type=field["type"],
        required=required,
        choices=tuple(_word(each) for each in choices),
        several=several,
        values=tuple(given.all(FIELD + name)) if given is not None else tuple(_word(each) for each in defaults),
        bounds={key: field[key] for key in ("minLength", "maxLength", "minimum", "maximum") if key in field},
    )


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def answer(request: Json, given: Form) -> Json:
    """The answer that a form carries; whether it fits is checked where it is stored.

    Raises:
        Refusal: 422, a field cannot be read.
    """
    schema = schema_of(request["kind"], request["options"], request["schema"])
    try:
        return read_fields(schema, _pairs(schema, given))
    except FormError as error:
        raise Refusal(422, error.code, error.sentence, field=error.field) from error


def _pairs(schema: Json, given: Form) -> Iterator[tuple[str, str]]:
    for name in schema["properties"]:
        for value in given.all(FIELD + name):
            yield name, value
