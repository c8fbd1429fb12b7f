"""From a POST to the sockets of receivers: one of them, the last of many, and what an idle one weighs."""

import asyncio
import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator

from benchmarks import floors, listeners, process
from benchmarks.figure import Figure
from benchmarks.world import ROOT, World, world
from relay_receiver.client import profiles
from relay_receiver.client.hub import Hub
from relay_receiver.client.rest import Rest
from relay_receiver.wire.limits import SOCKETS_PER_MEMBER

MANY = 1000


def measure(*, quick: bool) -> list[Figure]:
    many = 200 if quick else MANY
    rounds = 15 if quick else 40
    with world() as made:
        tokens = asyncio.run(_members(made, -(-many // SOCKETS_PER_MEMBER)))
        one, last, weight = asyncio.run(_hub(made, tokens, many, rounds))
    with _broadcast() as port:
        bare_one, bare_last = asyncio.run(_bare(port, many, rounds))
    return [
        Figure(
            what="POST to push, one receiver, median",
            value=one * 1000,
            unit="ms",
            floor=bare_one * 1000,
            note="the commit is in it; floor: bare TCP, line in, line out",
        ),
        Figure(
            what=f"POST to push, the last of {many:,} receivers",
            value=last * 1000,
            unit="ms",
            floor=bare_last * 1000,
            note="floor: bare TCP, written to each in turn",
        ),
        Figure(what="hub: memory of an idle connection", value=weight / 1024, unit="KiB"),
    ]


async def _members(made: World, count: int) -> list[str]:
    """Tokens of so many members of the channel."""
    tokens = []
    owner = profiles.load("owner")
    async with Rest(owner.url, owner.token()) as rest, Rest(owner.url, None) as stranger:
        for number in range(count):
            code = (await Hub(rest).invite(made.channel))["code"]
            token = os.urandom(32).hex()
            await Hub(stranger).enroll(
                invite=code, client_secret=token, identity_secret=os.urandom(32).hex(), name=f"m{number}"
            )
            tokens.append(token)
    return tokens


async def _hub(made: World, tokens: list[str], many: int, rounds: int) -> tuple[float, float, float]:
    assert made.hub is not None
    port = int(made.url.rsplit(":", 1)[1])
    owner = profiles.load("owner")

    def post(rest: Rest) -> Callable[[str], Awaitable[object]]:
        return lambda text: Hub(rest).post_message({"channel": made.channel, "kind": "message", "content": text})

    async with Rest(owner.url, owner.token()) as rest:
        ears = [await listeners.greeted(port, tokens[0], made.channel)]
        one = await _rounds(ears, post(rest), rounds)
        before = process.rss_bytes(made.hub.pid)
        for number in range(1, many):
            token = tokens[number // SOCKETS_PER_MEMBER]
            ears.append(await listeners.greeted(port, token, made.channel))
        weight = (process.rss_bytes(made.hub.pid) - before) / (many - 1)
        last = await _rounds(ears, post(rest), rounds)
        for each in ears:
            each.close()
    return one, last, weight


async def _bare(port: int, many: int, rounds: int) -> tuple[float, float]:
    _, writer = await asyncio.open_connection("127.0.0.1", port)

    async def post(text: str) -> None:
        writer.write(text.encode().ljust(600))

    ears = [await listeners.bare(port)]
    one = await _rounds(ears, post, rounds)
    ears += [await listeners.bare(port) for _ in range(many - 1)]
    last = await _rounds(ears, post, rounds)
    writer.close()
    for each in ears:
        each.close()
    return one, last


async def _rounds(ears: list[listeners.Listener], post: Callable[[str], Awaitable[object]], rounds: int) -> float:
    """Seconds from the post to the last listener, the median."""
    times = []
    for number in range(rounds):
        await asyncio.sleep(0.05)
        sought = f"push-{number}-{len(ears)}."
        for each in ears:
            each.expect(sought.encode())
        began = time.perf_counter()
        posting = asyncio.ensure_future(post(sought))
        heard = await asyncio.gather(*(each.heard for each in ears))
        await posting
        times.append(max(heard) - began)
    return statistics.median(times)


@contextlib.contextmanager
def _broadcast() -> Iterator[int]:
    with floors.tcp_listener() as listener:
        argv = [sys.executable, "-m", "benchmarks.broadcast", str(listener.fileno())]
        server = subprocess.Popen(argv, cwd=ROOT, pass_fds=(listener.fileno(),))
        try:
            yield int(listener.getsockname()[1])
        finally:
            server.terminate()
            server.wait()
