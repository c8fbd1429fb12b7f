"""What time does: requests expire, leases run out, old events go, search follows. An idle hub writes nothing."""

import asyncio
import logging
import time

from sqlalchemy import Connection

from relay_receiver.hub import asks, events, leases, members, receipts, search_index
from relay_receiver.hub.store import Store

LOOK_SECONDS = 1.0
PRUNE_SECONDS = 60.0
"""Between two looks for old events, and for the last few that are not in the search index."""
INDEXED_BATCHES = 32

_log = logging.getLogger(__name__)


async def keep(store: Store) -> None:
    """Do what time asks for, until cancelled."""
    pruned_at = 0.0
    news = asyncio.Event()
    news.set()
    store.on_commit(lambda _: news.set())
    while True:
        try:
            await sweep(store)
            if news.is_set():
                news.clear()
                if await index(store, least=search_index.BATCH_EVENTS):
                    news.set()
            if time.monotonic() - pruned_at >= PRUNE_SECONDS:
                pruned_at = time.monotonic()
                await index(store, least=1)
                await prune(store)
        except Exception:  # noqa: BLE001 - logged, and it goes on: nothing else ends what has expired
            _log.exception("housekeeping failed; it tries again")
        await asyncio.sleep(LOOK_SECONDS)


async def sweep(store: Store) -> None:
    """End what has expired, tell of leases that ran out and of reports that came too fast."""
    now = time.time()
    while any(await store.read(_overdue, now)):
        if not await store.write(receipts.expire, now) + await store.write(asks.expire, now):
            break
    await leases.tell_changed(store)
    await leases.tell_lapsed(store)


def _overdue(conn: Connection, at: float) -> tuple[bool, bool]:
    return receipts.any_overdue(conn, at), asks.any_overdue(conn, at)


async def index(store: Store, *, least: int) -> bool:
    """Put events into the search index where at least so many are not in it; whether some of a backlog are left."""
    left = False
    for each in await store.read(members.workspaces):
        for _ in range(INDEXED_BATCHES):
            if await store.read(search_index.behind, each) < least:
                break
            await store.write(search_index.catch_up, each)
        else:
            left = True
    return left


async def prune(store: Store) -> None:
    """Forget events that are no longer kept, a piece at a time."""
    for each in await store.read(members.workspaces):
        while await store.read(_prunable, each):
            await store.write(_prune, each)


def _prunable(conn: Connection, of: str) -> bool:
    return events.prunable(conn, of, now=time.time()) > 0


def _prune(conn: Connection, of: str) -> None:
    events.prune(conn, of, now=time.time())
