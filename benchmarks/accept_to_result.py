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
FAST_DISK_SECONDS = 0.0002


def measure(*, quick: bool) -> list[Figure]:
    count = 30 if quick else 60
    with world() as made:
        target = made.agent("bob")
        made.start(target)
        agent = profiles.load("bob").agent
        times, fsyncs, spans = [], [], []
        for number in range(count + 3):
            seconds, between = one(made, agent, number)
            if number >= 3:
                times.append(seconds * 1000)
                fsyncs.append(len(between))
                spans.append(sum(each.took for each in between) / 1e9)
        spawn = floors.spawn_seconds(made.program)
    fsync, trip = floors.fsync_seconds(), floors.round_trip_seconds()
    floor = (spawn + ON_THE_PATH * fsync + 3 * trip) * 1000
    middle = statistics.median(times)
    slow = max(0.0, fsync - FAST_DISK_SECONDS) * ON_THE_PATH * 1000
    figures = [
        Figure(
            what="accept to result, median",
            value=middle,
            unit="ms",
            floor=floor,
            goal=round(25.0 + slow, 1),
            times=3.0,
            peer="1397",
            note=f"min {min(times):.1f}, max {max(times):.1f}, n {count}; floor: spawn {spawn * 1000:.2f}"
            f" + {ON_THE_PATH} x fsync {fsync * 1000:.3f} + 3 x HTTP {trip * 1000:.2f}",
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
                f" they took {statistics.median(spans) * 1000:.2f} ms",
            )
        )
    return figures


def one(made: World, agent: str, number: int) -> tuple[float, list[Fsync]]:
    """Ask once; seconds from the request's acceptance to the result's, and the fsyncs between."""
    time.sleep(BETWEEN_SECONDS)
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
