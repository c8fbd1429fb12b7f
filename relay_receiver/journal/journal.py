"""The journal: one SQLite file, one thread that uses it, one transaction for each call."""

import asyncio
import secrets
import sqlite3
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Concatenate, ParamSpec, Self, TypeVar

from sqlalchemy import Connection, exc, update

from relay_receiver.journal import engine, place, schema, tables
from relay_receiver.journal.errors import (
    CopiedState,
    JournalCorrupt,
    JournalError,
    JournalUnavailable,
    MissedTransition,
    NewerSchema,
    translate,
)
from relay_receiver.processes.identity import machine_id
from relay_receiver.wire import faultpoint

__all__ = [
    "Connection",
    "CopiedState",
    "Journal",
    "JournalCorrupt",
    "JournalError",
    "JournalUnavailable",
    "MissedTransition",
    "NewerSchema",
    "adopt",
]

P = ParamSpec("P")
T = TypeVar("T")


class Journal:
    """What this binding knows for certain. Functions of this package do the work; each call is one transaction."""

    def __init__(self, path: Path, conn: Connection, executor: Executor, *, own: bool) -> None:
        self.path = path
        self._conn = conn
        self._executor = executor
        self._own = own

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        executor: Executor | None = None,
        migrate: bool = True,
        machine: Callable[[], str] = machine_id,
        busy: float = engine.BUSY_SECONDS,
    ) -> Self:
        """Open a journal, made where there is none and upgraded where it is older.

        Args:
            executor: where the calls run, one at a time; its own thread unless given.
            migrate: False refuses an older schema instead.
            machine: tells this machine from others.
            busy: seconds to wait for another process that holds the file.

        Raises:
            CopiedState: it was copied or restored, and not adopted.
            NewerSchema: a newer version of the program wrote it.
            JournalUnavailable: it is locked, or cannot be written.
            JournalCorrupt: it is damaged, or no journal.
        """
        conn = _connect(path, busy)
        try:
            _prepare(conn, path, migrate=migrate, machine=machine)
        except BaseException as error:
            engine.dispose(conn)
            if isinstance(error, exc.DBAPIError | sqlite3.Error):
                raise translate(error, path) from error
            raise
        own = executor is None
        return cls(path, conn, executor or ThreadPoolExecutor(1, "journal"), own=own)

    async def write(self, fn: Callable[Concatenate[Connection, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `fn(conn, ...)` in one write transaction.

        A cancelled call is finished first: `CancelledError` then means that it is committed, unless the error
        has a `__cause__`, which is why it is not.

        Raises:
            JournalUnavailable: nothing changed; the same write may be repeated.
        """
        call = asyncio.get_running_loop().run_in_executor(
            self._executor, lambda: self._do(engine.WRITE, fn, *args, **kwargs)
        )
        cancelled: asyncio.CancelledError | None = None
        while not call.done():
            try:
                await asyncio.wait({call})
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled from call.exception()
        return call.result()

    async def read(self, fn: Callable[Concatenate[Connection, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `fn(conn, ...)` on one state of the journal."""
        return await asyncio.get_running_loop().run_in_executor(
            self._executor, lambda: self._do(engine.READ, fn, *args, **kwargs)
        )

    def write_now(self, fn: Callable[Concatenate[Connection, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """`write` for callers without an event loop."""
        return self._executor.submit(lambda: self._do(engine.WRITE, fn, *args, **kwargs)).result()

    def read_now(self, fn: Callable[Concatenate[Connection, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """`read` for callers without an event loop."""
        return self._executor.submit(lambda: self._do(engine.READ, fn, *args, **kwargs)).result()

    def close(self) -> None:
        """Finish what was asked for and close the file; a second call does nothing."""
        if self._conn.closed:
            return
        self._executor.submit(engine.dispose, self._conn).result()
        if self._own:
            self._executor.shutdown()

    def _do(self, words: str, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        engine.begin_with(self._conn, words)
        try:
            with self._conn.begin() as transaction:
                done = fn(self._conn, *args, **kwargs)
                if words == engine.READ:
                    transaction.rollback()
                    return done
                faultpoint.hit("journal", fn.__name__.lstrip("_"), "before")
        except exc.DBAPIError as error:
            raise translate(error, self.path) from error
        faultpoint.hit("journal", fn.__name__.lstrip("_"), "after")
        return done


def adopt(path: Path, *, machine: Callable[[], str] = machine_id) -> str:
    """Make a copied or restored journal this machine's own, under a new holder id, which is returned.

    The caller holds the instance lock of the binding.

    Raises:
        JournalError: see `Journal.open`.
    """
    if not path.exists():
        raise JournalError(f"There is no journal {path}.", code="not_configured", hint="relay receiver start")
    holder = new_holder()
    conn = _connect(path, engine.BUSY_SECONDS)
    try:
        _prepare(conn, path, migrate=True, machine=None)
        engine.begin_with(conn, engine.WRITE)
        with conn.begin():
            place.record(conn, place.Place.of(path, machine))
            conn.execute(update(tables.binding).values(holder=holder))
    except (exc.DBAPIError, sqlite3.Error) as error:
        raise translate(error, path) from error
    finally:
        engine.dispose(conn)
    return holder


def new_holder() -> str:
    """A fresh holder id: the hub tells two processes of one agent apart by it."""
    return "h" + secrets.token_hex(12)


def _connect(path: Path, busy: float) -> Connection:
    try:
        return engine.connect(path, busy=busy)
    except (exc.DBAPIError, sqlite3.Error) as error:
        raise translate(error, path) from error


def _prepare(conn: Connection, path: Path, *, migrate: bool, machine: Callable[[], str] | None) -> None:
    """Make or upgrade the schema, and see that the file is where it belongs (unless `machine` is None)."""
    engine.begin_with(conn, engine.READ)
    with conn.begin():
        found = schema.version(conn, path)
        if found is not None and machine is not None:
            place.check(conn, path, machine)
    if found == schema.HEAD:
        return
    if found is None:
        engine.begin_with(conn, engine.WRITE)
        with conn.begin():
            if schema.version(conn, path) is None:
                schema.create(conn)
                place.record(conn, place.NOWHERE if machine is None else place.Place.of(path, machine))
        return
    if not migrate:
        raise JournalError(
            f"The journal {path} has the older schema {found}.",
            code="older_schema",
            hint="relay receiver start upgrades it",
        )
    schema.upgrade_file(conn, path, found=found)
