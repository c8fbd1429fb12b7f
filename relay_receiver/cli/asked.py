"""A request to people in words: whole, with all that cannot be seen made visible, and what may be typed in answer."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from relay_receiver.jobs.text import clean_name
from relay_receiver.wire.action import visible

Json = dict[str, Any]


def shown(request: Mapping[str, Any]) -> list[str]:
    """A request in full."""
    return list(_shown(request))


def _shown(request: Mapping[str, Any]) -> Iterator[str]:
    from relay_receiver.hub.console.shown import parts

    author, name = request["author"], clean_name(request["author"]["name"])
    yield f"{request['kind']} {request['id']} by {name} ({author['kind']}), {request['createdAt']}"
    yield f"state: {state(request)}"
    if request["message"]:
        yield f"for the request: relay messages show {request['message']}"
    yield from _block(f"asks, in the words of {name}:", request["title"])
    if request["description"]:
        yield from _block("and says:", request["description"])
    for part in parts(request["action"]):
        yield from _block(f"{part.label}{' (its own words)' if part.says else ''}:", part.text)
    yield from _fields(request)
    if request["actionHash"]:
        yield f"action hash: {request['actionHash']}"
    if request["answer"] is not None:
        yield from _block("answer:", said(request))


def _block(label: str, text: str) -> Iterator[str]:
    yield label
    yield from (f"  {line}" for line in visible(text).split("\n"))


def _fields(request: Mapping[str, Any]) -> Iterator[str]:
    for option in request["options"] or ():
        more = f": {option['description']}" if option.get("description") else ""
        yield visible(f"choice {option['id']}: {option['label']}{more}")
    schema = request["schema"] or {}
    for name, field in schema.get("properties", {}).items():
        needed = "needed" if name in schema.get("required", ()) else "may be left out"
        yield visible(f"field {name}: {kind_of(field)}; {needed}")
        for note in ("title", "description"):
            if field.get(note):
                yield from (f"  {line}" for line in visible(field[note]).split("\n"))


def kind_of(field: Mapping[str, Any]) -> str:
    """What a field of a form takes, in words."""
    choices = field["items"]["enum"] if field["type"] == "array" else field.get("enum")
    words = [f"several of {_list(choices)}" if field["type"] == "array" else f"one of {_list(choices)}"]
    if not choices:
        words = [
            {"string": "text", "boolean": "true or false", "integer": "a whole number"}.get(field["type"], "a number")
        ]
    bounds = (("minLength", "maxLength", "characters"), ("minimum", "maximum", ""), ("minItems", "maxItems", "of them"))
    for least, most, unit in bounds:
        words += [f"at least {field[least]} {unit}".rstrip()] if least in field else []
        words += [f"at most {field[most]} {unit}".rstrip()] if most in field else []
    if field.get("default") is not None:
        words.append(f"else {json.dumps(field['default'], ensure_ascii=False)}")
    return ", ".join(words)


def _list(choices: Sequence[Any] | None) -> str:
    return " | ".join(str(each) for each in choices or ())


def state(request: Mapping[str, Any]) -> str:
    """How it stands, in words."""
    if request["state"] == "open":
        return f"open until {request['expiresAt']}"
    by = f" by {clean_name(request['answeredBy']['name'])}" if request["answeredBy"] else ""
    why = f": {request['reason']}" if request["reason"] else ""
    return visible(f"{request['state']}{by}, {request['endedAt']}{why}")


def said(request: Mapping[str, Any]) -> str:
    """The answer as a person reads it."""
    answer = request["answer"]
    if len(answer) == 1 and request["kind"] != "form":
        return str(next(iter(answer.values())))
    return "\n".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in answer.items())


def next_line(request: Mapping[str, Any]) -> str:
    """The line that a person types after having read it."""
    line = f"relay requests respond {request['id']}"
    if request["state"] != "open":
        return f"relay messages show {request['message']}" if request["message"] else "relay requests list"
    match request["kind"]:
        case "approval":
            return f"{line} --accept|--decline"
        case "choice":
            return f"{line} --choice {shlex.quote(request['options'][0]['id'])}"
        case "form":
            required = request["schema"].get("required") or list(request["schema"]["properties"])
            return line + "".join(f" --field {shlex.quote(f'{name}=...')}" for name in required)
    return f'{line} --text "..."'
