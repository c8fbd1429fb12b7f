"""Members of a workspace, and the identities behind them."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, insert, select, update

from relay_receiver.hub import events, ids
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.errors import Refusal, invalid, not_found, unauthorized
from relay_receiver.hub.prepared import Prepared
from relay_receiver.hub.store import AUTH_CHANGED
from relay_receiver.hub.tables import channel, channel_member, identity, member, workspace
from relay_receiver.wire.message import HUMAN

AGENT = "agent"
MOST = 1000
"""Members that one answer lists."""

Json = dict[str, Any]

_roster = Prepared(
    select(member.c.id, member.c.name, member.c.role)
    .join(channel_member, channel_member.c.member == member.c.id)
    .where(channel_member.c.channel == bindparam("wanted"))
    .limit(MOST)
)
_joined = Prepared(
    select(func.count())
    .select_from(channel_member)
    .where(channel_member.c.channel == bindparam("place"), channel_member.c.member == bindparam("who"))
)
_one = Prepared(select(member).where(member.c.id == bindparam("wanted")))


def kind(role: str) -> str:
    """`agent` or `human`."""
    return AGENT if role == AGENT else HUMAN


def make_workspace(conn: Connection, name: str, *, at: float) -> str:
    """Make a workspace."""
    made = ids.new("w")
    conn.execute(insert(workspace).values(id=made, name=name, created_at=at))
    return made


def first_workspace(conn: Connection) -> str | None:
    """The oldest workspace; None where the hub is new."""
    found: str | None = conn.execute(select(workspace.c.id).order_by(workspace.c.created_at).limit(1)).scalar()
    return found


def workspaces(conn: Connection) -> Sequence[str]:
    """All workspaces."""
    return conn.execute(select(workspace.c.id)).scalars().all()


def get(conn: Connection, wanted: str) -> Row[*tuple[Any, ...]] | None:
    """One member's row."""
    return _one(conn, wanted=wanted).one_or_none()


def roster(conn: Connection, of: str) -> Sequence[Row[*tuple[Any, ...]]]:
    """Id, name and role of each member of a channel."""
    return _roster(conn, wanted=of).all()


def joined(conn: Connection, place: str, who: str) -> bool:
    """Whether a member is in a channel."""
    return bool(_joined(conn, place=place, who=who).scalar())


def list_members(conn: Connection, of: str) -> list[Json]:
    """The members of a channel as peers see them, `status` and `receiver` not filled in."""
    rows = conn.execute(_seen().join(channel_member).where(channel_member.c.channel == of).order_by(member.c.name))
    return [_view(row) for row in rows]


def list_peers(conn: Connection, actor: Actor) -> list[Json]:
    """Everybody in the workspace, each with those of its channels that the caller is in too."""
    rows = conn.execute(_seen().where(member.c.workspace == actor.workspace).order_by(member.c.name))
    found = {row.id: {**_view(row), "channels": []} for row in rows}
    shared = conn.execute(
        select(channel_member.c.member, channel.c.id, channel.c.name)
        .join(channel, channel.c.id == channel_member.c.channel)
        .where(channel_member.c.channel.in_(actor.channels))
        .order_by(channel.c.name)
    )
    for who, place, name in shared:
        if who in found:
            found[who]["channels"].append({"id": place, "name": name})
    return list(found.values())


def _seen() -> Any:  # noqa: ANN401 - a select of Core
    return (
        select(member.c.id, member.c.name, member.c.role, identity.c.signature, identity.c.avatar_url)
        .join(identity, identity.c.id == member.c.identity)
        .limit(MOST)
    )


def _view(row: Row[*tuple[Any, ...]]) -> Json:
    return {
        "id": row.id,
        "name": row.name,
        "kind": kind(row.role),
        "role": row.role,
        "description": row.signature or "",
        "avatarUrl": row.avatar_url,
    }


def get_identity(conn: Connection, digest: str) -> Json:
    """The global profile behind an identity secret.

    Raises:
        Refusal: 401, no agent has this secret.
    """
    row = conn.execute(select(identity).where(identity.c.digest == digest)).one_or_none()
    if row is None:
        raise unauthorized()
    return {"rev": row.rev, "name": row.name, "avatarUrl": row.avatar_url, "signature": row.signature}


def change_identity(conn: Connection, digest: str, *, rev: int, changes: Json, at: float) -> Json:
    """Change a global profile; its members in every workspace take its name.

    Raises:
        Refusal: 409, somebody changed it since; the answer holds what it is now.
    """
    now = get_identity(conn, digest)
    if now["rev"] != rev:
        raise Refusal(409, "stale_rev", "The profile was changed since it was read.", rev=now["rev"], identity=now)
    if "name" in changes and changes["name"].casefold() == HUMAN and _is_agent(conn, digest):
        raise reserved()
    columns = {"name": "name", "avatarUrl": "avatar_url", "signature": "signature"}
    values = {columns[name]: value for name, value in changes.items()}
    row = conn.execute(
        update(identity).where(identity.c.digest == digest).values(rev=rev + 1, **values).returning(identity.c.id)
    ).one()
    whose = conn.execute(select(member.c.id, member.c.workspace).where(member.c.identity == row.id)).all()
    if "name" in values:
        conn.execute(update(member).where(member.c.identity == row.id).values(name=values["name"]))
        conn.info[AUTH_CHANGED] = True
    for each in whose:
        tell_updated(conn, each.workspace, each.id, at=at)
    return get_identity(conn, digest)


def _is_agent(conn: Connection, digest: str) -> bool:
    of = select(member.c.id).join(identity, identity.c.id == member.c.identity)
    return conn.execute(of.where(identity.c.digest == digest, member.c.role == AGENT).limit(1)).first() is not None


def reserved() -> Refusal:
    """The 422 of an agent that would be called what means people."""
    return invalid("name", f"An agent cannot be called `{HUMAN}`: that word means people.")


def tell_updated(
    conn: Connection, of: str, who: str, *, at: float, channel: str | None = None, left: bool = False
) -> None:
    """Store the event that a member has joined, changed or left."""
    row = get(conn, who)
    if row is None:
        raise not_found("member")
    data = {"member": {"id": row.id, "name": row.name, "kind": kind(row.role)}, "channel": channel, "left": left}
    events.append(conn, of, "member.updated", data, channel=channel, at=at)


def names(conn: Connection, wanted: Iterable[str]) -> dict[str, Row[*tuple[Any, ...]]]:
    """Id, name and role of some members, by id."""
    some = list(wanted)
    if not some:
        return {}
    rows = conn.execute(select(member.c.id, member.c.name, member.c.role).where(member.c.id.in_(some)))
    return {row.id: row for row in rows}
