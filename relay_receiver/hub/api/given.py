"""What every handler is given: the store, and who calls."""

import contextlib
import re
from collections.abc import Mapping
from typing import Any, cast

from starlette.requests import Request

from relay_receiver.hub.auth import Actor
from relay_receiver.hub.body import text
from relay_receiver.hub.errors import invalid
from relay_receiver.hub.store import Store
from relay_receiver.jobs.text import clean_name
from relay_receiver.wire.limits import NAME_CHARS
from relay_receiver.wire.message import seconds

Json = dict[str, Any]

TITLE_CHARS = 200
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
"""What would end the line, or show it in another order than it is read."""


def store_of(request: Request) -> Store:
    """The hub's store."""
    return cast("Store", request.app.state.store)


def actor_of(request: Request) -> Actor:
    """Who calls; a job too."""
    return cast("Actor", request.state.actor)


def member_of(request: Request) -> Actor:
    """Who calls; a job is refused."""
    actor = actor_of(request)
    actor.need_member()
    return actor


def name(body: Mapping[str, Any]) -> str:
    """The field `name`: one line without control characters.

    Raises:
        Refusal: 422, it is missing, too long, or nothing is left of it.
    """
    given = text(body, "name", most=NAME_CHARS)
    if clean_name(given) != given.strip():
        raise invalid("name", "`name` must be one line of visible characters.")
    return given.strip()


def title(body: Mapping[str, Any]) -> str:
    """The field `title`: one line of visible characters.

    Raises:
        Refusal: 422, it is missing, empty, too long, or of several lines.
    """
    given = text(body, "title", most=TITLE_CHARS).strip()
    if not given or _HIDDEN.search(given):
        raise invalid("title", "`title` must be one line of visible characters.")
    return given


def moment(body: Mapping[str, Any], field: str) -> float | None:
    """A time in ISO 8601, as seconds since the epoch; None where it is missing or null.

    Raises:
        Refusal: 422, it is no time.
    """
    value = body.get(field)
    if value is None:
        return None
    if isinstance(value, str) and len(value) <= 64:
        with contextlib.suppress(ValueError, OverflowError):
            return seconds(value)
    raise invalid(field, f"`{field}` must be a time in ISO 8601, such as 2030-01-31T12:00:00.000Z.")


def fence(body: Mapping[str, Any]) -> str | None:
    """The field `fence`, a number or its text, as text; None where it is missing or null.

    Raises:
        Refusal: 422, it is neither.
    """
    value = body.get("fence")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | str) or len(str(value)) > 64:
        raise invalid("fence", "`fence` must be the fence that the lease call gave.")
    return str(value)
