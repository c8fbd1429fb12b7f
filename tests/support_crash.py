"""Crash trials: kill something at a point or at a random moment, start it again, and judge from outside."""

import random
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from support_faults import CrashWorld, codex_crash_world, crash_world, gone, moment
from support_world import until

REACH_SECONDS = 20.0
"""How long a point may take to be come to, before a trial counts as one that did not hit."""
KILL_WITHIN = 0.25
"""Seconds from the first request in which a random kill falls: about as long as two small jobs take."""
RECEIVER = ("journal.", "call.", "acknowledge.", "adapter.")
HUB = ("hub.",)
KEEPER = ("keeper.", "launcher.")
AT_START = ("adapter.open", "adapter.recover", "journal.promote", "call.post-receiver.", "hub.take")
"""Points that a request does not pass, but a start with a job in flight does."""
_ONCE = ("hub.create", "hub.enroll", "hub.invite", "hub.owner_code")
"""Points of joining, which no request passes."""


@dataclass(kw_only=True)
class Row:
    """What the trials of one kind came to."""

    name: str
    trials: int = 0
    hits: int = 0
    asked: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    settled: int = 0
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

    @property
    def alone(self) -> float:
        """The share of requests that came to an end without a person."""
        return 1.0 - self.settled / self.asked if self.asked else 1.0


Strike = Callable[[CrashWorld], Iterable[int]]
"""The processes to kill at one moment."""


def receiver(c: CrashWorld) -> list[int]:
    return [c.receiver]


def hub(c: CrashWorld) -> list[int]:
    return [c.place.hub.pid] if c.place.hub is not None else []


def both(c: CrashWorld) -> list[int]:
    return [*receiver(c), *hub(c)]


def launcher(c: CrashWorld) -> list[int]:
    return c.family()["launcher"]


def keeper(c: CrashWorld) -> list[int]:
    return c.family()["keeper"]


def agent(c: CrashWorld) -> list[int]:
    return c.family()["agent"]


def group(c: CrashWorld) -> list[int]:
    return [*(pid for pids in c.family().values() for pid in pids), *both(c)]


def points(c: CrashWorld, prefixes: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """The points that a request passes, and those that only a start with a job in flight passes."""
    c.end(c.ask(c.quick()))
    dry = _in_flight(c, "dry", receiver)
    c.revive()
    c.release("dry")
    c.end(dry)
    every = {p for p in c.faults.seen() if p.startswith(prefixes) and not p.startswith(_ONCE)}
    starting = {p for p in every if p.startswith(AT_START)}
    return sorted(every - starting), sorted(starting)


def at_point(c: CrashWorld, row: Row, point: str, also: Strike = lambda _: (), *, skip: int = 0) -> None:
    """Two requests; the process that comes to the point dies there, others with it."""
    plan = c.faults.plan(point, skip=skip)
    asked = [c.ask(c.quick(), meanwhile=c.revive) for _ in range(2)]
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
    moment(rnd, 0.05)
    row.hits += bool(c.kill(*strike(c)))
    c.release(name)
    _judge(c, row, [asked])


def _in_flight(c: CrashWorld, name: str, strike: Strike) -> str:
    asked = c.ask(c.held(name))
    until(lambda: c.starts()[asked], what="the start of the program")
    c.kill(*strike(c))
    return asked


def _over(c: CrashWorld, asked: list[str]) -> bool:
    return all(c.person.stage(m) in {"answered", "failed", "unknown"} for m in asked)


def _judge(c: CrashWorld, row: Row, asked: list[str]) -> None:
    c.revive()
    for message in asked:
        row.ends[c.end(message)] += 1
    row.trials += 1
    row.asked += len(asked)


def close(c: CrashWorld, *rows: Row) -> None:
    """Judge all that was asked in a world; what is wrong is written into the first row."""
    rows[0].broken += c.faults_found()
    rows[0].settled += len(c.settled)


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


def _randomly(strike: Strike) -> Work:
    def work(c: CrashWorld, row: Row, trials: int, rnd: random.Random) -> None:
        for _ in range(trials):
            at_random(c, row, strike, rnd)

    return work


def _running(strike: Strike) -> Work:
    def work(c: CrashWorld, row: Row, trials: int, rnd: random.Random) -> None:
        for _ in range(trials):
            while_running(c, row, strike, rnd)

    return work


TABLES: dict[str, Work] = {
    "receiver killed, at its points": _by_points(RECEIVER),
    "receiver killed, any moment": _randomly(receiver),
    "hub killed, at its points": _by_points(HUB),
    "hub killed, any moment": _randomly(hub),
    "both killed, at receiver's points": _by_points(RECEIVER, hub),
    "both killed, at hub's points": _by_points(HUB, receiver),
    "both killed, any moment": _randomly(both),
    "keeper or launcher, at their points": _by_points(KEEPER),
    "keeper or launcher and receiver": _by_points(KEEPER, receiver),
    "launcher killed, any moment": _randomly(launcher),
    "keeper killed, job running": _running(keeper),
    "agent killed, job running": _running(agent),
    "whole group at once, any moment": _randomly(group),
    "whole group at once, job running": _running(group),
}
CODEX: dict[str, Work] = {
    "codex: receiver killed, any moment": _randomly(receiver),
    "codex: receiver killed in a turn": _running(receiver),
    "codex: hub killed, any moment": _randomly(hub),
    "codex: app-server killed in a turn": _running(agent),
}
"""With the real Codex; these take several times as long."""
WITHOUT_A_PERSON = tuple(name for name in TABLES if name.startswith(("receiver", "hub", "both")))
"""Of these, 99.5 % must end answered without a person."""


def run(name: str, trials: int, seed: int) -> Row:
    """Trials of one kind in a world of their own."""
    row = Row(name=name)
    made = codex_crash_world if name in CODEX else crash_world
    with tempfile.TemporaryDirectory(prefix="crash") as folder, made(Path(folder) / "w") as c:
        try:
            (TABLES | CODEX)[name](c, row, trials, random.Random(seed))  # noqa: S311 - a seed repeats it
        except AssertionError as error:
            row.broken.append(f"seed {seed}: {error}")
        close(c, row)
    return row
