"""Power cuts of the hub: its database, cut after each commit, opens clean and never lags what the hub has said."""

import contextlib
import shutil
import signal
import sqlite3
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import psutil
from support_faults import CrashWorld, crash_world
from support_power import clean, commits, read, write
from support_world import until

from relay_receiver.hub import engine
from relay_receiver.hub.store import Store
from relay_receiver.receiver.target import JOURNAL

NEWEST = 4
"""Cuts at each point: those further back were the newest ones at the points before."""
NOT_OF_A_REQUEST = ("hub.create", "hub.enroll", "hub.invite", "hub.owner_code", "hub.take")


@dataclass(frozen=True, kw_only=True)
class Held:
    """What a hub would know after a power cut."""

    messages: dict[str, int]
    """Event numbers by id."""
    runs: dict[str, str]
    """States by job."""


def cut_open(folder: Path, database: bytes, wal: bytes) -> Held:
    """Open a cut database as the hub does; it holds together in itself."""
    path = engine.locate(folder / "data")
    write(path, database, wal)
    Store.open(path).close()
    with clean(path) as conn:
        (head,) = conn.execute("select head from workspace").fetchone()
        numbers = [number for (number,) in conn.execute("select number from event order by number")]
        messages = dict(conn.execute("select id, event from message").fetchall())
        results = Counter(m for (m,) in conn.execute("select reply_to from message where kind = 'result'"))
        runs = dict(conn.execute("select request, state from run").fetchall())
        open_ = [m for (m,) in conn.execute("select message from run where state = 'open'")]
    assert numbers == list(range(numbers[0], head + 1)), "events without holes, up to the head"
    assert set(results.values()) <= {1}
    assert not set(open_) & set(results), "a result closes its run in the same commit"
    assert len(open_) <= 1
    shutil.rmtree(folder)
    return Held(messages=messages, runs=runs)


def told(c: CrashWorld) -> dict[str, int]:
    """What the receiver was told of: the messages that its journal has, and the results that it knows to be stored."""
    with contextlib.closing(sqlite3.connect(c.target.folder / JOURNAL)) as conn:
        messages = dict(conn.execute("select id, event from message").fetchall())
        return messages | dict(conn.execute("select result, result_event from job where result is not null").fetchall())


def freeze(c: CrashWorld, point: str, text: str) -> tuple[threading.Thread, int | None]:
    """A request during which the hub stands still at a point; who asks it, and the hub's process, if it came to it."""
    plan = c.faults.plan(point, "stop")
    asking = threading.Thread(target=c.ask, args=(text,))
    asking.start()
    hit = until(
        lambda: c.faults.hit(plan) or (not asking.is_alive() and c.person.stage(list(c.asked)[-1]) == "answered"),
        what=point,
    )
    c.faults.clear()
    if hit is True:
        return asking, None
    pid = int(hit[1])
    until(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED, what="a process that stands still")
    return asking, pid


def test_every_copy_of_the_hub_opens_clean_and_knows_what_it_has_said(tmp_path: Path) -> None:
    with crash_world(tmp_path / "w") as c:
        c.end(c.ask("please task=first"))
        points = sorted(p for p in c.faults.seen() if p.startswith("hub.") and not p.startswith(NOT_OF_A_REQUEST))
        looked = 0
        for point in points:
            known = {each["id"]: each["event"] for each in c.person.history()}
            asking, pid = freeze(c, point, "please task=cut")
            try:
                if pid is None:
                    continue
                database, wal = read(engine.locate(c.place.data))
                known |= told(c)
                started = {key.rpartition(".")[0] for key in c.place.starts()}
                for number, length in enumerate(commits(wal)[-NEWEST:]):
                    held = cut_open(tmp_path / f"cut-{looked}-{number}", database, wal[:length])
                assert known.items() <= held.messages.items(), f"{point}: it was told, and the hub does not know it"
                assert started <= held.runs.keys(), f"{point}: it was begun, and the hub does not know it"
                looked += 1
            finally:
                if pid is not None:
                    psutil.Process(pid).send_signal(signal.SIGCONT)
                asking.join()
            assert c.end(list(c.asked)[-1]) == "answered"
        assert looked >= 6
        assert c.faults_found() == []
