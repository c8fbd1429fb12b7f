"""From `relay receiver start` to its return: lock, journal, control socket, adapter checked."""

import statistics
import subprocess
import sys
import time

from benchmarks.figure import Figure
from benchmarks.world import world
from relay_receiver.receiver import verbs

GOAL_MS = 500
FLOOR = "import asyncio, sqlalchemy, httpx, websockets"


def measure(*, quick: bool) -> list[Figure]:
    count = 5 if quick else 15
    times, floors = [], []
    with world() as made:
        target = made.agent("bob")
        for _ in range(count):
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", FLOOR], check=True)
            floors.append((time.perf_counter() - began) * 1000)
            began = time.perf_counter()
            verbs.start(target)
            times.append((time.perf_counter() - began) * 1000)
            verbs.stop(target)
    return [
        Figure(
            what="start to ready, median",
            value=statistics.median(times),
            unit="ms",
            floor=statistics.median(floors),
            goal=GOAL_MS,
            peer="98",
            note=f"min {min(times):.0f}, max {max(times):.0f}, n {count}; floor: python with its libraries imported;"
            " the peer's is its first contact",
        )
    ]
