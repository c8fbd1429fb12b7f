"""Channels, and who is in them."""

from typing import Any

from sqlalchemy import Connection, delete, insert, select
from sqlalchemy.exc import IntegrityError

from relay_receiver.hub import ids, members
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.errors import Refusal, not_found
from relay_receiver.hub.store import AUTH_CHANGED
from relay_receiver.hub.tables import channel, channel_member, declaration, receiver, subscription

Json = dict[str, Any]


def list_channels(conn: Connection, actor: Actor) -> list[Json]:
    """The caller's channels by name, `{id, name}` each."""
    rows = conn.execute(
        select(channel.c.id, channel.c.name).where(channel.c.id.in_(actor.channels)).order_by(channel.c.folded)
    )
    return [{"id": row.id, "name": row.name} for row in rows]


def need(actor: Actor, wanted: str) -> str:
    """The channel, which the caller must be in.

    Raises:
        Refusal: 404; whoever is not in a channel does not learn that it exists.
    """
    if wanted not in actor.channels:
        raise not_found("channel")
    return wanted


def create(conn: Connection, actor: Actor, name: str, *, at: float) -> Json:
    """Make a channel with the caller in it.

    Raises:
        Refusal: 409, there is one of that name.
    """
    made = ids.new("c")
    try:
        conn.execute(
            insert(channel).values(
                id=made,
                workspace=actor.workspace,
                name=name,
                folded=name.casefold(),
                created_by=actor.id,
                created_at=at,
            )
        )
    except IntegrityError as error:
        raise Refusal(409, "name_taken", f"There is a channel {name} already.") from error
    join(conn, actor.workspace, made, actor.id, at=at)
    return {"id": made, "name": name}


def join(conn: Connection, workspace: str, place: str, who: str, *, at: float) -> None:
    """Put a member into a channel; once is enough."""
    if members.joined(conn, place, who):
        return
    conn.execute(insert(channel_member).values(channel=place, member=who, joined_at=at))
    conn.info[AUTH_CHANGED] = True
    members.tell_updated(conn, workspace, who, channel=place, at=at)


def leave(conn: Connection, actor: Actor, place: str, *, at: float) -> bool:
    """Take the caller out of a channel, with what it held there; an open run stays open. False where it was not in."""
    if not members.joined(conn, place, actor.id):
        return False
    members.tell_updated(conn, actor.workspace, actor.id, channel=place, at=at, left=True)
    for table, column in ((channel_member, "member"), (subscription, "member"), (declaration, "member")):
        conn.execute(delete(table).where(table.c[column] == actor.id, table.c.channel == place))
    conn.execute(delete(receiver).where(receiver.c.member == actor.id, receiver.c.scope == place))
    conn.info[AUTH_CHANGED] = True
    return True
