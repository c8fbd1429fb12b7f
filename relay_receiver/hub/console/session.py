"""A person's sign-in in one browser: a cookie whose digest is kept, and what its forms must carry."""

import hmac
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from sqlalchemy import Connection, bindparam, delete, insert, select
from starlette.requests import Request

from relay_receiver.hub.auth import REMEMBERED, Actor, digest
from relay_receiver.hub.members import AGENT
from relay_receiver.hub.prepared import Prepared
from relay_receiver.hub.store import AUTH_CHANGED, Store
from relay_receiver.hub.tables import channel_member, member, workspace
from relay_receiver.hub.tables_people import session

COOKIE = "relay_session"
SECONDS = 12 * 3600
"""How long a sign-in lasts."""
AT_ONCE = 100
"""Sign-ins that are over and forgotten with one write, at the most."""
_TOKEN_CHARS = 512

_find = Prepared(
    select(
        session.c.digest.label("session"),
        session.c.csrf,
        session.c.expires_at,
        member.c.id,
        member.c.workspace,
        workspace.c.name.label("workspace_name"),
        member.c.name,
        member.c.role,
        member.c.digest,
    )
    .join(member, member.c.id == session.c.member)
    .join(workspace, workspace.c.id == member.c.workspace)
    .where(session.c.digest == bindparam("wanted"), member.c.role != AGENT)
)
_channels = Prepared(select(channel_member.c.channel).where(channel_member.c.member == bindparam("wanted")))


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """A sign-in that counts: whose it is, what its forms carry, and its end in seconds since the epoch."""

    digest: str
    csrf: str
    expires_at: float
    person: Actor


def find(conn: Connection, wanted: str) -> Session | None:
    """The sign-in whose cookie has this digest; never an agent's."""
    row = _find(conn, wanted=wanted).one_or_none()
    if row is None or not hmac.compare_digest(row.session, wanted):
        return None
    person = Actor(
        id=row.id,
        workspace=row.workspace,
        workspace_name=row.workspace_name,
        name=row.name,
        role=row.role,
        channels=frozenset(_channels(conn, wanted=row.id).scalars()),
        digest=row.digest,
    )
    return Session(digest=row.session, csrf=row.csrf, expires_at=row.expires_at, person=person)


def begin(conn: Connection, *, who: str, token: str, csrf: str, at: float) -> None:
    """Sign a member in under a new cookie; what is over of others is forgotten."""
    over = select(session.c.digest).where(session.c.expires_at <= at).limit(AT_ONCE)
    conn.execute(delete(session).where(session.c.digest.in_(over)))
    conn.execute(
        insert(session).values(digest=digest(token), member=who, csrf=csrf, created_at=at, expires_at=at + SECONDS)
    )


def end(conn: Connection, wanted: str) -> None:
    """Sign out; twice is fine."""
    conn.execute(delete(session).where(session.c.digest == wanted))
    conn.info[AUTH_CHANGED] = True


class Sessions:
    """Finds who is signed in, and remembers it until a commit changes who may do what."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store, self._clock = store, clock
        self._known: dict[str, Session] = {}
        store.on_auth_change(self._known.clear)

    def find(self, token: str | None) -> Session | None:
        """The sign-in with this cookie, if it counts still."""
        if not token or len(token) > _TOKEN_CHARS:
            return None
        wanted = digest(token)
        found = self._known.get(wanted)
        if found is None:
            found = self._store.read_now(find, wanted)
            if found is not None:
                if len(self._known) >= REMEMBERED:
                    self._known.clear()
                self._known[wanted] = found
        return found if found is not None and found.expires_at > self._clock() else None


def session_of(request: Request) -> Session:
    """The sign-in of a request; every page but the sign-in itself has one."""
    return cast("Session", request.state.session)


def person(request: Request) -> Actor:
    """Who is signed in: a person, never an agent or a job."""
    return session_of(request).person
