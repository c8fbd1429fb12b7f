"""A message as the hub tells it."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from relay_receiver.jobs.text import clean

HUMAN = "human"
"""`authorId` of every person; `author.id` says which."""


NUMBERS = 10**18
"""Event numbers stay below it, so that every database and cursor holds them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Author:
    """Who wrote a message; `kind` is `agent` or `human`."""

    id: str
    name: str
    kind: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One message of a channel. `event` orders it; `id` identifies it."""

    id: str
    event: int
    channel: str
    author: Author
    kind: str
    content: str
    to: str | None
    mentions: tuple[str, ...]
    reply_to: str | None
    operation_id: str | None
    outcome: str | None
    root: str
    hop: int
    attachments: tuple[Mapping[str, Any], ...]
    created_at: str
    expires_at: str | None
    notice: bool

    @property
    def by_agent(self) -> bool:
        """Whether an agent wrote it; everybody else is a person."""
        return self.author.kind == "agent"

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Self:
        """Read a message from its JSON, ignoring unknown fields.

        Raises:
            ValueError: a field that it needs is missing, or one is of the wrong type.
        """
        try:
            author = data.get("author") or {}
            author_id = _id(author.get("id") or data["authorId"])
            person = data.get("authorId") == HUMAN or author.get("kind", "agent") != "agent"
            chain = data.get("chain") or {}
            message = _id(data["id"])
            return cls(
                id=message,
                event=_number(data["event"]),
                channel=_id(data["channel"]),
                author=Author(
                    id=author_id, name=_text(str(author.get("name") or author_id)), kind=HUMAN if person else "agent"
                ),
                kind=_id(data["kind"]),
                content=_text(data["content"]),
                to=_optional(data.get("to")),
                mentions=tuple(_id(one) for one in _list(data.get("mentions"))),
                reply_to=_optional(data.get("replyTo")),
                operation_id=_optional(data.get("operationId")),
                outcome=_optional(data.get("outcome")),
                root=_id(chain.get("root") or message),
                hop=_number(chain.get("hop") or 0),
                attachments=tuple(_object(one) for one in _list(data.get("attachments"))),
                created_at=_optional(data.get("createdAt")) or "",
                expires_at=_optional(data.get("expiresAt")),
                notice=bool(data.get("notice")),
            )
        except (KeyError, TypeError, AttributeError, UnicodeError) as error:
            raise ValueError(f"this is not a message of protocol 1: {error}") from error


def _text(value: object) -> str:
    """What people wrote, with what no database takes replaced."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return clean(value)


def _id(value: object) -> str:
    """What is compared, and so never changed: text that can be stored, or an error."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    value.encode()
    return value


def _optional(value: object) -> str | None:
    return None if value is None else _id(value)


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < NUMBERS:
        raise TypeError(f"{value!r} is not an event or hop number")
    return value


def _list(value: object) -> Sequence[object]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise TypeError(f"{value!r} is not a list")
    return value


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r} is not an object")
    return value


def iso(seconds: float) -> str:
    """Seconds since the epoch as ISO 8601 UTC with milliseconds, as on the wire."""
    moment = dt.datetime.fromtimestamp(seconds, tz=dt.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds(text: str) -> float:
    """The seconds since the epoch that an ISO 8601 time names; without an offset it is UTC.

    Raises:
        ValueError: it is not a time.
    """
    moment = dt.datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return moment.timestamp()
