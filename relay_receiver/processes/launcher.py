"""The launcher: a small single-threaded program that forks keepers, so that a hand-over costs about a millisecond.

Run as `python -I -S launcher.py FD`. Over the unix socket FD it gets one frame for each keeper: four bytes of
length with one descriptor beside them, then that many bytes of JSON. It ends on EOF, when its receiver is gone;
its keepers live on in sessions of their own. Standard library only.
"""

import importlib.util
import json
import os
import signal
import socket
import sys
from types import ModuleType


def _keeper() -> ModuleType:
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "keeper.py")
    spec = importlib.util.spec_from_file_location("keeper", path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["keeper"] = module
    spec.loader.exec_module(module)
    return module


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        if not chunk:
            return b""
        data += chunk
    return data


def main() -> None:
    """Fork keepers until the receiver is gone."""
    keeper = _keeper()
    connection = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(connection.fileno(), False)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        head, descriptors, _, _ = socket.recv_fds(connection, 4, 1)
        if len(head) < 4:
            return
        order = _exactly(connection, int.from_bytes(head, "big"))
        if not order:
            return
        if os.fork() == 0:
            connection.close()
            keeper.main(json.loads(order), socket.socket(fileno=descriptors[0]))
            os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)


if __name__ == "__main__":
    main()
