"""Whoever is connected to a keeper, and the socket on which others come. Standard library only."""

import contextlib
import os
import selectors
import socket
from collections.abc import Callable

from relay_receiver.processes import keeper_files as files
from relay_receiver.processes.keeper_connection import Connection, Json

QUEUE = 8
"""Receivers that may wait to be let in."""


class Receivers:
    """Reads what they want and writes what they are told, as far as each takes it; a slow one holds up nobody."""

    def __init__(
        self,
        selector: selectors.BaseSelector,
        path: str,
        *,
        on_order: Callable[[Connection, Json], None],
        fill: Callable[[Connection], None],
    ) -> None:
        self._selector = selector
        self._path = path
        self._on_order = on_order
        self._fill = fill
        self._listener: socket.socket | None = None
        self.connections: list[Connection] = []

    def listen(self) -> None:
        """Let later receivers attach.

        Raises:
            OSError: there is no socket.
        """
        files.remove(self._path)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            self._listener.bind(self._path)
        finally:
            os.umask(before)
        self._listener.listen(QUEUE)
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ, self._let_in)

    def stop_listening(self) -> None:
        """Leave the socket's place to the keeper that comes next."""
        if self._listener is not None:
            self._selector.unregister(self._listener)
            files.remove(self._path)
            self._listener.close()
            self._listener = None

    def _let_in(self) -> None:
        with contextlib.suppress(OSError):
            if self._listener is not None:
                self.add(self._listener.accept()[0])

    def add(self, sock: socket.socket) -> None:
        """Serve one more."""
        connection = Connection(sock)
        self.connections.append(connection)
        self._selector.register(sock, selectors.EVENT_READ, lambda: self._hear(connection))

    def drop(self, connection: Connection) -> None:
        """Let one go."""
        if connection in self.connections:
            self.connections.remove(connection)
            self._selector.unregister(connection.socket)
            connection.close()

    def _hear(self, connection: Connection) -> None:
        orders = connection.take()
        if orders is None:
            self.drop(connection)
        for order in orders or ():
            with contextlib.suppress(ValueError, KeyError, TypeError):
                self._on_order(connection, order)

    def tell(self, message: Json) -> None:
        """Say something to all of them."""
        for connection in self.connections:
            connection.say(message)

    def flush(self) -> bool:
        """Write what is queued, as far as it is taken; True while something waits to be."""
        for connection in list(self.connections):
            there = connection.give()
            while there and not connection.outgoing:
                self._fill(connection)
                if not connection.outgoing:
                    break
                there = connection.give()
            if not there:
                self.drop(connection)
                continue
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.outgoing else 0)
            key = self._selector.get_key(connection.socket)
            if key.events != events:
                self._selector.modify(connection.socket, events, key.data)
        return any(connection.outgoing for connection in self.connections)
