"""What nothing can be faster than, measured on this machine in this run."""

import contextlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence

from benchmarks.world import ROOT

PAGE = bytes(4096)


def median_seconds(call: Callable[[], object], *, count: int) -> float:
    times = []
    for _ in range(count):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def fsync_seconds(count: int = 200) -> float:
    """A page appended and fsynced."""
    with tempfile.TemporaryFile(prefix="relay-benchmark-", buffering=0) as file:

        def append() -> None:
            file.write(PAGE)
            os.fsync(file.fileno())

        return median_seconds(append, count=count)


def spawn_seconds(argv: Sequence[str], count: int = 50) -> float:
    """Start the program, give it nothing, wait for its end."""

    def run() -> None:
        subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)

    return median_seconds(run, count=count)


def round_trip_seconds(count: int = 300) -> float:
    """GET of a Starlette hello over a kept connection."""
    with hello() as port, socket.create_connection(("127.0.0.1", port)) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def call() -> None:
            client.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
            answer = b""
            while not answer.endswith(b"}"):
                if not (more := client.recv(65536)):
                    raise ConnectionError("the hello went away")
                answer += more

        for _ in range(20):
            call()
        return median_seconds(call, count=count)


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
