"""Durable consumers: what they have acknowledged, and what waits for them."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, and_, bindparam, func, insert, select, update
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relay_receiver.hub import events, position, receipts
from relay_receiver.hub.answer import Json, Raw
from relay_receiver.hub.auth import Actor, find
from relay_receiver.hub.body import choice, optional_text, read_json
from relay_receiver.hub.errors import Refusal, invalid, not_found, unauthorized
from relay_receiver.hub.feed import published
from relay_receiver.hub.prepared import Prepared
from relay_receiver.hub.store import Store
from relay_receiver.hub.tables import message, subscription, workspace
from relay_receiver.wire.cursor import Cursor
from relay_receiver.wire.limits import INBOX_EVENTS

MESSAGE_CREATED = "message.created"
MOST = 100
"""Subscriptions of a member."""

_own = Prepared(
    select(subscription).where(subscription.c.id == bindparam("wanted"), subscription.c.member == bindparam("who"))
)
_moved = Prepared(
    update(subscription)
    .where(subscription.c.id == bindparam("wanted"))
    .values(number=bindparam("now"), tag=bindparam("its"))
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Subscription:
    """A durable consumer. It has acknowledged all up to its cursor."""

    id: str
    workspace: str
    member: str
    channel: str | None
    type: str
    number: int
    tag: str | None
    created_at: float

    @property
    def cursor(self) -> Cursor:
        """Up to where it has acknowledged."""
        return Cursor(self.number, self.tag)


def create(conn: Connection, actor: Actor, channel: str | None, cursor: Cursor | None, *, at: float) -> str:
    """Make one that begins at `cursor`, by default now; returns its id.

    Raises:
        Refusal: 401, 404 for a channel that is not the member's, 409 for a cursor that is not of this hub's past.
    """
    now = find(conn, actor.digest)
    if now is None:
        raise unauthorized()
    if channel is not None and channel not in now.channels:
        raise not_found("channel")
    start = _checked(conn, actor.workspace, cursor) if cursor else events.head(conn, actor.workspace)
    count = select(func.count()).select_from(subscription).where(subscription.c.member == actor.id)
    if conn.execute(count).scalar_one() >= MOST:
        raise Refusal(422, "too_many_subscriptions", f"A member may have {MOST} subscriptions.")
    made = secrets.token_hex(12)
    conn.execute(
        insert(subscription).values(
            id=made,
            workspace=actor.workspace,
            member=actor.id,
            channel=channel,
            type=MESSAGE_CREATED,
            number=start.number,
            tag=start.tag,
            created_at=at,
        )
    )
    return made


def acknowledge(conn: Connection, actor: Actor, key: str, cursor: Cursor, *, at: float) -> Cursor:
    """Move a subscription on to `cursor`; an unchanged or older one writes nothing. Returns where it is now.

    Raises:
        Refusal: 404 for one that is not the member's, 422 for a cursor that is not of this hub's past.
    """
    found = get(conn, actor, key)
    if cursor.number <= found.number:
        return found.cursor
    if events.check_cursor(conn, actor.workspace, cursor) == events.DIVERGED:
        raise Refusal(422, events.DIVERGED, "The cursor is not one of this hub's past; read the history.")
    moved = events.cursor_at(conn, actor.workspace, cursor.number)
    _moved(conn, wanted=key, now=moved.number, its=moved.tag)
    channels = actor.channels if found.channel is None else frozenset({found.channel})
    receipts.received(conn, actor.workspace, actor.id, channels, after=found.number, through=moved.number, at=at)
    return moved


def get(conn: Connection, actor: Actor, key: str) -> Subscription:
    """A member's own subscription.

    Raises:
        Refusal: 404.
    """
    row = _own(conn, wanted=key, who=actor.id).one_or_none()
    if row is None:
        raise not_found("subscription")
    return Subscription(**row._mapping)  # noqa: SLF001 - Core's own API


def inbox(conn: Connection, actor: Actor) -> str:
    """All that the member's subscriptions have not acknowledged, as JSON; one entry for each of them."""
    wanted = select(subscription).where(subscription.c.member == actor.id).order_by(subscription.c.created_at)
    entries = [_entry(conn, actor, Subscription(**row._mapping)) for row in conn.execute(wanted)]  # noqa: SLF001 - as above
    return f'{{"deliveries":[{",".join(entries)}]}}'


def _entry(conn: Connection, actor: Actor, found: Subscription) -> str:
    channels = actor.channels if found.channel is None else actor.channels & {found.channel}
    rows = events.rows_after(
        conn,
        actor.workspace,
        found.number,
        channels=channels,
        types=(MESSAGE_CREATED,),
        limit=INBOX_EVENTS + 1,
    )
    some = rows[:INBOX_EVENTS]
    cursor = some[-1].cursor if some else found.cursor
    texts = ",".join(published(row).text for row in some)
    gap = "true" if _gap(conn, found, channels) else "false"
    more = "true" if len(rows) > len(some) else "false"
    # An id is of this hub's making: letters and digits, so it stands in JSON as it is.
    return f'{{"subscription":"{found.id}","events":[{texts}],"cursor":"{cursor}","gap":{gap},"more":{more}}}'


def _gap(conn: Connection, found: Subscription, channels: frozenset[str]) -> bool:
    """Whether a message after its cursor is no longer among the events."""
    bounds = select(workspace.c.pruned, workspace.c.messages_pruned).where(workspace.c.id == found.workspace)
    pruned, messages_pruned = conn.execute(bounds).one()
    if found.number >= pruned:
        return False
    return found.number < messages_pruned or any(
        conn.execute(select(message.c.id).where(_between(each, found.number, pruned)).limit(1)).first()
        for each in channels
    )


def _between(channel: str, after: int, through: int) -> ColumnElement[bool]:
    return and_(message.c.channel == channel, message.c.event > after, message.c.event <= through)


def _checked(conn: Connection, of: str, cursor: Cursor) -> Cursor:
    if reason := events.check_cursor(conn, of, cursor):
        raise Refusal(409, reason, position.SENTENCES[reason])
    return events.cursor_at(conn, of, cursor.number)


class Subscriptions:
    """Answers `/subscriptions` and `/inbox`."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store, self._clock = store, clock
        self.routes = [
            Route("/subscriptions", self.post, methods=["POST"]),
            Route("/subscriptions/{id}", self.patch, methods=["PATCH"]),
            Route("/inbox", self.get_inbox, methods=["GET"]),
        ]

    async def post(self, request: Request) -> Response:
        """Make a durable consumer."""
        actor: Actor = request.state.actor
        actor.need_member()
        body = await read_json(request)
        choice(body, "type", (MESSAGE_CREATED,), default=MESSAGE_CREATED)
        channel = optional_text(body, "channel")
        cursor = None if body.get("cursor") is None else position.parse(body["cursor"])
        made = await self._store.write(create, actor, channel, cursor, at=self._clock())
        return Json({"id": made}, 201)

    async def patch(self, request: Request) -> Response:
        """Acknowledge."""
        actor: Actor = request.state.actor
        actor.need_member()
        body = await read_json(request)
        if body.get("cursor") is None:
            raise invalid("cursor", "`cursor` is missing.")
        key = request.path_params["id"]
        cursor = await self.acknowledge(actor, key, position.parse(body["cursor"]))
        return Json({"id": key, "cursor": str(cursor)})

    async def acknowledge(self, actor: Actor, key: str, cursor: Cursor) -> Cursor:
        """Move a subscription on; one that does not move costs no write."""
        found = self._store.read_now(get, actor, key)
        if cursor.number <= found.number:
            return found.cursor
        return await self._store.write_soon(acknowledge, actor, key, cursor, at=self._clock())

    async def get_inbox(self, request: Request) -> Response:
        """What is not acknowledged yet."""
        actor: Actor = request.state.actor
        actor.need_member()
        return Raw(self._store.read_now(inbox, actor))
