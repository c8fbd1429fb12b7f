"""A receiver as its keeper sees it: lines in, lines out, neither ever waited for. Standard library only."""

import contextlib
import json
import socket
from typing import Any

CHUNK = 256 * 1024

Json = dict[str, Any]


class Connection:
    """One connection. What is said is queued; JSON lines begin with a brace, records of the spool with a digit."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        sock.set_inheritable(False)
        self.socket = sock
        self.outgoing = bytearray()
        self._incoming = bytearray()
        self.offset: int | None = None
        """Where in the spool its reading is; None for one that is not attached."""
        self.after = 0
        """The number of the last line that was queued for it."""

    def say(self, message: Json) -> None:
        """Queue one message."""
        self.outgoing += json.dumps(message).encode() + b"\n"

    def take(self) -> list[Json] | None:
        """The messages that have come; None once it is gone."""
        try:
            data = self.socket.recv(CHUNK)
        except BlockingIOError:
            return []
        except OSError:
            return None
        if not data:
            return None
        self._incoming += data
        if b"\n" not in data:
            return []
        *whole, rest = bytes(self._incoming).split(b"\n")
        self._incoming = bytearray(rest)
        found = []
        for line in whole:
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return found

    def give(self) -> bool:
        """Write of what is queued what it takes; False once it is gone."""
        try:
            while self.outgoing:
                sent = self.socket.send(self.outgoing[:CHUNK])
                del self.outgoing[:sent]
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Let go of it."""
        self.socket.close()
