"""Answering a request at a terminal: it is shown, then asked for, field by field, until the answer fits."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from relay_receiver.cli import asked
from relay_receiver.wire.action import visible
from relay_receiver.wire.form import FormError, check_answer, read_fields, schema_of

Json = dict[str, Any]


def answer(request: Mapping[str, Any], *, say: Callable[[str], None], prompt: Callable[[str], str]) -> Json:
    """The answer of the person at the terminal.

    Args:
        say: shows a line.
        prompt: asks for one line; whatever it raises ends the dialogue with nothing sent.
    """
    for line in asked.shown(request):
        say(line)
    schema = schema_of(request["kind"], request["options"], request["schema"])
    found: Json = {}
    for name, field in schema["properties"].items():
        found |= _field(name, field, needed=name in schema.get("required", ()), say=say, prompt=prompt)
    return check_answer(schema, found)


def _field(
    name: str, field: Mapping[str, Any], *, needed: bool, say: Callable[[str], None], prompt: Callable[[str], str]
) -> Json:
    alone = {"type": "object", "properties": {name: field}, "required": [name] if needed else []}
    label = visible(f"{field.get('title') or name} ({asked.kind_of(field)}{'' if needed else '; may be left out'})")
    while True:
        typed = prompt(label)
        try:
            return check_answer(alone, read_fields(alone, _pairs(name, field, typed, needed=needed)))
        except FormError as error:
            say(visible(error.sentence))


def _pairs(name: str, field: Mapping[str, Any], typed: str, *, needed: bool) -> Iterator[tuple[str, str]]:
    """What was typed, as fields: of an array several, separated by commas; nothing where nothing was typed."""
    if field["type"] == "array":
        yield from ((name, each.strip()) for each in typed.split(",") if each.strip())
    elif typed or needed:
        yield name, typed
