"""Enrolment: a single-use code makes a membership out of secrets that the client made itself."""

import hmac
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from relay_receiver.hub import channels, ids, members
from relay_receiver.hub.auth import Actor, digest
from relay_receiver.hub.errors import Refusal
from relay_receiver.hub.store import AUTH_CHANGED
from relay_receiver.hub.tables import enrolment, identity, member
from relay_receiver.wire.limits import ENROLMENT_SECONDS
from relay_receiver.wire.message import HUMAN, iso

REPEAT_SECONDS = 24 * 3600.0
"""How long a used code is kept, so that a lost answer can be asked for again."""
AT_ONCE = 100

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Code:
    """A code and when it ends, seconds since the epoch."""

    code: str
    expires_at: float

    def to_json(self) -> Json:
        """As `POST /invites` answers."""
        return {"code": self.code, "expiresAt": iso(self.expires_at)}


def owner_code(conn: Connection, *, at: float, name: str = "relay") -> Code:
    """A code for the owner's seat; the workspace is made where there is none."""
    space = members.first_workspace(conn) or members.make_workspace(conn, name, at=at)
    return _make(conn, space, role="owner", channel=None, created_by=None, at=at)


def invite(conn: Connection, actor: Actor, channel: str, *, person: bool, at: float) -> Code:
    """A code for one channel, made by a person who is in it."""
    actor.need_person("invite others")
    channels.need(actor, channel)
    role = "human" if person else members.AGENT
    return _make(conn, actor.workspace, role=role, channel=channel, created_by=actor.id, at=at)


def _make(
    conn: Connection, workspace: str, *, role: str, channel: str | None, created_by: str | None, at: float
) -> Code:
    old = select(enrolment.c.digest).where(enrolment.c.expires_at < at - REPEAT_SECONDS).limit(AT_ONCE)
    conn.execute(delete(enrolment).where(enrolment.c.digest.in_(old)))
    made = Code(code=ids.code(), expires_at=at + ENROLMENT_SECONDS)
    conn.execute(
        insert(enrolment).values(
            digest=digest(made.code),
            workspace=workspace,
            channel=channel,
            role=role,
            created_by=created_by,
            expires_at=made.expires_at,
        )
    )
    return made


def enroll(conn: Connection, *, code: str, client_secret: str, identity_secret: str, name: str, at: float) -> Json:
    """Join with a code. The same code with the same secrets gives the same membership, however often.

    Raises:
        Refusal: 403, the code is wrong, used or expired, which is one answer; or the membership is of another kind;
            422, an agent cannot have this name.
    """
    row = conn.execute(select(enrolment).where(enrolment.c.digest == digest(code.strip().lower()))).one_or_none()
    token = digest(client_secret)
    have = conn.execute(select(member).where(member.c.digest == token)).one_or_none()
    person = conn.execute(select(identity).where(identity.c.digest == digest(identity_secret))).one_or_none()
    if row is None:
        raise _refused()
    if have is not None and (person is None or not hmac.compare_digest(have.identity, person.id)):
        raise _refused()
    if row.member is not None:
        if have is None or have.id != row.member:
            raise _refused()
        return _answer(row, have.id)
    if row.expires_at <= at:
        raise _refused()
    who = (
        _widen(row, have)
        if have is not None
        else _join(conn, row, person, token=token, identity_secret=identity_secret, name=name, at=at)
    )
    if row.channel is not None:
        channels.join(conn, row.workspace, row.channel, who, at=at)
    conn.execute(update(enrolment).where(enrolment.c.digest == row.digest).values(member=who, used_at=at))
    conn.info[AUTH_CHANGED] = True
    return _answer(row, who)


def _widen(row: Row[*tuple[Any, ...]], have: Row[*tuple[Any, ...]]) -> str:
    """A membership that gains a channel; it keeps its role."""
    same = members.kind(have.role) == members.kind(row.role)
    if have.workspace != row.workspace or not same or (row.role == "owner" and have.role != "owner"):
        raise Refusal(403, "other_kind", "This code is for another kind of member; join under another profile.")
    return str(have.id)


def _join(
    conn: Connection,
    row: Row[*tuple[Any, ...]],
    person: Row[*tuple[Any, ...]] | None,
    *,
    token: str,
    identity_secret: str,
    name: str,
    at: float,
) -> str:
    if row.role == members.AGENT and name.casefold() == HUMAN:
        raise members.reserved()
    whose = person.id if person is not None else ids.new("i")
    if person is None:
        conn.execute(insert(identity).values(id=whose, digest=digest(identity_secret), name=name, created_at=at))
    who = ids.new("m")
    conn.execute(
        insert(member).values(
            id=who, workspace=row.workspace, identity=whose, role=row.role, name=name, digest=token, created_at=at
        )
    )
    if row.channel is None:
        members.tell_updated(conn, row.workspace, who, at=at)
    return who


def _answer(row: Row[*tuple[Any, ...]], who: str) -> Json:
    return {"agentId": who, "workspace": row.workspace, "channel": row.channel}


def _refused() -> Refusal:
    return Refusal(403, "invite_invalid", "This enrolment code is wrong, used or expired; ask for a new one.")
