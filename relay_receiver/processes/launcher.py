"""The launcher: a small single-threaded program that forks keepers, each before it is needed.

Run as `python -I -S launcher.py FD`. From the unix socket FD the keeper that waits reads one frame, its order: four
bytes of length with one descriptor beside them, then that many bytes of JSON. Only then is the next one forked, so
that one at a time reads. Launcher and waiting keeper end on EOF, when the receiver is gone, and with each other;
keepers that have an order live on in sessions of their own. Standard library only.
"""

import gc
import json
import os
import signal
import socket
import sys
from collections.abc import Callable

Keep = Callable[[bytes, socket.socket], None]
Fault = Callable[[str], None]


def _load() -> tuple[Keep, Fault]:
    """Everything that a keeper needs, before the first one is forked: an upgrade of the files changes none of it."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.path.append(root)  # last, so that nothing beside our package stands in for the standard library
    from relay_receiver.processes import keeper_faults
    from relay_receiver.processes.keeper_agent import AgentKeeper
    from relay_receiver.processes.keeper_command import CommandKeeper

    sys.path.remove(root)

    def keep(order: bytes, born_with: socket.socket) -> None:
        found = json.loads(order)
        kind = CommandKeeper if found["kind"] == "command" else AgentKeeper
        kind(found, born_with).run()

    keeper_faults.arm()
    gc.freeze()  # what is loaded is shared with every keeper, not copied by the first collection
    return keep, keeper_faults.hit


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        if not chunk:
            return b""
        data += chunk
    return bytes(data)


def _serve(connection: socket.socket, taken: int, keep: Keep) -> None:
    """Wait for an order in a session of its own, say that it is taken, and carry it out."""
    os.setsid()
    head, descriptors, _, _ = socket.recv_fds(connection, 4, 1)
    if not descriptors:
        return
    born_with = socket.socket(fileno=descriptors[0])
    head += _exactly(connection, 4 - len(head))
    order = _exactly(connection, int.from_bytes(head, "big"))
    if not order:
        return
    connection.close()
    os.write(taken, b"1")
    os.close(taken)
    keep(order, born_with)


def _fork(connection: socket.socket, keep: Keep, fault: Fault) -> bool:
    """Fork a keeper, and wait until it has an order; False where it ended without one."""
    reader, writer = os.pipe()
    fault("launcher.fork.before")
    if os.fork() == 0:
        try:
            os.close(reader)
            _serve(connection, writer, keep)
        finally:
            os._exit(0)
    fault("launcher.fork.after")
    os.close(writer)
    taken = os.read(reader, 1)
    os.close(reader)
    return bool(taken)


def main() -> None:
    """Fork keepers until the receiver is gone."""
    keep, fault = _load()
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_IGN)
    while _fork(connection, keep, fault):
        pass


if __name__ == "__main__":
    main()
