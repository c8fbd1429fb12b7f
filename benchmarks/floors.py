"""What nothing can be faster than, measured on this machine in this run."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.world import ROOT

PAGE = bytes(4096)


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """What the way of one job cannot do without, once, in seconds."""

    spawn: float
    """The program, started and waited for."""
    fsyncs: float
    """So many pages, each appended and fsynced."""
    trips: float
    """So many GETs of a Starlette hello, over a kept connection."""

    @property
    def whole(self) -> float:
        return self.spawn + self.fsyncs + self.trips


@contextlib.contextmanager
def way(program: Sequence[str], *, fsyncs: int, trips: int) -> Iterator[Callable[[], Way]]:
    """Walks that way each time it is called: between the jobs, so that both meet the same load."""
    with (
        hello() as port,
        socket.create_connection(("127.0.0.1", port)) as client,
        tempfile.TemporaryFile(prefix="relay-benchmark-", buffering=0) as file,
    ):
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def spawn() -> None:
            subprocess.run(program, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)

        def append() -> None:
            for _ in range(fsyncs):
                file.write(PAGE)
                os.fsync(file.fileno())

        def call() -> None:
            for _ in range(trips):
                client.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
                answer = b""
                while not answer.endswith(b"}"):
                    if not (more := client.recv(65536)):
                        raise ConnectionError("the hello went away")
                    answer += more

        yield lambda: Way(spawn=_seconds(spawn), fsyncs=_seconds(append), trips=_seconds(call))


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


@contextlib.contextmanager
def hello() -> Iterator[int]:
    """The port of a running hello."""
    with tcp_listener() as listener:
        argv = [sys.executable, "-m", "benchmarks.hello", str(listener.fileno())]
        server = subprocess.Popen(argv, cwd=ROOT, pass_fds=(listener.fileno(),))
        port = int(listener.getsockname()[1])
        try:
            yield port
        finally:
            server.terminate()
            server.wait()


def tcp_listener() -> socket.socket:
    """A listening socket of a stated protocol: asyncio turns Nagle's algorithm off on no other."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)
    return listener
