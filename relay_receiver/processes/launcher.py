"""The launcher: a small single-threaded program that forks keepers, so that a hand-over costs about a millisecond.

Run as `python -I -S launcher.py FD`. Over the unix socket FD it gets one frame for each keeper: four bytes of
length with one descriptor beside them, then that many bytes of JSON. It ends on EOF, when its receiver is gone;
its keepers live on in sessions of their own. Standard library only.
"""

import errno
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
        os.setsid()
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


def _refuse(born_with: socket.socket, error: OSError) -> None:
    code = errno.errorcode.get(error.errno or 0, "error")
    told = {"t": "refused", "code": code, "reason": f"no process for it: {error.strerror}"}
    born_with.sendall(json.dumps(told).encode() + b"\n")


def main() -> None:
    """Fork keepers until the receiver is gone."""
    keep, fault = _load()
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        head, descriptors, _, _ = socket.recv_fds(connection, 4, 1)
        if not descriptors:
            return
        with socket.socket(fileno=descriptors[0]) as born_with:
            rest = _exactly(connection, 4 - len(head)) if len(head) < 4 else b""
            order = _exactly(connection, int.from_bytes(head + rest, "big"))
            if not order:
                return
            fault("launcher.fork.before")
            try:
                child = os.fork()
            except OSError as error:
                _refuse(born_with, error)
                continue
            if child == 0:
                try:
                    connection.close()
                    keep(order, born_with)
                finally:
                    os._exit(0)
            fault("launcher.fork.after")


if __name__ == "__main__":
    main()
