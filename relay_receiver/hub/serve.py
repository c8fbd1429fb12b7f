"""Running the hub in the foreground, from its first listening to a stop that loses nothing."""

import asyncio
import contextlib
import json
import logging
import os
import resource
import signal
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from typing import Any

import uvicorn

from relay_receiver.hub import housekeeping, owner
from relay_receiver.hub.app import App, build
from relay_receiver.hub.files import DataLock, private_dir, write_private
from relay_receiver.hub.listen import Place, listen
from relay_receiver.hub.options import HubOptions
from relay_receiver.hub.store import Store
from relay_receiver.hub.transport import SocketProtocol
from relay_receiver.wire import limits

PORT = 7423
GRACE_SECONDS = 10
"""How long requests that are begun may take to end when the hub stops."""
KEEP_ALIVE_SECONDS = 75

log = logging.getLogger("relay.hub")

owner_code = owner.owner_code

OnReady = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class ServeOptions:
    """What `relay hub serve` was asked for."""

    host: str = "127.0.0.1"
    port: int = PORT
    """0: any that is free."""
    data: Path
    database: str | None = None
    allow_host: tuple[str, ...] = ()
    tls_cert: Path | None = None
    tls_key: Path | None = None
    plain_http: bool = False
    ready_file: Path | None = None


def serve(options: ServeOptions, ready: OnReady | None = None) -> int:
    """Run a hub until SIGTERM or SIGINT; returns the exit status.

    Args:
        ready: called once it listens, with `{url, pid, owner, warning}`; `owner` is None, or on a first start the path
            of the owner's connection file.

    Raises:
        RelayError: it cannot start.
    """
    private_dir(options.data)
    lock = DataLock(options.data)
    try:
        place = listen(
            options.host,
            options.port,
            allow_host=options.allow_host,
            tls_cert=options.tls_cert,
            tls_key=options.tls_key,
            plain_http=options.plain_http,
        )
        with place.socket:
            _raise_file_limit()
            store = Store.open(options.database or options.data)
            try:
                asyncio.run(_run(options, place, store, ready))
            finally:
                store.close()
    finally:
        lock.release()
    return 0


async def _run(options: ServeOptions, place: Place, store: Store, tell: OnReady | None) -> None:
    shell = HubOptions(hosts=place.hosts)
    app = build(store, shell)

    def ready() -> None:
        facts = {"url": place.url, "pid": os.getpid()}
        write_private(options.data / owner.RUNNING, json.dumps(facts).encode())
        made = owner.at_start(store, options.data, place.url)
        store.on_auth_change(lambda: owner.sweep(store, options.data))
        if place.warning:
            log.warning("%s", place.warning)
        log.info("the hub listens on %s", place.url)
        if options.ready_file is not None:
            write_private(options.ready_file, json.dumps(facts).encode())
        if tell is not None:
            tell({**facts, "owner": str(made) if made else None, "warning": place.warning})

    async with asyncio.TaskGroup() as tasks:
        keeping = tasks.create_task(housekeeping.keep(store), name="hub-housekeeping")
        await Server(app, shell, place=place, ready=ready).serve(sockets=[place.socket])
        keeping.cancel()


class Server(uvicorn.Server):
    """uvicorn, woken by nothing but work, and stopped without a loss.

    Args:
        ready: called once it listens.
    """

    def __init__(
        self, app: App, options: HubOptions, *, place: Place | None = None, ready: Callable[[], None] | None = None
    ) -> None:
        tls = place.tls if place else None
        super().__init__(
            uvicorn.Config(
                app,
                http="httptools",
                ws=SocketProtocol,
                ws_max_size=limits.BODY_BYTES,
                ws_ping_interval=options.ping_seconds,
                ws_ping_timeout=2 * options.ping_seconds,
                ws_per_message_deflate=False,
                lifespan="off",
                loop="asyncio",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                date_header=False,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=GRACE_SECONDS,
                ssl_context_factory=None if tls is None else lambda _config, _default: tls,
            )
        )
        logging.getLogger("uvicorn").setLevel(logging.WARNING)
        self._hub = app
        self._ready = ready
        self._loop: asyncio.AbstractEventLoop | None = None
        self._told = asyncio.Event()

    def stop(self) -> None:
        """Stop soon; a second time: at once. From any thread."""
        self.force_exit = self.should_exit
        self.should_exit = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._told.set)

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Listen, then say so."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets=sockets)
        if self._ready is not None:
            self._ready()

    async def main_loop(self) -> None:
        """Wait to be stopped; an idle hub does nothing at all."""
        if not self.should_exit:
            await self._told.wait()

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Send everybody away, let what is begun end."""
        self._hub.stop()
        await super().shutdown(sockets=sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """SIGTERM and SIGINT stop it; neither is raised again, since a stop that was asked for is a success."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        signals = (signal.SIGTERM, signal.SIGINT)
        for each in signals:
            loop.add_signal_handler(each, self.stop)
        try:
            yield
        finally:
            for each in signals:
                loop.remove_signal_handler(each)


def _raise_file_limit() -> None:
    """A socket is a file: allow as many as the system lets this process have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
