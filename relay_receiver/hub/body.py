"""Reading what a client sent: JSON within bounds, and its fields, each with one clear sentence when it is wrong."""

import json
import math
import re
from collections.abc import Collection, Mapping
from typing import Any, NoReturn

from starlette.requests import Request

from relay_receiver.hub.errors import Refusal, invalid, malformed
from relay_receiver.wire import limits

Json = dict[str, Any]

WHOLE = 2**63
"""Whole numbers are below this, as every database keeps them."""
_DOCUMENT = "document"
_DIGITS = re.compile(r"\d{1,18}")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


async def read_json(request: Request) -> Json:
    """The JSON object that a request carries; an empty body is an empty object.

    It is read once, before anything else looks at the request: what cannot be read is refused alike everywhere.

    Raises:
        Refusal: 400, it is not JSON, too deep, or holds what no database keeps.
    """
    state: dict[str, Any] = request.scope.setdefault("state", {})
    if _DOCUMENT not in state:
        state[_DOCUMENT] = parse(await request.body())
    found: Json = state[_DOCUMENT]
    return found


def parse(raw: bytes) -> Json:
    """The JSON object in `raw`; raises as `read_json` does."""
    if not raw.strip():
        return {}
    value = parse_value(raw)
    if not isinstance(value, dict):
        raise malformed("The body must be a JSON object.")
    return value


def parse_value(raw: bytes | str) -> Any:  # noqa: ANN401 - JSON
    """Any JSON value; raises as `read_json` does."""
    try:
        text = raw if isinstance(raw, str) else raw.decode()
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_whole,
            parse_float=_real,
            parse_constant=_constant,
        )
    except RecursionError:
        raise _too_deep() from None
    except UnicodeDecodeError:
        raise malformed("The body is not UTF-8; lone surrogates are not accepted.", "unstorable_text") from None
    except ValueError:
        raise malformed("The body is not JSON.") from None
    if text.count("[") + text.count("{") > limits.JSON_DEPTH:
        _check_depth(value)
    if "\\u" in text:
        _check_text(value)
    return value


def _object(pairs: list[tuple[str, Any]]) -> Json:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise malformed("A name stands twice in one JSON object.", "duplicate_name")
    return found


def _whole(digits: str) -> int:
    if len(digits) > 20 or not -WHOLE <= (number := int(digits)) < WHOLE:
        raise malformed("A number in the body is too large.", "number_too_large")
    return number


def _real(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise malformed("A number in the body is too large.", "number_too_large")
    return number


def _constant(name: str) -> NoReturn:
    raise malformed(f"{name} is not JSON.")


def _too_deep() -> Refusal:
    return malformed(f"The JSON is nested deeper than {limits.JSON_DEPTH} levels.", "too_deep")


def _check_depth(value: object) -> None:
    """Refuse what is nested too deep, level by level: no recursion, however deep it is."""
    level = [value]
    for _ in range(limits.JSON_DEPTH):
        level = [child for each in level for child in _children(each) if isinstance(child, dict | list)]
        if not level:
            return
    raise _too_deep()


def _check_text(value: object) -> None:
    """Refuse NUL and lone surrogates anywhere, names included: PostgreSQL keeps neither, so no database here does."""
    level = [value]
    while level:
        for each in level:
            check_storable(each)
            if isinstance(each, dict):
                for name in each:
                    check_storable(name)
        level = [child for each in level for child in _children(each)]


def check_storable(value: object) -> None:
    """Refuse text with NUL or lone surrogates; anything else passes.

    Raises:
        Refusal: 400 `unstorable_text`.
    """
    if isinstance(value, str) and _UNSTORABLE.search(value):
        raise malformed("The text holds NUL or a lone surrogate, which are not accepted.", "unstorable_text")


def _children(value: object) -> Collection[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def text(body: Mapping[str, Any], name: str, *, most: int = 256, least: int = 1, most_bytes: int | None = None) -> str:
    """A text field of `least` to `most` characters; with `most_bytes`, of at most so many bytes of UTF-8 instead.

    Raises:
        Refusal: 422 where it is missing, no text, or of another length; 413 where it has too many bytes.
    """
    value = body.get(name)
    if not isinstance(value, str):
        raise invalid(name, f"`{name}` must be text." if value is not None else f"`{name}` is missing.")
    if len(value) < least:
        raise invalid(name, f"`{name}` must have at least {least} characters.")
    if most_bytes is not None:
        if len(value) > most_bytes or len(value.encode()) > most_bytes:
            raise Refusal(413, "too_large", f"`{name}` is larger than {most_bytes} bytes.", field=name)
    elif len(value) > most:
        raise invalid(name, f"`{name}` must have at most {most} characters.")
    return value


def optional_text(body: Mapping[str, Any], name: str, *, most: int = 256, least: int = 0) -> str | None:
    """A text field that may be missing or null; raises as `text` does."""
    return None if body.get(name) is None else text(body, name, most=most, least=least)


def integer(body: Mapping[str, Any], name: str, *, least: int = 0, most: int = WHOLE - 1) -> int:
    """A whole number from `least` to `most`.

    Raises:
        Refusal: 422.
    """
    value = body.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise invalid(name, f"`{name}` must be a whole number." if value is not None else f"`{name}` is missing.")
    if not least <= value <= most:
        raise invalid(name, f"`{name}` must be from {least} to {most}.")
    return value


def optional_integer(body: Mapping[str, Any], name: str, *, least: int = 0, most: int = WHOLE - 1) -> int | None:
    """A whole number that may be missing or null; raises as `integer` does."""
    return None if body.get(name) is None else integer(body, name, least=least, most=most)


def flag(body: Mapping[str, Any], name: str, *, default: bool = False) -> bool:
    """True or false; raises 422 for anything else."""
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise invalid(name, f"`{name}` must be true or false.")
    return value


def choice(body: Mapping[str, Any], name: str, among: Collection[str], *, default: str | None = None) -> str:
    """One of the given words; raises 422 for anything else."""
    value = body.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str) or value not in among:
        raise invalid(name, f"`{name}` must be one of: {', '.join(among)}.")
    return value


def texts(body: Mapping[str, Any], name: str, *, most: int = 64, most_each: int = 128) -> list[str] | None:
    """A list of texts, or None where it is missing or null; raises 422 for anything else."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(each, str) and 0 < len(each) <= most_each for each in value):
        raise invalid(name, f"`{name}` must be a list of texts.")
    if len(value) > most:
        raise invalid(name, f"`{name}` must have at most {most} entries.")
    return value


def mapping(body: Mapping[str, Any], name: str) -> Json | None:
    """An object, or None where it is missing or null; raises 422 for anything else."""
    value = body.get(name)
    if value is None or isinstance(value, dict):
        return value
    raise invalid(name, f"`{name}` must be an object.")


def query_text(request: Request, name: str, *, most: int = 256) -> str | None:
    """A parameter of the query, or None where it is missing or empty; raises 422 where it is too long."""
    value = request.query_params.get(name)
    if value is not None and len(value) > most:
        raise invalid(name, f"`{name}` must have at most {most} characters.")
    return value or None


def query_choice(request: Request, name: str, among: Collection[str], *, default: str) -> str:
    """One of the given words from the query, or the default where it is missing; raises 422 for anything else."""
    return choice({name: query_text(request, name)}, name, among, default=default)


def query_integer(request: Request, name: str, *, least: int = 0, most: int = WHOLE - 1) -> int | None:
    """A whole number of the query, or None where it is missing or empty; raises 422 for anything else."""
    value = request.query_params.get(name)
    if not value:
        return None
    if not (value.isascii() and _DIGITS.fullmatch(value)) or not least <= int(value) <= most:
        raise invalid(name, f"`{name}` must be a whole number from {least} to {most}.")
    return int(value)
