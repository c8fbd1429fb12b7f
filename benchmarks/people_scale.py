"""What people ask of a hub with 50 receivers: page, search and feed at 100,000 messages and at 1,000; stalled readers.

Compared is the CPU time of the hub's process, both hubs asked in turns: other work on the machine hits both alike.
"""

import json
import socket
import statistics
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from benchmarks import crowd, listeners, load, process
from benchmarks.crowd import Crowd, Running
from benchmarks.figure import Figure
from relay_receiver.hub.console.session import COOKIE

FEW, MANY = 1_000, 100_000
TIMES = 1.2
STALLED_BYTES = 5e6
STALLED, STALLED_SOCKETS = 16, 4
"""Readers that stall at once; of sockets as many as a member may have in a channel."""
LONG = 60_000
"""Characters of the messages that a stalled reader does not read."""
UNREAD = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask:
    """One kind of call: what it is called, and its request for a hub and a number that is new each time."""

    what: str
    request: Callable[[Running, int], bytes]


def measure(*, quick: bool) -> list[Figure]:
    rounds, calls = (5, 20) if quick else (15, 40)
    with tempfile.TemporaryDirectory(prefix="relay-people-") as folder, ExitStack() as stack:
        hubs = [
            stack.enter_context(crowd.running(crowd.fill(Path(folder) / str(count), count))) for count in (FEW, MANY)
        ]
        asks = [*api(), *console()]
        figures = [_compared(ask, hubs, rounds, calls) for ask in asks]
    with tempfile.TemporaryDirectory(prefix="relay-people-") as folder:
        return [*figures, *_stalled(crowd.fill(Path(folder) / "stalled", FEW))]


def api() -> list[Ask]:
    """The calls of clients: pages of messages, search by who is in every channel and by who is in one, the feed."""

    def page(before: str) -> Callable[[Running, int], bytes]:
        return lambda hub, _: get(f"/api/v1/messages?channel={hub.crowd.channels[0]}&limit=15{before}", hub.crowd.owner)

    def search(words: str, *, guest: bool) -> Callable[[Running, int], bytes]:
        path = f"/api/v1/search?q={quote(words)}"
        return lambda hub, _: get(path, hub.crowd.guest if guest else hub.crowd.owner)

    words = {
        "a word of every message": crowd.EVERYWHERE,
        "a word of none": crowd.NOWHERE,
        "two words": " ".join(crowd.COMMON),
        "a phrase of every message": f'"{" ".join(crowd.EVERY_TIME)}"',
    }
    return [
        Ask(what="page of 15 messages, the newest", request=page("")),
        Ask(what="page of 15 messages, older", request=page("&before=900")),
        *(
            Ask(what=f"search {what}, {'in one channel' if guest else 'in all 50'}", request=search(said, guest=guest))
            for guest in (False, True)
            for what, said in words.items()
        ),
        Ask(what="feed: 100 events behind", request=_behind),
        Ask(what="feed: a message, pushed to its receiver", request=_posted),
        Ask(what="members of a channel", request=lambda hub, _: get(_members(hub), hub.crowd.owner)),
        Ask(what="documents", request=lambda hub, _: get("/api/v1/docs?limit=50", hub.crowd.owner)),
        Ask(what="tasks", request=lambda hub, _: get("/api/v1/tasks?limit=50", hub.crowd.owner)),
    ]


def console() -> list[Ask]:
    """Pages of the console, for the owner's sign-in."""
    pages = {
        "overview": lambda _: "/",
        "a channel": lambda hub: f"/channels/{hub.crowd.channels[0]}",
        "search": lambda _: f"/search?q={crowd.EVERYWHERE}",
        "needs you": lambda _: "/needs",
        "receivers": lambda _: "/receivers",
        "documents": lambda _: "/docs",
        "tasks": lambda _: "/tasks",
    }
    return [
        Ask(what=f"console: {what}", request=lambda hub, _, path=path: get(path(hub), None, cookie=hub.crowd.cookie))  # type: ignore[misc]  # a default binds it
        for what, path in pages.items()
    ]


def get(path: str, token: str | None, *, cookie: str | None = None) -> bytes:
    """One GET as bytes, with a token or a browser's cookie."""
    who = f"authorization: Bearer {token}" if cookie is None else f"cookie: {COOKIE}={cookie}"
    return f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{who}\r\n\r\n".encode()


def _members(hub: Running) -> str:
    return f"/api/v1/channels/{hub.crowd.channels[0]}/members"


def _behind(hub: Running, _: int) -> bytes:
    head = int(_answer(hub, "/api/v1/state", hub.crowd.guest)["cursor"].partition(".")[0])
    return get(f"/api/v1/updates?wait=1&cursor={head - 100}", hub.crowd.owner)


def _posted(hub: Running, number: int) -> bytes:
    body = {"channel": hub.crowd.channels[0], "content": f"number {number}", "operationId": f"asked:{number}"}
    return load.post("/api/v1/messages", json.dumps(body).encode(), hub.crowd.owner)


def _answer(hub: Running, path: str, token: str) -> dict[str, str]:
    wanted = urllib.request.Request(hub.url + path, headers={"authorization": f"Bearer {token}"})  # noqa: S310 - loopback
    with urllib.request.urlopen(wanted) as answer:  # noqa: S310 - loopback
        found: dict[str, str] = json.load(answer)
    return found


def _compared(ask: Ask, hubs: Sequence[Running], rounds: int, calls: int) -> Figure:
    """The cost of a call at the second hub, with that at the first as its floor."""
    numbers: Iterator[int] = iter(range(10**9))
    spent: list[list[float]] = [[] for _ in hubs]
    for turn in range(rounds + 1):
        for place, hub in enumerate(hubs):
            requests = [ask.request(hub, next(numbers)) for _ in range(calls)]
            cost = _cost(hub, requests)
            if turn:
                spent[place].append(cost / calls)
    few, many = (min(each) for each in spent)
    return Figure(
        what=f"{ask.what}, {MANY:,} messages",
        value=many * 1e6,
        unit="us CPU",
        floor=few * 1e6,
        times=TIMES,
        note=f"the least of {rounds} times {calls}; medians {_median(spent[1])} and {_median(spent[0])};"
        f" floor: {FEW:,} messages",
    )


def _median(spent: Sequence[float]) -> str:
    return f"{statistics.median(spent) * 1e6:.0f}"


def _cost(hub: Running, requests: Sequence[bytes]) -> float:
    """CPU time of the hub for requests that are asked one after the other."""
    with (
        socket.create_connection(("127.0.0.1", hub.port), timeout=60) as connection,
        connection.makefile("rb") as answers,
    ):
        before = process.cpu_seconds(hub.pid)
        for request in requests:
            connection.sendall(request)
            _read(answers)
        return process.cpu_seconds(hub.pid) - before


def _read(answers: BinaryIO) -> None:
    status, size = answers.readline(), 0
    while (line := answers.readline().strip().lower()) != b"":
        if line.startswith(b"content-length:"):
            size = int(line.partition(b":")[2])
    body = answers.read(size)
    if not status.startswith(b"HTTP/1.1 2"):
        raise RuntimeError(f"refused: {status.decode()} {body.decode()}")


def _stalled(made: Crowd) -> list[Figure]:
    """Memory of readers that never read: of a page, of a poll, of a socket while long messages come."""
    place = made.channels[0]
    answers = {
        "a page of messages": get(f"/api/v1/messages?channel={place}&limit=200", made.owner),
        "a poll far behind": get("/api/v1/updates?wait=1&cursor=1", made.owner),
        "the console's page of a channel": get(f"/channels/{place}", None, cookie=made.cookie),
    }
    with crowd.running(made, receivers=False) as hub:
        _flood(hub, "first")
    figures = []
    # A hub of its own for each: memory that one left free in the process would hide what the next takes.
    for what, request in answers.items():
        with crowd.running(made, receivers=False) as hub:
            _cost(hub, [request])
            figures.append(_weighed(hub, what, partial(_deaf, hub, request, STALLED)))
    with crowd.running(made, receivers=False) as hub:
        _flood(hub, "before")
        figures.append(_weighed(hub, "a socket", partial(_deaf_sockets, hub, place), partial(_flood, hub, "then")))
    return figures


def _weighed(
    hub: Running, what: str, held: Callable[[], list[socket.socket]], then: Callable[[], None] | None = None
) -> Figure:
    before = process.rss_bytes(hub.pid)
    connections = held()
    if then is not None:
        then()
    most = max(_settled(hub) for _ in range(3))
    for connection in connections:
        connection.close()
    return Figure(
        what=f"hub: memory for {what} that nobody reads",
        value=max(0, most - before) / len(connections) / 1e6,
        unit="MB",
        goal=STALLED_BYTES / 1e6,
        note=f"{len(connections)} at once; messages of {LONG:,} characters",
    )


def _settled(hub: Running) -> int:
    """What the hub takes once it has answered another caller, so has done what came before."""
    _cost(hub, [get("/api/v1/channels", hub.crowd.owner)] * 5)
    time.sleep(0.3)
    return process.rss_bytes(hub.pid)


def _flood(hub: Running, name: str) -> None:
    def post(number: int) -> bytes:
        body = {"channel": hub.crowd.channels[0], "content": "x" * LONG, "operationId": f"{name}:{number}"}
        return load.post("/api/v1/messages", json.dumps(body).encode(), hub.crowd.owner)

    _cost(hub, [post(number) for number in range(UNREAD)])


def _deaf(hub: Running, request: bytes, count: int) -> list[socket.socket]:
    """Connections that ask and never read."""
    made = [socket.socket() for _ in range(count)]
    for each in made:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        each.connect(("127.0.0.1", hub.port))
        each.sendall(request)
    return made


def _deaf_sockets(hub: Running, place: str) -> list[socket.socket]:
    """Sockets of the hub that read their greeting and nothing after it."""
    made = _deaf(hub, listeners.upgrade(hub.port, hub.crowd.owner), STALLED_SOCKETS)
    for each in made:
        _until(each, b"\r\n\r\n")
        each.sendall(listeners.hello(place))
        _until(each, b'"ready"')
    return made


def _until(connection: socket.socket, sought: bytes) -> None:
    """Read as far as a greeting needs."""
    told = b""
    while sought not in told:
        told += connection.recv(1024)
