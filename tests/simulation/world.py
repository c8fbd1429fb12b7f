"""The world of one history: a hub, a network, machines with their agents, journals, and people."""

import asyncio
import itertools
import shutil
import sqlite3
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from simulation.judge import Judge
from simulation.process import Process

from relay_receiver.client import feed
from relay_receiver.journal import binding as bindings
from relay_receiver.journal import room
from relay_receiver.journal.binding import Binding
from relay_receiver.journal.journal import Journal, adopt
from relay_receiver.journal.place import Place
from relay_receiver.receiver import configure, pruning
from relay_receiver.receiver.how import How
from relay_receiver.testing.sim_agent import Machine
from relay_receiver.testing.sim_hub import AGENT, CHANNEL, SimHub, Stored
from relay_receiver.testing.sim_line import Network, SimSocket
from relay_receiver.testing.virtual_time import Inline, VirtualLoop

EPOCH = 1_800_000_000.0
CEILING = 90.0
STALL = 30.0
APPROVAL = 45.0
JOBS = 3
"""Open jobs of each kind: so few that a history fills them."""
CHAIN = 2
KEEP = 6
"""Messages that a journal keeps: so few that a history has some forgotten."""

BINDING = Binding(
    agent=AGENT,
    agent_name="me",
    workspace="w",
    channel=CHANNEL,
    channel_name="lab",
    wake="addressed",
    adapter="command",
    argv=("/bin/true",),
    directory="/",
    network=False,
    tools=False,
    env=(),
    approvals="ask",
    approvers=(),
    approval_time=APPROVAL,
    chain_limit=CHAIN,
    ceiling=CEILING,
    stall=STALL,
    keep_messages=KEEP,
    keep_days=0,
    session=None,
    holder="h0",
    subscription="s0",
    chain_count=0,
    cursor=None,
    watermark=None,
    configured_at=EPOCH,
)


@dataclass(kw_only=True)
class Lineage:
    """One journal through its life; a copy or a restored one is another."""

    path: Path
    machine: Machine
    subscription: str
    start: int
    """The event after which it reads."""
    adopted: bool = False
    retired: bool = False
    """Another journal has its place on its machine."""
    process: Process | None = None
    _reader: sqlite3.Connection | None = field(default=None, repr=False)

    def rows(self, query: str, *given: Any) -> list[tuple[Any, ...]]:
        """What is committed, as another program sees it."""
        if self._reader is None:
            self._reader = sqlite3.connect(self.path, isolation_level=None)
        return self._reader.execute(query, given).fetchall()

    def forget(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None


class World:
    """Everything outside the receivers. Rules of a history call its methods between stretches of time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.loop = VirtualLoop()
        self.suspended = 0.0
        self.steps: dict[str, float] = {}
        self.locked = False
        self.hub = SimHub(self.time)
        self.network = Network(self.hub)
        self.judge = Judge(self)
        self.hub.acknowledged = self.judge.acknowledged
        self.machines: dict[str, Machine] = {}
        self.lineages: list[Lineage] = []
        self.deaths: list[tuple[str, int]] = []
        """Doors at which the next process dies, and how often they let it pass before."""
        self.trace: list[str] = []
        self._names = itertools.count()
        self._patches = [
            mock.patch.object(feed, "Socket", SimSocket),
            mock.patch.object(pruning, "EVERY_MESSAGES", 2),
            mock.patch.object(room, "AGENT_JOBS", JOBS),
            mock.patch.object(room, "PEOPLE_JOBS", JOBS),
        ]
        for patch in self._patches:
            patch.start()

    def close(self) -> None:
        for lineage in self.lineages:
            if lineage.process is not None and not lineage.process.task.done():
                lineage.process.kill()
        self.run(0.1)
        for lineage in self.lineages:
            lineage.forget()
            for path in (lineage.path, lineage.path.with_name(lineage.path.name + "-wal")):
                path.unlink(missing_ok=True)
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.run(0.0)
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()
        for patch in self._patches:
            patch.stop()

    # Time.

    def time(self) -> float:
        """The hub's clock."""
        return EPOCH + self.loop.now + self.suspended

    def boot(self) -> float:
        return 1000.0 + self.loop.now + self.suspended

    def wall(self, machine: Machine) -> float:
        return self.time() + self.steps.get(machine.name, 0.0)

    def run(self, seconds: float) -> None:
        self.loop.pass_time(seconds)

    # Death.

    def passes(self, process: Process, door: str) -> bool:
        """Whether the process dies at this door."""
        if door != "read" and "lease" not in door and "updates" not in door:
            self.trace.append(f"{self.loop.now:9.3f} {process.lineage.path.stem}: {door}")
        for index, (name, count) in enumerate(self.deaths):
            if name == door:
                if count > 0:
                    self.deaths[index] = (name, count - 1)
                    return False
                del self.deaths[index]
                self.trace.append(f"{self.loop.now:9.3f} {process.lineage.path.stem}: KILLED at {door}")
                return True
        return False

    # Machines, journals, processes.

    def machine(self, name: str) -> Machine:
        if name not in self.machines:
            self.machines[name] = Machine(name, started=self.judge.started, answered=self.judge.answered)
        return self.machines[name]

    def configure(self, machine: str) -> Lineage:
        """A new binding, from now on."""
        number = next(self._names)
        path = self.folder / f"{machine}{number}.db"
        head = self.hub.stored.head
        messages = list(self.hub.stored.messages.values())
        path.write_bytes(template(self.folder))
        lineage = Lineage(path=path, machine=self.machine(machine), subscription=f"s{number}", start=head)
        self.hub.stored.acknowledged[lineage.subscription] = head
        place = Place.of(path, lambda: machine)
        with sqlite3.connect(path, isolation_level=None) as conn:
            conn.execute("PRAGMA synchronous = OFF")
            conn.execute(
                "UPDATE place SET machine=?, device=?, filesystem=?, inode=?",
                (place.machine, place.device, place.filesystem, place.inode),
            )
            conn.execute(
                "UPDATE binding SET holder=?, subscription=?, cursor=?, watermark=?, configured_at=?",
                (f"h{number}", lineage.subscription, self.hub.cursor(head), head, configure.newest(messages, CHANNEL)),
            )
        conn.close()
        self._take_place(lineage)
        return lineage

    def _take_place(self, lineage: Lineage) -> None:
        """One receiver of a binding on a machine: there is a lock."""
        for other in self.lineages:
            if other.machine is lineage.machine:
                other.retired = True
                self.kill(other)
        self.lineages.append(lineage)

    def start(self, lineage: Lineage) -> None:
        """Start a process on that journal, where none runs."""
        process = lineage.process
        if process is not None and not process.task.done():
            if not process.dead:
                return
            self.loop.run_until_complete(asyncio.wait({process.task}))
        if process is not None:
            self.judge.ended(process)

        async def born() -> None:
            lineage.process = Process(self, lineage)

        self.loop.run_until_complete(born())

    def kill(self, lineage: Lineage) -> None:
        if lineage.process is not None and not lineage.process.task.done():
            lineage.process.kill()
            self.loop.run_until_complete(asyncio.wait({lineage.process.task}))

    def stop(self, lineage: Lineage, how: How) -> None:
        if self.alive(lineage):
            lineage.process.stop(how)  # type: ignore[union-attr]

    @staticmethod
    def alive(lineage: Lineage) -> bool:
        return lineage.process is not None and not lineage.process.dead

    def save(self, lineage: Lineage) -> Path:
        """A copy of the journal as it is now, made while it may be in use."""
        path = self.folder / f"saved{next(self._names)}.db"
        target = sqlite3.connect(path)
        source = sqlite3.connect(lineage.path)
        source.backup(target)
        source.close()
        target.close()
        return path

    def adopt(self, saved: Path, old: Lineage, machine: str) -> Lineage:
        """Take a saved journal into use: on its own machine, or on another."""
        path = self.folder / f"{machine}{next(self._names)}.db"
        shutil.copyfile(saved, path)
        adopt(path, machine=lambda: machine)
        lineage = Lineage(
            path=path, machine=self.machine(machine), subscription=old.subscription, start=old.start, adopted=True
        )
        self._take_place(lineage)
        self.judge.copied(lineage)
        return lineage

    def restore_hub(self, backup: Stored) -> None:
        """What the hub was told since the backup, it does not know any more."""
        before = self.hub.stored
        self.hub.restore(backup)
        for message, run in before.runs.items():
            known = backup.runs.get(message)
            if known is None or (known.state, known.claim) != (run.state, run.claim):
                self.judge.touched.add(message)
                self.judge.forgiven.add(message)
        self.judge.unseen |= before.withdrawn - backup.withdrawn  # its author would have to withdraw it again
        self.network.drop_sockets()

    # People.

    def answer(self, request: dict[str, Any], decision: str) -> None:
        """A person answers a request, if it is not too late."""
        if self.hub.asks.respond(self.hub.stored.asks, request["id"], decision, by="p_1") and decision == "accept":
            self.judge.accepted.add(request["operationId"])

    def settle_at_hub(self, message: str, outcome: str) -> None:
        """A person ends the run of a message; `not-accepted` lets it be run again."""
        if self.hub.settle(message, outcome):
            self.judge.unseen.add(message)
            self.judge.touched.add(message)
            if outcome == "not-accepted":
                self.judge.allowed[message] += 1

    def ask(self, lineage: Lineage, call: Callable[[Process], Coroutine[Any, Any, Any]]) -> bool:
        """Have a person ask something of a running receiver. True if it was done."""
        process = lineage.process
        if process is None or process.dead or not hasattr(process, "runner"):
            return False

        async def asked() -> bool:
            done = self.loop.create_task(call(process))
            await asyncio.wait({done, process.task}, timeout=5.0, return_when=asyncio.FIRST_COMPLETED)
            if not done.done():
                done.cancel()
                await asyncio.wait({done})
                return False
            return done.exception() is None

        return self.loop.run_until_complete(asked())


_TEMPLATE: list[bytes] = []


def template(folder: Path) -> bytes:
    """The bytes of a journal with a binding."""
    if not _TEMPLATE:
        path = folder / "template.db"
        journal = Journal.open(path, executor=Inline())
        journal.write_now(bindings.create, BINDING)
        journal.close()
        _TEMPLATE.append(path.read_bytes())
    return _TEMPLATE[0]


__all__ = ["Lineage", "Stored", "World"]
