"""Durable messages a second, from one client and from many at once, against the same POST without a database."""

import json
from collections.abc import Sequence
from urllib.parse import urlsplit

from benchmarks import floors, load
from benchmarks.figure import Figure
from benchmarks.load import Load
from benchmarks.world import World, world
from relay_receiver.client import profiles

MANY = 64
LEAST = 0.5
"""Of the floor's rate, for many clients at once."""
SPREAD = 4.0
"""p99 is at most so many times p50."""


def measure(*, quick: bool) -> list[Figure]:
    each = 60 if quick else 200
    alone = 300 if quick else 1000
    with world() as made:
        tokens = [_token(made, number) for number in range(MANY)]
        port = urlsplit(made.url).port or 0
        path = "/api/v1/messages"
        one = load.run(port, _requests(path, made.channel, tokens[:1], alone, "one"))
        many = load.run(port, _requests(path, made.channel, tokens, each, "many"))
    with floors.hello() as bare:
        bare_one = load.run(bare, _requests("/messages", "c", ["none"], alone, "one"))
        bare_many = load.run(bare, _requests("/messages", "c", ["none"] * MANY, each, "many"))
    return [
        _rate("durable POST /messages, 1 client", one, bare_one),
        _rate(f"durable POST /messages, {MANY} clients", many, bare_many, times=LEAST),
        Figure(
            what=f"p99 of these, {MANY} clients",
            value=many.p99_ms,
            unit="ms",
            floor=many.median_ms,
            times=SPREAD,
            note="the floor is their p50",
        ),
    ]


def _rate(what: str, found: Load, bare: Load, *, times: float | None = None) -> Figure:
    return Figure(
        what=what,
        value=found.per_second,
        unit="/s",
        floor=bare.per_second,
        least=True,
        times=times,
        note=f"p50 {found.median_ms:.2f}, p99 {found.p99_ms:.2f} ms;"
        f" floor: no database, p50 {bare.median_ms:.2f}, p99 {bare.p99_ms:.2f} ms",
    )


def _token(made: World, number: int) -> str:
    made.member(f"member{number}")
    return profiles.load(f"member{number}").token()


def _requests(path: str, channel: str, tokens: Sequence[str], count: int, name: str) -> list[list[bytes]]:
    def body(connection: int, number: int) -> bytes:
        said = {"channel": channel, "kind": "message", "content": f"message {number} of {connection}"}
        return json.dumps({**said, "operationId": f"{name}:{connection}:{number}"}).encode()

    return [
        [load.post(path, body(connection, number), token) for number in range(count + load.WARM)]
        for connection, token in enumerate(tokens)
    ]
