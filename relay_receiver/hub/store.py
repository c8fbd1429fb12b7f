"""The hub's store: one writer thread that commits all that waits in one transaction, and reads of the last commit."""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from relay_receiver.hub import engine, schema
from relay_receiver.hub.errors import Refusal
from relay_receiver.hub.events import FRESH, EventRow
from relay_receiver.hub.live import Live
from relay_receiver.wire import faultpoint

GROUP = 256
"""Writes of one transaction, at the most: bounds how long the first of them waits."""
SOON_SECONDS = 0.02
"""How long a write that nobody waits for waits for another to be committed with."""
AUTH_CHANGED = "auth_changed"
"""Set in a connection's `info` by a write after which remembered credentials may be wrong."""

P = ParamSpec("P")
T = TypeVar("T")
OnCommit = Callable[[list[EventRow]], None]

_log = logging.getLogger(__name__)


@dataclass(kw_only=True, slots=True)
class _Write:
    """One function to run in the writer thread, and who waits for what it returns."""

    name: str
    call: Callable[[Connection], Any]
    waiting: "asyncio.Future[Any] | Future[Any]"
    soon: bool = False
    result: Any = None
    error: BaseException | None = None

    def tell(self) -> None:
        """Give the waiter its answer, unless it went away."""
        if self.waiting.done():
            return
        if self.error is None:
            self.waiting.set_result(self.result)
        else:
            self.waiting.set_exception(self.error)


class Store:
    """One database with one writer.

    A write is a function of the connection. Those that wait are committed together: each either does all it does or
    nothing, and is answered after the commit is on disk.
    """

    def __init__(self, path: Path, writer: Connection, reader: Connection) -> None:
        self.path = path
        self._writer, self._reader = writer, reader
        self.live = Live()
        """What is true of this process's time only: leases and declarations that still count."""
        self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listeners: list[OnCommit] = []
        self._auth_listeners: list[Callable[[], None]] = []
        self._reading = threading.Lock()
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="hub-writer", daemon=True)
        self._thread.start()

    @classmethod
    def open(cls, where: str | Path) -> Self:
        """Open the database at a path, in a directory or by URL; make or upgrade it where that is needed.

        Raises:
            RelayError: it cannot be used, or its schema is newer than this program.
        """
        path = engine.locate(where)
        writer = engine.connect(path, write=True)
        try:
            _prepare(writer, path)
            return cls(path, writer, engine.connect(path, write=False))
        except BaseException:
            engine.dispose(writer)
            raise

    def close(self) -> None:
        """Commit what still waits, then close the file."""
        self._queue.put(None)
        self._thread.join()
        engine.dispose(self._reader)
        engine.dispose(self._writer)

    def on_commit(self, listener: OnCommit) -> None:
        """Have `listener` called in the event loop after each commit, with its events in order."""
        self._listeners.append(listener)

    def on_auth_change(self, listener: Callable[[], None]) -> None:
        """Have `listener` called in the event loop after a commit that changed who may do what."""
        self._auth_listeners.append(listener)

    async def write(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `fn(conn, ...)` in the writer's transaction; the answer comes after the commit.

        A caller that is cancelled does not undo it.
        """
        self._loop = asyncio.get_running_loop()
        waiting: asyncio.Future[T] = self._loop.create_future()
        self._queue.put(_Write(name=_name(fn), call=lambda conn: fn(conn, *args, **kwargs), waiting=waiting))
        return await waiting

    async def write_soon(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same for what nobody waits for: it is committed with the next other write, or alone after a moment."""
        self._loop = asyncio.get_running_loop()
        waiting: asyncio.Future[T] = self._loop.create_future()
        self._queue.put(_Write(name=_name(fn), call=lambda conn: fn(conn, *args, **kwargs), waiting=waiting, soon=True))
        return await waiting

    def write_now(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same from outside an event loop."""
        waiting: Future[T] = Future()
        self._queue.put(_Write(name=_name(fn), call=lambda conn: fn(conn, *args, **kwargs), waiting=waiting))
        return waiting.result()

    async def read(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `fn(conn, ...)` on one snapshot of the last commit.

        It runs in the caller's thread: an indexed read takes a fraction of what the way to another thread costs.
        """
        return self.read_now(fn, *args, **kwargs)

    def read_now(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same from outside an event loop."""
        with self._reading, self._reader.begin():
            return fn(self._reader, *args, **kwargs)

    def _work(self) -> None:
        while not self._closing and (first := self._queue.get()) is not None:
            self._commit(first)

    def _commit(self, first: _Write) -> None:
        info = self._writer.info
        info[FRESH] = []
        info.pop(AUTH_CHANGED, None)
        group = [first]
        try:
            with self._writer.begin():
                if self._queue.empty() and not first.soon:
                    first.result = first.call(self._writer)
                else:
                    self._savepoint(first)
                    for write in self._more(patient=first.soon):
                        group.append(write)
                        self._savepoint(write)
                for write in group:
                    faultpoint.hit("hub", write.name, "before")
        except Refusal as refusal:
            first.error = refusal
            info[FRESH] = []
        except Exception as error:  # noqa: BLE001 - whatever it was, every waiter is told and the writer goes on
            _fail(group, error)
            info[FRESH] = []
        try:
            for write in group:
                faultpoint.hit("hub", write.name, "after")
        except Exception as error:  # noqa: BLE001 - a waiter that is not told waits for ever
            _log.exception("a commit was made, and not told")
            for write in group:
                write.result, write.error = None, error
        self._announce(group, info[FRESH], auth=AUTH_CHANGED in info)

    def _more(self, *, patient: bool) -> Iterator[_Write]:
        """What else belongs into this transaction: all that waits when it begins.

        Args:
            patient: only writes that nobody waits for came so far: they are done already, and a moment is left for
                another one to be committed with.
        """
        until = time.monotonic() + SOON_SECONDS
        waiting = min(self._queue.qsize(), GROUP - 1)
        while patient or waiting > 0:
            try:
                more = self._queue.get(timeout=max(0.0, until - time.monotonic()) if patient else 0)
            except queue.Empty:
                return
            if more is None:
                self._closing = True
                return
            waiting -= 1
            if patient and not more.soon:
                patient, waiting = False, min(self._queue.qsize(), GROUP - 1)
            yield more

    def _savepoint(self, write: _Write) -> None:
        """Run one of several writes so that its failure undoes nothing but itself."""
        conn, events = self._writer, self._writer.info[FRESH]
        before = len(events)
        # Past Core: these two take a quarter of the writer's time otherwise.
        say: Any = conn.connection.driver_connection
        say.execute("SAVEPOINT one")
        try:
            write.result = write.call(conn)
        except Exception as error:
            if isinstance(error, DBAPIError) and not say.in_transaction:
                raise
            if not isinstance(error, Refusal):
                _log.exception("a write failed")
            write.error = error
            say.execute("ROLLBACK TO one")
            del events[before:]
        say.execute("RELEASE one")

    def _announce(self, group: list[_Write], events: list[EventRow], *, auth: bool) -> None:
        """Answer the writes of a commit, in the event loop after its listeners where there is a loop."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._tell, group, events, auth)
        for write in group:
            if isinstance(write.waiting, Future):
                write.tell()

    def _tell(self, group: list[_Write], events: list[EventRow], auth: bool) -> None:  # noqa: FBT001 - call_soon passes by position
        try:
            for changed in self._auth_listeners if auth else ():
                changed()
            for told in self._listeners if events else ():
                told(events)
        except Exception:  # noqa: BLE001 - the same
            _log.exception("a commit was not told to all who listen")
        for write in group:
            if isinstance(write.waiting, asyncio.Future):
                write.tell()


def _name(fn: Callable[..., Any]) -> str:
    return getattr(fn, "__name__", "write").lstrip("_")


def _fail(group: list[_Write], error: Exception) -> None:
    """Nothing of the group was committed: tell each of it."""
    _log.error("a commit failed", exc_info=error)
    told = error
    if isinstance(error, DBAPIError):
        told = Refusal(
            503, "storage_unavailable", "The hub cannot store anything just now; nothing was done.", retry_after=1
        )
        told.__cause__ = error
    for write in group:
        write.result, write.error = None, told


def _prepare(conn: Connection, path: Path) -> None:
    with conn.begin():
        found = schema.version(conn)
        if found is None:
            schema.create(conn)
            return
    if found != schema.HEAD:
        with conn.begin():
            # Inside the lock: nothing is written between the copy and the upgrade.
            schema.back_up(path, found=found)
            schema.upgrade(conn, found=found)
