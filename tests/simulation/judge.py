"""The judge of a history: sees every boundary from outside, and knows the promises."""

import json
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from relay_receiver.adapters.base import Work
from relay_receiver.jobs.job import Job
from relay_receiver.jobs.state import TERMINAL, JobState
from relay_receiver.testing.sim_agent import Machine
from relay_receiver.wire.message import seconds

if TYPE_CHECKING:
    from simulation.process import Process
    from simulation.world import Lineage, World


TRACE = 120
"""The last doors that are told with a broken promise."""
EPOCH = 1_800_000_000.0


class Broken(AssertionError):  # noqa: N818 - a promise, not an error
    """A promise was broken."""


class Judge:
    """Collects what was broken; `check` raises it."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.broken: list[str] = []
        self.handed_keys: set[tuple[str, str]] = set()
        self.executions: Counter[str] = Counter()
        """Real starts, by message."""
        self.here: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """The same, by journal."""
        self.allowed: Counter[str] = Counter()
        """Further starts of a message that a person asked for."""
        self.forgiven: set[str] = set()
        """Messages whose run a restored hub has forgotten: only one journal can know of it then."""
        self.touched: set[str] = set()
        """Messages whose run at the hub was closed by a person, or lost."""
        self.unseen: set[str] = set()
        """Messages whose result may be missing: a person ended their run, or it was lost unseen."""
        self.turns: defaultdict[str, set[str]] = defaultdict(set)
        """By journal: agents' jobs handed over since a person's job or a resume."""
        self.counted: defaultdict[str, set[str]] = defaultdict(set)
        self.accepted: set[str] = set()
        """Questions, by operation id, to which a person said yes at the hub."""
        self.given: Counter[str] = Counter()
        """Answers that an agent had, by operation id."""
        self._of_key: dict[str, tuple[str, str]] = {}

    def check(self) -> None:
        """Raise what was broken so far."""
        self._look()
        if self.broken:
            raise Broken("\n".join([*self.broken, "", *self._world.trace[-TRACE:], "", *self._histories()]))

    def _histories(self) -> list[str]:
        """What the journals say of each job."""
        said = []
        for lineage in self._world.lineages:
            rows = lineage.rows(
                "SELECT job.message, job_event.at, source, target, job_event.attempt, who, why "
                "FROM job_event JOIN job ON job.id = job_event.job ORDER BY job.event, job_event.rowid"
            )
            said += [f"{lineage.path.stem} {row[0]} {row[1] - EPOCH:9.3f} {row[2:]}" for row in rows]
        return said

    def say(self, promise: str, what: str) -> None:
        self.broken.append(f"{promise}: {what} (at {self._world.loop.now:.3f})")

    # What happens.

    def handed(self, process: "Process", work: Work) -> None:
        """The adapter was called."""
        lineage = process.lineage
        name = lineage.path.stem
        row = lineage.rows("SELECT state, attempt, run_claim FROM job WHERE id = ?", work.job)
        if not row or row[0][:2] != ("submitting", work.attempt):
            self.say("P2", f"{work.key} was handed over before that was committed: {row}")
        if (name, work.key) in self.handed_keys:
            self.say("P2", f"{work.key} was handed over twice")
        self.handed_keys.add((name, work.key))
        self._of_key[work.key] = (name, work.message)
        run = self._world.hub.stored.runs.get(work.message)
        if work.message not in self.touched and (run is None or run.state != "open" or run.claim != row[0][2]):
            self.say("P2", f"{work.key} was handed over without an open run: {run}")

    def submitted(self, lineage: "Lineage", job: Job) -> None:
        """The intent to hand a job over is committed: that is a turn of agents, or the end of their row."""
        name = lineage.path.stem
        if not job.by_agent:
            self.turns[name].clear()
        elif job.id not in self.counted[name]:  # each job counts once, whatever its attempts
            self.counted[name].add(job.id)
            self.turns[name].add(job.id)
            limit = self._limit(name)
            if len(self.turns[name]) > limit:
                self.say("P7", f"{len(self.turns[name])} turns of agents in a row in {name}")

    def _limit(self, name: str) -> int:
        lineage = next(each for each in self._world.lineages if each.path.stem == name)
        return int(lineage.rows("SELECT chain_limit FROM binding")[0][0])

    def resumed(self, lineage: "Lineage") -> None:
        """A person lifted the pause."""
        self.turns[lineage.path.stem].clear()

    def started(self, machine: Machine, key: str) -> None:
        """An agent really began to work."""
        name, message = self._of_key[key]
        self.executions[message] += 1
        self.here[name][message] += 1
        for other in machine.spool.values():
            where, what = self._of_key.get(other.key, ("", ""))
            runs = other.started and not (other.end or other.gone or other.key in machine.doubtful)
            if other.key != key and runs and where == name and what not in self.touched:
                self.say("P6", f"{key} began on {machine.name} while {other.key} runs")
        most = 1 + self.allowed[message]
        if self.here[name][message] > most:
            self.say("P2", f"{message} was run {self.here[name][message]} times by {name}, last as {key}")
        elif self.executions[message] > most and message not in self.forgiven:
            self.say("P2", f"{message} was run {self.executions[message]} times, last by {machine.name} as {key}")

    def answered(self, key: str, question: str, accepted: bool) -> None:  # noqa: FBT001 - told by position
        """An agent has the answer to a question."""
        operation = f"ask:{key}:{question}"
        self.given[operation] += 1
        if self.given[operation] > 1:
            self.say("P11", f"{operation} was answered {self.given[operation]} times")
        if accepted and operation not in self.accepted:
            self.say("P11", f"{operation} was accepted, and no person said so")
        rows = self._decided(operation)
        if ("approved" in rows) is not accepted and "approved" in rows:
            self.say("P11", f"{operation} was answered otherwise than it is committed: {rows}")
        if accepted and "approved" not in rows:
            self.say("P11", f"{operation} was answered before that was committed: {rows}")

    def _decided(self, operation: str) -> set[str]:
        return {
            state
            for lineage in self._world.lineages
            for (state,) in lineage.rows("SELECT state FROM approval WHERE id = ?", operation)
        }

    def acknowledged(self, subscription: str, number: int) -> None:
        """The hub heard that all up to there is stored."""
        world = self._world
        stored = world.hub.stored
        found = [
            each for each in world.lineages if each.rows("SELECT 1 FROM binding WHERE subscription = ?", subscription)
        ]
        if len(found) != 1:
            return  # a copy of the journal acknowledges the same: each reads from its own cursor all the same
        [lineage] = found
        known = {row[0] for row in lineage.rows("SELECT id FROM message")}
        [(forgotten,)] = lineage.rows("SELECT configured_at FROM binding")
        first = max(lineage.start, stored.pruned)
        for each in stored.messages.values():
            there = each["id"] in known or seconds(each["createdAt"]) <= forgotten
            if first < each["event"] <= number and not there:
                self.say("P1", f"{each['id']} ({each['event']}) was acknowledged by {number} and is not committed")

    def posts(self, lineage: "Lineage", body: dict[str, Any]) -> None:
        """A result or notice reaches the hub."""
        if body["kind"] != "result":
            return
        job = str(body["operationId"]).removeprefix("receiver:")
        rows = lineage.rows("SELECT state, body FROM job WHERE id = ?", job)
        state, stored = rows[0] if rows else (None, None)
        if state is None or (state != JobState.OUTPUT and JobState(state) not in TERMINAL):
            self.say("P3", f"the result of {job} was posted while it was {state}")
        elif state == JobState.OUTPUT and _text(stored) != _text(json.dumps(body)):
            self.say("P3", f"the result of {job} was posted, and is not what is committed")

    def fell(self, process: "Process", name: str, error: Exception) -> None:
        """A loop of the receiver ended by an error of its own."""
        self.say("loops", f"{name} of {process.lineage.path.stem} fell: {error!r}")

    def ended(self, process: "Process") -> None:
        """A process is over: of an error only where there is one."""
        if not process.task.cancelled() and (error := process.task.exception()) is not None:
            self.say("process", f"{process.lineage.path.stem} ended: {error!r}")

    def copied(self, new: "Lineage") -> None:
        """The copy counts from what it holds."""
        name = new.path.stem
        [(count,)] = new.rows("SELECT chain_count FROM binding")
        self.turns[name] = {f"before {number}" for number in range(count)}
        self.counted[name] = {job for (job,) in new.rows("SELECT id FROM job WHERE counted")}

    # What is so.

    def _look(self) -> None:
        hub = self._world.hub.stored
        results = Counter(
            each["replyTo"] for each in hub.messages.values() if each["kind"] == "result" and each["authorId"] == "a_me"
        )
        for message, count in results.items():
            if count > 1:
                self.say("P3", f"{message} has {count} results")
        for lineage in self._world.lineages:
            if self._world.alive(lineage) or lineage.process is not None:
                self._look_at(lineage)

    def _look_at(self, lineage: "Lineage") -> None:
        for job, attempt in lineage.rows("SELECT id, attempt FROM job WHERE state = 'unknown'"):
            if f"{job}.{attempt}" not in lineage.machine.doubtful and not lineage.adopted:
                self.say("P4", f"{job}.{attempt} of {lineage.path.stem} is unknown, and nobody doubted it")
        for by_agent, count in lineage.rows(
            "SELECT by_agent, count(*) FROM job WHERE state IN "
            "('queued','submitting','running','waiting','output','unknown') GROUP BY by_agent"
        ):
            if count > 3 + 1:
                self.say("P8", f"{count} open jobs ({by_agent=}) in {lineage.path.stem}")


def _text(body: str | None) -> Any:
    said = json.loads(body or "{}")
    return {key: said.get(key) for key in ("content", "replyTo", "outcome", "operationId", "kind")}
