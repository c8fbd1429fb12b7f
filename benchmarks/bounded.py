"""What a receiver takes on the disk after 10,000 and after 100,000 messages: journal, its log, and the spool."""

import asyncio
import tempfile
from pathlib import Path

from benchmarks.backlog import ask
from benchmarks.figure import Figure
from benchmarks.intake_page import BINDING
from benchmarks.world import until, world
from relay_receiver.client import profiles
from relay_receiver.journal import binding as bindings
from relay_receiver.journal.engine import WAL_LIMIT_BYTES
from relay_receiver.journal.journal import Journal
from relay_receiver.receiver import verbs
from relay_receiver.receiver.target import SPOOL, Target
from relay_receiver.testing.traffic import flow

MIB = 1024 * 1024
TIMES = 1.1
KEEP = 1000


def measure(*, quick: bool) -> list[Figure]:
    few, many = (2_000, 20_000) if quick else (10_000, 100_000)
    return [*_journal(few, many), _spool(*((10, 40) if quick else (100, 1000)))]


def _journal(few: int, many: int) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="relay-benchmark-") as folder:
        journal = Journal.open(Path(folder) / "journal.sqlite3")
        try:
            journal.write_now(bindings.create, BINDING)
            at = {each.messages: each for each in flow(journal, many, keep=KEEP)}
        finally:
            journal.close()
    return [
        Figure(
            what=f"journal after {many:,} messages",
            value=at[many].file / MIB,
            unit="MiB",
            floor=at[few].file / MIB,
            times=TIMES,
            peer="ends at 4096",
            note=f"floor: after {few:,}; a fifth of them jobs; {KEEP:,} are kept",
        ),
        Figure(
            what="its WAL, the most",
            value=at[many].wal / MIB,
            unit="MiB",
            floor=at[few].wal / MIB,
            goal=2 * WAL_LIMIT_BYTES / MIB,
            note=f"floor: after {few:,}",
        ),
    ]


def _spool(few: int, many: int) -> Figure:
    with world() as made:
        target = made.agent("bob")
        made.start(target)
        agent = profiles.load("bob").agent
        counts = []
        for count in (few, many - few):
            asyncio.run(ask(agent, made.channel, count))
            until(lambda: not any(verbs.status(target)["jobs"].values()), seconds=many, what="the last", every=0.2)
            counts.append(_files(target))
    return Figure(
        what=f"files in the spool after {many:,} jobs",
        value=counts[1],
        unit="files",
        floor=counts[0] or None,
        goal=counts[0],
        note=f"goal: as many as after {few:,}",
    )


def _files(target: Target) -> int:
    return sum(1 for _ in (target.folder / SPOOL).iterdir())
