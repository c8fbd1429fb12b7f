"""Crash trials: kill something at a point or at a random moment, start it again, and judge from outside."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from relay_receiver.processes.tree import gone
from relay_receiver.testing.trial_place import until
from relay_receiver.testing.trial_world import TOLD, CrashWorld

REACH_SECONDS = 60.0
"""How long a point may take to be come to, before a trial counts as one that did not hit."""
TRIES = 10
"""How often two requests are made for one point."""
KILL_WITHIN = 0.25
"""Seconds from the first request in which a random kill falls: about as long as two small jobs take."""
RECEIVER = ("journal.", "call.", "acknowledge.", "adapter.")
HUB = ("hub.",)
KEEPER = ("keeper.", "launcher.")
AT_START = (
    *("adapter.open", "adapter.recover", "journal.promote", "journal.prune", "journal.give_back"),
    *("call.post-receiver.", "call.get-controls.", "hub.take"),
)
"""Points that a request does not pass, but a start with a job in flight does."""
_ONCE = ("hub.create", "hub.enroll", "hub.invite", "hub.owner_code", "hub.changed")
"""Points of joining and of a receiver's report, which no request passes for certain."""


@dataclass(kw_only=True)
class Row:
    """What the trials of one kind came to."""

    name: str
    trials: int = 0
    hits: int = 0
    asked: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    settled: int = 0
    """Requests that ended unknown, were told so, and were given up by the trial."""
    messages: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    """Points that were not come to, so that nothing was killed."""
    broken: list[str] = field(default_factory=list)

    def add(self, other: "Row") -> None:
        """Count the trials of another run of the same kind too."""
        self.trials += other.trials
        self.hits += other.hits
        self.asked += other.asked
        self.ends += other.ends
        self.settled += other.settled
        self.missed += other.missed
        self.broken += other.broken

    def judge(self, c: CrashWorld) -> None:
        """Look from outside at all that was asked, now that nothing more will happen to it."""
        self.broken += c.faults_found(self.messages)

    @property
    def alone(self) -> float:
        """The share of requests that came to an end without a person."""
        return 1.0 - self.settled / self.asked if self.asked else 1.0


Strike = Callable[[CrashWorld], Iterable[int]]
"""The processes to kill at one moment."""


def receiver(c: CrashWorld) -> list[int]:
    """The receiver's process."""
    return [c.receiver]


def hub(c: CrashWorld) -> list[int]:
    """The hub's process."""
    return [c.place.hub.pid] if c.place.hub is not None else []


def both(c: CrashWorld) -> list[int]:
    """Receiver and hub."""
    return [*receiver(c), *hub(c)]


def launcher(c: CrashWorld) -> list[int]:
    """The receiver's launcher."""
    return c.family()["launcher"]


def keeper(c: CrashWorld) -> list[int]:
    """Its keepers."""
    return c.family()["keeper"]


def agent(c: CrashWorld) -> list[int]:
    """The programs of its jobs."""
    return c.family()["agent"]


def group(c: CrashWorld) -> list[int]:
    """All of these at once."""
    return [*(pid for pids in c.family().values() for pid in pids), *both(c)]


def points(c: CrashWorld, prefixes: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """The points that a request passes, and those that only a start with a job in flight passes."""
    if not c.points:
        c.end(c.ask(c.quick()))
        dry = _in_flight(c, "dry", receiver)
        c.revive()
        c.release("dry")
        c.end(dry)
        c.points = c.faults.seen()
    every = {point for point in c.points if point.startswith(prefixes) and not point.startswith(_ONCE)}
    starting = {point for point in every if point.startswith(AT_START)}
    return sorted(every - starting), sorted(starting)


def at_point(c: CrashWorld, row: Row, point: str, also: Strike = lambda _: (), *, skip: int = 0) -> None:
    """Two requests; the process that comes to the point dies there, others with it.

    A point that quick work does not always pass gets more of it.
    """
    plan = c.faults.plan(point, skip=skip)
    asked: list[str] = []
    while c.faults.hit(plan) is None and len(asked) < 2 * TRIES:
        asked.extend(c.ask(c.quick(), meanwhile=c.revive) for _ in range(2))
        until(lambda: c.faults.hit(plan) or _over(c, asked), seconds=REACH_SECONDS, what=point)
    _struck(c, row, plan, point, also)
    _judge(c, row, asked)


def at_start(c: CrashWorld, row: Row, point: str, also: Strike = lambda _: ()) -> None:
    """Receiver and hub come back to a running job, and one dies again at the point."""
    name = f"{point}-{row.trials}"
    asked = _in_flight(c, name, both)
    plan = c.faults.plan(point)
    c.revive()
    until(lambda: c.faults.hit(plan), seconds=REACH_SECONDS, what=point)
    c.release(name)
    _struck(c, row, plan, point, also)
    _judge(c, row, [asked])


def _struck(c: CrashWorld, row: Row, plan: int, point: str, also: Strike) -> None:
    """Wait for the end of what died at the point, and kill the others."""
    hit = c.faults.hit(plan)
    c.faults.clear()
    if hit is None:
        row.missed.append(point)
        return
    until(lambda: gone(hit[1]), what=f"the end of {hit[1]} at {point}")
    row.hits += 1
    c.kill(*also(c))


def at_random(c: CrashWorld, row: Row, strike: Strike, rnd: random.Random) -> None:
    """Two requests, and a kill at a random moment of their lives."""
    done: list[int] = []
    wait = rnd.uniform(0.0, KILL_WITHIN)

    def kill() -> None:
        done.append(c.kill(*strike(c)))

    timer = threading.Timer(wait, kill)
    timer.start()
    asked = [c.ask(c.quick(), meanwhile=c.revive) for _ in range(2)]
    timer.join()
    row.hits += bool(done and done[0])
    _judge(c, row, asked)


def while_running(c: CrashWorld, row: Row, strike: Strike, rnd: random.Random) -> None:
    """A kill while the program certainly runs."""
    name = f"run-{row.trials}-{rnd.randrange(1 << 30)}"
    asked = c.ask(c.held(name))
    until(lambda: c.starts()[asked], what="the start of the program")
    _moment(rnd, 0.05)
    row.hits += bool(c.kill(*strike(c)))
    c.release(name)
    _judge(c, row, [asked])


def _moment(rnd: random.Random, most: float) -> None:
    """Let a random time pass, finer than a sleep."""
    end = time.monotonic() + rnd.uniform(0.0, most)
    while time.monotonic() < end:
        pass


def _in_flight(c: CrashWorld, name: str, strike: Strike) -> str:
    asked = c.ask(c.held(name))
    until(lambda: c.starts()[asked], what="the start of the program")
    c.kill(*strike(c))
    return asked


def _over(c: CrashWorld, asked: list[str]) -> bool:
    return all(c.person.stage(message) in TOLD for message in asked)


def _judge(c: CrashWorld, row: Row, asked: list[str]) -> None:
    c.revive()
    for message in asked:
        row.ends[c.end(message)] += 1
        row.settled += message in c.settled
    row.trials += 1
    row.asked += len(asked)
    row.messages += asked


Work = Callable[[CrashWorld, Row, int, random.Random], None]


def _by_points(prefixes: tuple[str, ...], also: Strike = lambda _: ()) -> Work:
    def work(c: CrashWorld, row: Row, trials: int, rnd: random.Random) -> None:
        ordinary, starting = points(c, prefixes)
        order = [*ordinary, *starting] * (trials // max(1, len(ordinary) + len(starting)) + 1)
        for point in rnd.sample(order, trials):
            if point in ordinary:
                at_point(c, row, point, also, skip=rnd.choice((0, 0, 1)))
            else:
                at_start(c, row, point, also)

    return work


def at_any_moment(strike: Strike) -> Work:
    """Trials that strike at random moments."""

    def work(c: CrashWorld, row: Row, trials: int, rnd: random.Random) -> None:
        for _ in range(trials):
            at_random(c, row, strike, rnd)

    return work


def with_a_job_running(strike: Strike) -> Work:
    """Trials that strike while the program runs."""

    def work(c: CrashWorld, row: Row, trials: int, rnd: random.Random) -> None:
        for _ in range(trials):
            while_running(c, row, strike, rnd)

    return work


TABLES: dict[str, Work] = {
    "receiver killed, at its points": _by_points(RECEIVER),
    "receiver killed, any moment": at_any_moment(receiver),
    "hub killed, at its points": _by_points(HUB),
    "hub killed, any moment": at_any_moment(hub),
    "both killed, at receiver's points": _by_points(RECEIVER, hub),
    "both killed, at hub's points": _by_points(HUB, receiver),
    "both killed, any moment": at_any_moment(both),
    "keeper or launcher, at their points": _by_points(KEEPER),
    "keeper or launcher and receiver": _by_points(KEEPER, receiver),
    "launcher killed, any moment": at_any_moment(launcher),
    "keeper killed, job running": with_a_job_running(keeper),
    "agent killed, job running": with_a_job_running(agent),
    "whole group at once, any moment": at_any_moment(group),
    "whole group at once, job running": with_a_job_running(group),
}
WITHOUT_A_PERSON = tuple(name for name in TABLES if name.startswith(("receiver", "hub", "both")))
"""Of these, 99.5 % must end answered without a person."""
