"""A message as a person begins it in a form, before it is one of the hub's."""

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection
from starlette.datastructures import UploadFile

from relay_receiver.hub import attachments, members, messages
from relay_receiver.hub.attachments import Shelf
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.body import choice, text
from relay_receiver.hub.console.form import Form, operation
from relay_receiver.hub.errors import invalid
from relay_receiver.hub.store import Store
from relay_receiver.wire import limits
from relay_receiver.wire.mentions import mentioned

Json = dict[str, Any]

KINDS = ("message", "request")
EXPIRES = {"1h": 3600, "1d": 86_400, "7d": 7 * 86_400, "30d": 30 * 86_400}
"""How long a request may wait, in seconds, by what the form says."""
USUAL = "7d"
CHUNK = 256 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """What the form holds."""

    content: str
    kind: str
    to: str | None
    mentions: tuple[str, ...]
    reply: str | None
    expires: str
    operation: str
    """Sent twice it is one message."""
    attached: tuple[Json, ...] = ()
    """`{id, name}` of files that the hub has already."""


def blank(*, to: str | None = None, reply: str | None = None) -> Draft:
    """A form in which nothing is written yet."""
    kind = "request" if to else "message"
    return Draft(content="", kind=kind, to=to, mentions=(), reply=reply, expires=USUAL, operation=operation())


def read(form: Form) -> Draft:
    """What a person sent.

    Raises:
        Refusal: 413, 422.
    """
    kind = choice(form, "kind", KINDS, default="message")
    return Draft(
        content=text(form, "content", least=0, most_bytes=limits.CONTENT_BYTES),
        kind=kind,
        to=form.filled("to") if kind == "request" else None,
        mentions=tuple(dict.fromkeys(form.all("mention")))[: members.MOST],
        reply=form.filled("reply"),
        expires=choice(form, "expires", EXPIRES, default=USUAL),
        operation=text(form, "operation", least=8),
        attached=_attached(form),
    )


def lenient(form: Form) -> Draft:
    """What a person sent and was not taken, as far as it can be shown again; under a new operation id."""
    kind, expires = form.get("kind", ""), form.get("expires", "")
    return Draft(
        content=form.get("content", ""),
        kind=kind if kind in KINDS else "message",
        to=form.filled("to"),
        mentions=tuple(form.all("mention")),
        reply=form.filled("reply"),
        expires=expires if expires in EXPIRES else USUAL,
        operation=operation(),
        attached=_attached(form),
    )


def _attached(form: Form) -> tuple[Json, ...]:
    """Files that an earlier try left at the hub: of each its id and, behind a space, its name."""
    found = [each.partition(" ") for each in form.all("attached")[: attachments.MOST]]
    return tuple({"id": made, "name": attachments.called(name)} for made, _, name in found)


async def keep(store: Store, actor: Actor, files: Sequence[UploadFile]) -> tuple[Json, ...]:
    """Keep the files that came with a form: `{id, name, type, size}` each.

    Raises:
        Refusal: 413, one is too large.
    """
    kept = []
    for file in files:
        made, size = await Shelf(store.path.parent).keep(_chunks(file))
        said = {
            "name": attachments.called(file.filename),
            "type_": attachments.media_type(file.content_type),
        }
        kept.append(await store.write(attachments.record, actor, made=made, size=size, at=time.time(), **said))
    return tuple(kept)


async def _chunks(file: UploadFile) -> AsyncIterator[bytes]:
    while chunk := await file.read(CHUNK):
        yield chunk


def post(conn: Connection, actor: Actor, channel: str, draft: Draft, *, at: float) -> Json:
    """Post it; raises as a message of the API does."""
    if not draft.content.strip() and not draft.attached:
        raise invalid("content", "Write something first, or attach a file.")
    return messages.post(conn, actor, message(conn, channel, draft, at=at), at=at)


def message(conn: Connection, channel: str, draft: Draft, *, at: float) -> messages.Draft:
    """The message that it makes in a channel; whom its text mentions counts beside those who are ticked.

    Of a message without ticks the hub itself reads the text.
    """
    ticked = draft.mentions
    if (ticked or draft.kind == "request") and "@" in draft.content:
        roster = members.roster(conn, channel)
        agents = [(row.id, row.name) for row in roster if members.kind(row.role) == members.AGENT]
        ticked = tuple(dict.fromkeys([*ticked, *mentioned(draft.content, agents)]))
    return messages.Draft(
        channel=channel,
        content=draft.content,
        kind=draft.kind,
        operation=draft.operation,
        to=draft.to,
        mentions=ticked,
        reply_to=draft.reply,
        attachments=draft.attached,
        expires_at=at + EXPIRES[draft.expires] if draft.kind == "request" else None,
    )
