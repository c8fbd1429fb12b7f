"""Signing in: by a link that works once and for ten minutes, or by a person's own token."""

from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select, update

from relay_receiver.hub import ids
from relay_receiver.hub.auth import Actor, digest, still
from relay_receiver.hub.console import session
from relay_receiver.hub.errors import Refusal
from relay_receiver.hub.members import AGENT
from relay_receiver.hub.tables import member
from relay_receiver.hub.tables_people import login

LINK_SECONDS = 600
AT_ONCE = 100
"""Links that are over and forgotten with one write, at the most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """The code of a one-time link, and when it ends in seconds since the epoch."""

    code: str
    expires_at: float


def make_link(conn: Connection, actor: Actor, *, at: float) -> Link:
    """Make a link that signs its maker in.

    Raises:
        Refusal: 403, only a person signs in.
    """
    still(conn, actor).need_person("sign in to the console")
    over = select(login.c.digest).where(login.c.expires_at <= at).limit(AT_ONCE)
    conn.execute(delete(login).where(login.c.digest.in_(over)))
    made = Link(code=ids.token(), expires_at=at + LINK_SECONDS)
    conn.execute(insert(login).values(digest=digest(made.code), member=actor.id, expires_at=made.expires_at))
    return made


def by_link(conn: Connection, code: str, *, token: str, csrf: str, before: str | None, at: float) -> None:
    """Use a link, once.

    Args:
        token: the new cookie.
        before: digest of the browser's cookie until now, which ends.

    Raises:
        Refusal: 403; wrong, used and expired is one answer.
    """
    who = conn.execute(
        update(login)
        .where(login.c.digest == digest(code.strip()), login.c.used_at.is_(None), login.c.expires_at > at)
        .values(used_at=at)
        .returning(login.c.member)
    ).scalar_one_or_none()
    if who is None or not _is_person(conn, who):
        raise Refusal(
            403,
            "link_invalid",
            "This link is wrong, was used already or is older than ten minutes; make a new one with relay console.",
        )
    _begin(conn, who, token=token, csrf=csrf, before=before, at=at)


def by_token(conn: Connection, secret: str, *, token: str, csrf: str, before: str | None, at: float) -> None:
    """Sign in with a person's membership token; the rest as for a link."""
    found = select(member.c.id).where(member.c.digest == digest(secret.strip()), member.c.role != AGENT)
    who = conn.execute(found).scalar_one_or_none()
    if who is None:
        raise Refusal(403, "token_invalid", "This is not the token of a person here; agents and jobs do not sign in.")
    _begin(conn, who, token=token, csrf=csrf, before=before, at=at)


def _is_person(conn: Connection, who: str) -> bool:
    role: str = conn.execute(select(member.c.role).where(member.c.id == who)).scalar_one()
    return role != AGENT


def _begin(conn: Connection, who: str, *, token: str, csrf: str, before: str | None, at: float) -> None:
    if before is not None:
        session.end(conn, before)
    session.begin(conn, who=who, token=token, csrf=csrf, at=at)
