"""A message as the hub tells it."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

HUMAN = "human"
"""`authorId` of every person; `author.id` says which."""


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
            ValueError: a field that identifies or orders the message is missing or of the wrong type.
        """
        try:
            author = data.get("author") or {}
            author_id = author.get("id") or data["authorId"]
            chain = data.get("chain") or {}
            return cls(
                id=_text(data["id"]),
                event=_number(data["event"]),
                channel=_text(data["channel"]),
                author=Author(
                    id=_text(author_id),
                    name=str(author.get("name") or author_id),
                    kind="agent" if author.get("kind", "agent") == "agent" and data.get("authorId") != HUMAN else HUMAN,
                ),
                kind=_text(data["kind"]),
                content=_text(data["content"]),
                to=data.get("to"),
                mentions=tuple(_text(m) for m in data.get("mentions") or ()),
                reply_to=data.get("replyTo"),
                operation_id=data.get("operationId"),
                outcome=data.get("outcome"),
                root=str(chain.get("root") or data["id"]),
                hop=int(chain.get("hop") or 0),
                attachments=tuple(data.get("attachments") or ()),
                created_at=str(data.get("createdAt") or ""),
                expires_at=data.get("expiresAt"),
                notice=bool(data.get("notice")),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"this is not a message of protocol 1: {error}") from error


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not an event number")
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
