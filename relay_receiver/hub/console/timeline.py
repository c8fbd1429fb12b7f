"""Messages as a page of a channel shows them: who said what to whom, in reply to what, and how far requests are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from relay_receiver.hub import delivery, members, message_views
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.store import Store
from relay_receiver.hub.tables import message as messages
from relay_receiver.jobs.text import clean_name
from relay_receiver.wire.message import seconds
from relay_receiver.wire.stage import ENDS, Stage

Json = dict[str, Any]

LONG = 4000
"""Characters of a message that a page of a channel shows; the whole text is on the message's own page."""
TOGETHER_SECONDS = 300
"""Messages of one author that follow each other within this time stand under one name."""
EXCERPT = 120


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What a message replies to."""

    id: str
    author: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """One message on a page."""

    said: Json
    """As the API tells it."""
    text: str
    """Its content, cut where the page is of a channel and it is long."""
    cut: bool
    follows: bool
    """It stands under the name of the message before it."""
    own: bool
    to: str | None
    mentions: tuple[str, ...]
    """Names."""
    reply: Reply | None
    delivery: Json | None
    withdrawn: bool

    @property
    def what(self) -> str:
        """`message`, `request`, `result` or `notice`."""
        return "notice" if self.said["notice"] else str(self.said["kind"])

    @property
    def open(self) -> bool:
        """Whether this is a request that has not ended."""
        return self.delivery is not None and Stage(self.delivery["stage"]) not in ENDS

    @property
    def can_withdraw(self) -> bool:
        """Whether the reader may take it back."""
        return self.own and self.open and not self.withdrawn


def shown(
    conn: Connection,
    store: Store,
    person: Actor,
    found: Sequence[Json],
    *,
    at: float,
    before: Json | None = None,
    whole: bool = False,
) -> list[Shown]:
    """Messages of one channel as a page shows them, in their order.

    Args:
        before: the message before the first one.
        whole: nothing is cut.
    """
    ids = {each["id"] for each in found}
    named = members.names(conn, {who for each in found for who in (each["to"], *each["mentions"]) if who})
    names = {who: clean_name(row.name) for who, row in named.items()}
    taken_back = select(messages.c.id).where(messages.c.id.in_(ids), messages.c.withdrawn_at.is_not(None))
    withdrawn = set(conn.execute(taken_back).scalars())
    by_id = {each["id"]: each for each in found}
    made = []
    for each in found:
        content = each["content"]
        made.append(
            Shown(
                said=each,
                text=content if whole else _first(content),
                cut=not whole and len(content) > LONG,
                follows=before is not None and _together(before, each),
                own=each["author"]["id"] == person.id,
                to=names.get(each["to"]),
                mentions=tuple(names[who] for who in each["mentions"] if who in names),
                reply=_reply(conn, person, each["replyTo"], by_id),
                delivery=delivery.of(conn, store, each["id"], at=at) if each["kind"] == "request" else None,
                withdrawn=each["id"] in withdrawn,
            )
        )
        before = each
    return made


def _first(content: str) -> str:
    """What of a message a page of a channel shows."""
    if len(content) <= LONG:
        return content
    return content[:LONG].rsplit(None, 1)[0] + " …"


def _together(before: Json, now: Json) -> bool:
    plain = all(each["kind"] == "message" and not each["notice"] and not each["replyTo"] for each in (before, now))
    same = before["author"]["id"] == now["author"]["id"]
    return plain and same and seconds(now["createdAt"]) - seconds(before["createdAt"]) < TOGETHER_SECONDS


def _reply(conn: Connection, person: Actor, wanted: str | None, by_id: dict[str, Json]) -> Reply | None:
    if wanted is None:
        return None
    if (here := by_id.get(wanted)) is not None:
        return _excerpt(wanted, here["author"]["name"], here["content"])
    return reply_to(conn, person, wanted)


def reply_to(conn: Connection, person: Actor, wanted: str) -> Reply | None:
    """What a message of the reader's channels says in short; None where there is none."""
    row = message_views.row_of(conn, wanted)
    if row is None or row.channel not in person.channels:
        return None
    return _excerpt(wanted, row.author_name, row.content)


def _excerpt(wanted: str, author: str, content: str) -> Reply:
    return Reply(id=wanted, author=clean_name(author), text=excerpt(content))


def excerpt(content: str) -> str:
    """How a text begins, on one line."""
    text = " ".join(content[: EXCERPT * 2].split())
    return text if len(text) <= EXCERPT else text[:EXCERPT].rstrip() + "…"
