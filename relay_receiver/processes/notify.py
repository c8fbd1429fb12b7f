"""Telling the service manager that started this process how it is: systemd's readiness protocol."""

import contextlib
import os
import socket

VARIABLE = "NOTIFY_SOCKET"


def tell(state: str) -> bool:
    """Send `READY=1`, `STOPPING=1` or `STATUS=...` to the manager; False where none listens."""
    address = os.environ.get(VARIABLE)
    if not address or address[0] not in "/@":
        return False
    if address[0] == "@":
        address = "\0" + address[1:]
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
        out.connect(address)
        out.sendall(state.encode())
        return True
    return False
