"""Attachments: files named by the SHA-256 of their bytes, for members of the channels that they were posted in."""

import asyncio
import hashlib
import os
import re
import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert, select, update

from relay_receiver.hub.auth import Actor
from relay_receiver.hub.errors import Refusal, invalid, not_found
from relay_receiver.hub.tables import attachment, message, message_attachment, upload
from relay_receiver.jobs.text import clean_name
from relay_receiver.wire.limits import ATTACHMENT_BYTES

FOLDER = "attachments"
MOST = 16
"""Attachments of one message."""
ANY_TYPE = "application/octet-stream"
NAME_CHARS = 200
UNNAMED = "attachment"
_ID = re.compile(r"[0-9a-f]{64}")
_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(?:; ?[\w.+-]+=[\w.+-]+)*", re.ASCII)

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class File:
    """An attachment on disk."""

    path: Path
    name: str
    type: str
    size: int


def called(name: str | None) -> str:
    """The name of a file as it is kept and shown."""
    return clean_name(name or UNNAMED, most=NAME_CHARS)


class Shelf:
    """The files of all attachments; each appears under its name only once it is whole and on disk."""

    def __init__(self, data: Path) -> None:
        self._folder = data / FOLDER

    def path(self, wanted: str) -> Path:
        """Where the file of an id is.

        Raises:
            Refusal: 404, it is no such id; so it never names another path.
        """
        if not _ID.fullmatch(wanted):
            raise not_found("attachment")
        return self._folder / wanted[:2] / wanted

    async def keep(self, chunks: AsyncIterator[bytes]) -> tuple[str, int]:
        """Store the bytes, fsynced; returns their id and size.

        Raises:
            Refusal: 413, there are too many.
        """
        self._folder.mkdir(mode=0o700, exist_ok=True)
        partial = self._folder / f"partial-{secrets.token_hex(8)}"
        hashed, size = hashlib.sha256(), 0
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                async for chunk in chunks:
                    size += len(chunk)
                    if size > ATTACHMENT_BYTES:
                        raise Refusal(
                            413,
                            "too_large",
                            f"An attachment has at most {ATTACHMENT_BYTES} bytes.",
                            limit=ATTACHMENT_BYTES,
                        )
                    hashed.update(chunk)
                    file.write(chunk)
                file.flush()
                await asyncio.to_thread(os.fsync, file.fileno())
            made = hashed.hexdigest()
            await asyncio.to_thread(_place, partial, self.path(made))
        finally:
            partial.unlink(missing_ok=True)
        return made, size


def _place(partial: Path, target: Path) -> None:
    """Give a whole file its name, durably."""
    target.parent.mkdir(mode=0o700, exist_ok=True)
    partial.replace(target)
    for folder in (target.parent, target.parent.parent):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def media_type(given: str | None) -> str:
    """A media type that is safe to send back; whatever else a client says is bytes."""
    return given if given is not None and len(given) <= 128 and _TYPE.fullmatch(given) else ANY_TYPE


def record(conn: Connection, actor: Actor, *, made: str, size: int, name: str, type_: str, at: float) -> Json:
    """Note that a member has these bytes: it may attach them."""
    here = (upload.c.attachment == made, upload.c.member == actor.id)
    known = select(attachment.c.id).where(attachment.c.workspace == actor.workspace, attachment.c.id == made)
    if conn.execute(known).first() is None:
        conn.execute(insert(attachment).values(workspace=actor.workspace, id=made, size=size, created_at=at))
    values = {"name": name, "type": type_, "at": at}
    if conn.execute(update(upload).where(*here).values(**values)).rowcount == 0:
        conn.execute(insert(upload).values(workspace=actor.workspace, attachment=made, member=actor.id, **values))
    return {"id": made, "name": name, "type": type_, "size": size}


def find(conn: Connection, actor: Actor, shelf: Shelf, wanted: str) -> File:
    """A file that the caller may read: its own upload, or one that was posted in a channel of the caller.

    Raises:
        Refusal: 404.
    """
    path = shelf.path(wanted)
    row = _described(conn, actor, wanted)
    if row is None or not path.is_file():
        raise not_found("attachment")
    return File(path=path, name=row["name"], type=row["type"], size=row["size"])


def _described(conn: Connection, actor: Actor, wanted: str) -> Json | None:
    """How an attachment that the caller may see is called: by its own upload, else by a message that carries it."""
    own = (
        select(upload.c.name, upload.c.type, attachment.c.size)
        .join(attachment, (attachment.c.workspace == upload.c.workspace) & (attachment.c.id == upload.c.attachment))
        .where(upload.c.attachment == wanted, upload.c.member == actor.id)
    )
    posted = (
        select(message_attachment.c.name, message_attachment.c.type, message_attachment.c.size)
        .join(message, message.c.id == message_attachment.c.message)
        .where(message_attachment.c.attachment == wanted, message.c.channel.in_(actor.channels))
        .limit(1)
    )
    for query in (own, posted):
        if (row := conn.execute(query).first()) is not None:
            return dict(row._mapping)  # noqa: SLF001 - Core's own API
    return None


def attach(conn: Connection, actor: Actor, to: str, given: Sequence[Json]) -> list[Json]:
    """Attach what the author has uploaded, or sees in its channels; returns the attachments as messages carry them.

    Raises:
        Refusal: 422, one of them is not there for the author.
    """
    made = []
    for position, each in enumerate(given):
        found = _described(conn, actor, each["id"])
        if found is None:
            raise invalid("attachments", "An attachment is not there; upload it first.")
        told = {
            "id": each["id"],
            "name": each.get("name") or found["name"],
            "type": found["type"],
            "size": found["size"],
        }
        made.append(told)
        conn.execute(
            insert(message_attachment).values(
                message=to,
                position=position,
                workspace=actor.workspace,
                attachment=each["id"],
                name=told["name"],
                type=told["type"],
                size=told["size"],
            )
        )
    return made
