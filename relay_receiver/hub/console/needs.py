"""What needs a person: requests that this person may answer."""

import time

from sqlalchemy import Connection, func, select

from relay_receiver.hub.auth import Actor
from relay_receiver.hub.store import Store
from relay_receiver.hub.tables_people import ASK_OPEN, ask


def count(conn: Connection, store: Store, person: Actor) -> int:
    """How many things need this person now."""
    _ = store
    wanted = (
        select(func.count())
        .select_from(ask)
        .where(
            ask.c.workspace == person.workspace,
            ASK_OPEN,
            ask.c.expires_at > time.time(),
            ask.c.channel.in_(person.channels),
        )
    )
    return int(conn.execute(wanted).scalar_one())
