"""Who calls: a member by its membership token, or one run by its job credential. Only hashes are kept."""

import hashlib
import hmac
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select

from relay_receiver.hub.errors import forbidden, unauthorized
from relay_receiver.hub.prepared import Prepared
from relay_receiver.hub.store import Store
from relay_receiver.hub.tables import channel_member, job_credential, member, message, run, workspace

REMEMBERED = 4096
"""Credentials remembered between two changes of who may do what."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """The run that a job credential is for, and where its chain stands."""

    run: str
    request: str
    message: str | None
    root: str | None
    hop: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Actor:
    """Who makes a call. With `job` it is a run of that member, which may do little."""

    id: str
    workspace: str
    workspace_name: str
    name: str
    role: str
    channels: frozenset[str]
    digest: str
    job: Job | None = None

    @property
    def is_person(self) -> bool:
        """Whether a person calls. Nothing but a person's own credential makes one."""
        return self.role != "agent" and self.job is None

    def need_person(self, what: str) -> None:
        """Refuse 403 unless a person calls; `what` completes 'Only a person may ...'."""
        if not self.is_person:
            raise forbidden(f"Only a person may {what}.", "person_needed")

    def need_member(self) -> None:
        """Refuse 403 where a job calls."""
        if self.job is not None:
            raise forbidden("A job may read and post in its own channel, and nothing else.", "inside_a_job")


_member = Prepared(
    select(
        member.c.id,
        member.c.workspace,
        workspace.c.name.label("workspace_name"),
        member.c.name,
        member.c.role,
        member.c.digest,
    )
    .join(workspace, workspace.c.id == member.c.workspace)
    .where(member.c.digest == bindparam("wanted"))
)
_channels = Prepared(select(channel_member.c.channel).where(channel_member.c.member == bindparam("wanted")))
_job = Prepared(
    select(
        member.c.id,
        member.c.workspace,
        workspace.c.name.label("workspace_name"),
        member.c.name,
        member.c.role,
        job_credential.c.digest,
        run.c.id.label("run"),
        run.c.request,
        run.c.scope,
        run.c.message,
        message.c.root,
        message.c.hop,
        message.c.channel,
    )
    .join(run, run.c.id == job_credential.c.run)
    .join(member, member.c.id == run.c.member)
    .join(workspace, workspace.c.id == member.c.workspace)
    .outerjoin(message, message.c.id == run.c.message)
    .where(job_credential.c.digest == bindparam("wanted"), run.c.state == "open")
)


def digest(secret: str) -> str:
    """What is kept of a secret: enough to know it again, and nothing else."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def find(conn: Connection, wanted: str) -> Actor | None:
    """The actor whose credential has this digest."""
    row = _member(conn, wanted=wanted).one_or_none()
    if row is not None and hmac.compare_digest(row.digest, wanted):
        channels = frozenset(_channels(conn, wanted=row.id).scalars())
        return Actor(**row._mapping, channels=channels)  # noqa: SLF001 - Core's own API
    row = _job(conn, wanted=wanted).one_or_none()
    if row is None or not hmac.compare_digest(row.digest, wanted):
        return None
    place = row.channel or row.scope
    joined = place in set(_channels(conn, wanted=row.id).scalars())
    return Actor(
        id=row.id,
        workspace=row.workspace,
        workspace_name=row.workspace_name,
        name=row.name,
        role=row.role,
        digest=row.digest,
        channels=frozenset({place}) if joined else frozenset(),
        job=Job(run=row.run, request=row.request, message=row.message, root=row.root, hop=row.hop or 0),
    )


class Credentials:
    """Finds who calls, and remembers it until a commit changes who may do what."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, Actor] = {}
        store.on_auth_change(self._known.clear)

    def actor(self, token: str) -> Actor | None:
        """The actor with this bearer token, or None."""
        wanted = digest(token)
        found = self._known.get(wanted)
        if found is None:
            found = self._store.read_now(find, wanted)
            if found is not None:
                if len(self._known) >= REMEMBERED:
                    self._known.clear()
                self._known[wanted] = found
        return found


def still(conn: Connection, actor: Actor) -> Actor:
    """The actor as the writer's transaction sees it: between request and write it may have lost its rights.

    Raises:
        Refusal: 401, the credential does not count any more.
    """
    found = find(conn, actor.digest)
    if found is None:
        raise unauthorized()
    return found
