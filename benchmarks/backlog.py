"""Many jobs queued at once: how fast one receiver works them off, and what each costs."""

import asyncio
import time
from typing import Any

from benchmarks import process
from benchmarks.figure import Figure
from benchmarks.world import World, until, world
from relay_receiver.client import profiles
from relay_receiver.client.hub import Hub
from relay_receiver.receiver import verbs
from relay_receiver.receiver.target import Target

JOBS_PER_SECOND = 15
REQUESTS_PER_JOB = 4


def measure(*, quick: bool) -> list[Figure]:
    count = 60 if quick else 200
    with world() as made:
        target = made.agent("bob")
        asyncio.run(ask(profiles.load("bob").agent, made.channel, count))
        made.requests()
        receiver = made.start(target)
        assert made.hub is not None
        before = {pid: process.cpu_seconds(pid) for pid in (receiver, made.hub.pid)}
        launcher = process.launcher_of(receiver)
        seen: list[list[Any]] = []
        began = until(lambda: _commits(made, seen, "/receiver/run"), seconds=30, what="the first begin")[0]
        posts = until(
            lambda: found if len(found := _commits(made, seen, "/messages")) == count else [],
            seconds=count * 2,
            what="the last result",
            every=0.2,
        )
        seconds = (posts[-1] - began) / 1e9
        time.sleep(0.5)
        seen += made.requests()
        own, hubs = (process.cpu_seconds(pid) - before[pid] for pid in (receiver, made.hub.pid))
        exits = made.log.exits()
        keepers = sum(each.cpu for each in exits)
        launched = 0.0 if launcher is None else process.cpu_seconds(launcher)
        fsyncs = [each for each in made.log.fsyncs() if began <= each.ended <= posts[-1]]
        _all_done(target, count)
    calls = [each for each in seen if each[0] != "WS" and each[2] >= began]
    figures = [
        Figure(
            what=f"{count} jobs queued at once",
            value=count / seconds,
            unit="jobs/s",
            goal=JOBS_PER_SECOND,
            least=True,
            peer="0.5",
            note=f"{seconds:.1f} s",
        ),
        Figure(
            what="HTTP requests per job",
            value=round(len(calls) / count, 2),
            unit="requests",
            goal=REQUESTS_PER_JOB,
            peer="10.06",
        ),
        Figure(
            what="CPU per job, receiver",
            value=own / count * 1000,
            unit="ms",
            peer="19.6",
            note=f"hub {hubs / count * 1000:.1f} ms"
            + (f", keeper {(keepers + launched) / count * 1000:.1f} ms" if exits else ""),
        ),
    ]
    if made.counts_fsyncs:
        by = {"hub": 0, "receiver": 0, "keeper": 0}
        for each in fsyncs:
            by[{made.hub.pid: "hub", receiver: "receiver"}.get(each.pid, "keeper")] += 1
        note = ", ".join(f"{name} {number / count:.1f}" for name, number in by.items())
        figures.append(Figure(what="fsyncs per job", value=round(len(fsyncs) / count, 2), unit="fsyncs", note=note))
    return figures


async def ask(agent: str, channel: str, count: int) -> None:
    from relay_receiver.client.rest import Rest

    owner = profiles.load("owner")
    async with Rest(owner.url, owner.token()) as rest:
        for number in range(count):
            body = {"channel": channel, "kind": "request", "to": agent, "content": f"work {number}"}
            await Hub(rest).post_message(body)


def _commits(made: World, seen: list[list[Any]], path: str) -> list[int]:
    """When POSTs to a path were answered, so far."""
    seen += made.requests()
    return [each[3] for each in seen if each[0] == "POST" and each[1].endswith(path) and each[3]]


def _all_done(target: Target, count: int) -> None:
    states = [job["state"] for job in verbs.jobs(target, limit=count)["jobs"]]
    assert states == ["done"] * count, states
