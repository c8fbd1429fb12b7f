"""One request at an idle receiver: from the hub's acceptance to the result at the hub."""

import statistics
import time
from typing import Any

from benchmarks import floors
from benchmarks.figure import Figure
from benchmarks.fsyncs import Fsync
from benchmarks.world import World, until, world
from relay_receiver.client import profiles

BETWEEN_SECONDS = 0.15
"""So that the receiver is idle again."""
ON_THE_PATH = 9
TRIPS = 3
WARM = 3
FAST_DISK_MS = 0.2
GOAL_MS = 25.0
"""On a disk as fast as that; what a slower one takes longer for the fsyncs comes on top."""


def measure(*, quick: bool) -> list[Figure]:
    count = 30 if quick else 60
    times, fsyncs, spans, ways = [], [], [], []
    with world() as made, floors.way(made.program, fsyncs=ON_THE_PATH, trips=TRIPS) as walk:
        made.start(made.agent("bob"))
        agent = profiles.load("bob").agent
        for number in range(count + WARM):
            time.sleep(BETWEEN_SECONDS)
            way = walk()
            time.sleep(BETWEEN_SECONDS)
            seconds, between = one(made, agent, number)
            if number >= WARM:
                ways.append(way)
                times.append(seconds * 1000)
                fsyncs.append(len(between))
                spans.append(sum(each.took for each in between) / 1e6)
    spawn, fsync, trip = (
        statistics.median(each) * 1000
        for each in (
            [way.spawn for way in ways],
            [way.fsyncs / ON_THE_PATH for way in ways],
            [way.trips / TRIPS for way in ways],
        )
    )
    slow = max(0.0, fsync - FAST_DISK_MS) * ON_THE_PATH
    figures = [
        Figure(
            what="accept to result, median",
            value=statistics.median(times),
            unit="ms",
            floor=statistics.median(way.whole for way in ways) * 1000,
            goal=round(GOAL_MS + slow, 1),
            times=3.0,
            peer="1397",
            note=f"min {min(times):.1f}, max {max(times):.1f}, n {count}; floor: spawn {spawn:.2f}"
            f" + {ON_THE_PATH} x fsync {fsync:.3f} + {TRIPS} x HTTP {trip:.2f}",
        )
    ]
    if made.counts_fsyncs:
        figures.append(
            Figure(
                what="fsyncs between accept and result, median",
                value=statistics.median(fsyncs),
                unit="fsyncs",
                goal=ON_THE_PATH - 1,
                note=f"max {max(fsyncs)}; the request's own commit comes on top: at most {ON_THE_PATH};"
                f" they took {statistics.median(spans):.2f} ms",
            )
        )
    return figures


def one(made: World, agent: str, number: int) -> tuple[float, list[Fsync]]:
    """Ask once; seconds from the request's acceptance to the result's, and the fsyncs between."""
    made.requests()
    body = {"channel": made.channel, "kind": "request", "to": agent, "content": f"work {number}"}
    made.do("owner", lambda hub: hub.post_message(body))
    seen: list[list[Any]] = []

    def both() -> list[list[Any]]:
        seen.extend(made.requests())
        posts = [each for each in seen if each[0] == "POST" and each[1].endswith("/messages") and each[3]]
        return posts if len(posts) == 2 else []

    asked, answered = until(both, seconds=30, what="the result", every=0.05)
    between = [each for each in made.log.fsyncs() if asked[3] <= each.ended <= answered[3]]
    return (answered[3] - asked[3]) / 1e9, between
