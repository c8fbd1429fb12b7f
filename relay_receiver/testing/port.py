"""A port of loopback that stays ours while nothing listens on it."""

import socket
from types import TracebackType
from typing import Self


class Port:
    """Kept until `close`: the system gives it to nobody else, and whoever is told its number may listen on it.

    A context manager. Listeners must set SO_REUSEADDR, as servers do.

    Attributes:
        number: of the port.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number = int(self._socket.getsockname()[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give it back."""
        self._socket.close()
