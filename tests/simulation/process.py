"""One receiver process of a simulation: the product's own parts on a real journal, with doors where it may die."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relay_receiver.client.profiles import Profile
from relay_receiver.jobs.job import Job
from relay_receiver.jobs.state import AT_THE_AGENT, JobState
from relay_receiver.journal import binding as bindings
from relay_receiver.journal import engine, jobs
from relay_receiver.journal.journal import Journal, JournalUnavailable
from relay_receiver.receiver.approvals import Approvals
from relay_receiver.receiver.backoff import Ladder
from relay_receiver.receiver.how import How
from relay_receiver.receiver.intake import Intake
from relay_receiver.receiver.lease import Lease
from relay_receiver.receiver.parts import Parts
from relay_receiver.receiver.pruning import Pruning
from relay_receiver.receiver.receiver import GRACE_SECONDS, HEALTHY_SECONDS, LAST_WORDS_SECONDS, _pump
from relay_receiver.receiver.reconcile import reconcile
from relay_receiver.receiver.runner import Runner
from relay_receiver.receiver.situation import Situation
from relay_receiver.testing.sim_agent import SimAdapter
from relay_receiver.testing.sim_line import Line
from relay_receiver.testing.virtual_time import Inline

if TYPE_CHECKING:
    from simulation.world import Lineage, World

PROFILE = Profile(
    name="me", url="http://127.0.0.1:1", workspace="w", workspace_name="w", agent="a_me", agent_name="me", role="agent"
)
LOG = logging.getLogger("relay_receiver.simulation")
LOG.disabled = True


class Died(BaseException):
    """The process is killed here: nothing that it does from now on has any effect."""


class SimJournal(Journal):
    """A real journal whose commits are doors."""

    gate: Callable[[str], None]
    locked: Callable[[], bool]
    submitted: Callable[[Job], None]
    """Called when the intent to hand a job over is committed."""

    def _do(self, words: str, fn: Any, *args: Any, **kwargs: Any) -> Any:
        if words != engine.WRITE:
            self.gate("read")
            return super()._do(words, fn, *args, **kwargs)
        self.gate(f"before {fn.__name__.strip('_')}")
        if self.locked():
            raise JournalUnavailable("The journal is locked.", code="journal_unavailable")
        done = super()._do(words, fn, *args, **kwargs)
        if fn is jobs.submit:
            self.submitted(done)
        self.gate(f"after {fn.__name__.strip('_')}")
        return done


class SimParts(Parts):
    """Parts whose adapter is made of no files."""

    def adapter_binding(self) -> Any:
        return None


class Process:
    """A receiver at work until it is stopped or killed."""

    def __init__(self, world: "World", lineage: "Lineage") -> None:
        self._world = world
        self.lineage = lineage
        self.dead = False
        self.stopping: How | None = None
        machine = lineage.machine
        self.journal = SimJournal.open(
            lineage.path, executor=Inline(), machine=lambda: machine.name, busy=0.0, migrate=False
        )
        self.journal.gate = self.gate
        self.journal.locked = lambda: world.locked
        self.journal.submitted = lambda job: world.judge.submitted(lineage, job)
        self.line = Line(world.network, self.gate)
        self.line.post_message = self._post  # type: ignore[method-assign]
        binding = self.journal.read_now(bindings.get)
        assert binding is not None
        self.parts = SimParts(
            profile=PROFILE,
            binding=binding,
            journal=self.journal,
            hub=self.line,  # type: ignore[arg-type]  # the calls that a receiver makes
            adapter=SimAdapter(machine, self.gate, lambda work: world.judge.handed(self, work)),
            situation=Situation(),
            log=LOG,
            folder=Path("/nonexistent"),
            now=lambda: world.wall(machine),
            boot=world.boot,
        )
        self._stop = asyncio.Event()
        self.runner: Runner
        self.lease: Lease
        self.task = world.loop.create_task(self._live())

    async def _post(self, body: Any) -> Any:
        return await self.line._call("post", lambda: self._posted(body))

    def _posted(self, body: Any) -> Any:
        self._world.judge.posts(self.lineage, body)
        return self._world.hub.post(body)

    @property
    def state(self) -> str:
        job = self.runner.job if hasattr(self, "runner") else None
        return self.parts.situation.state(None if job is None else job.state.value)

    def gate(self, door: str) -> None:
        """A boundary: of a call, a commit, the agent."""
        if not self.dead and self._world.passes(self, door):
            self.kill()
        if self.dead:
            raise Died

    def kill(self) -> None:
        """SIGKILL."""
        self.dead = True
        self.line.close()
        if self.lineage.machine.adapter is self.parts.adapter:
            self.lineage.machine.adapter = None
        self.task.cancel()

    def stop(self, how: How) -> None:
        self.stopping = how
        self._stop.set()

    async def _live(self) -> None:
        try:
            await self._work()
        except* Died:
            pass
        finally:
            self.dead = True
            self.line.close()
            engine.dispose(self.journal._conn)

    async def _work(self) -> None:
        parts = self.parts
        async with asyncio.TaskGroup() as tasks:
            runner = self.runner = Runner(parts, tasks)
            lease = self.lease = Lease(
                parts,
                state=lambda: parts.situation.state(
                    None if runner.job is None else runner.job.state.value, reached=True
                ),
                reconcile=lambda run: runner.post(lambda: reconcile(parts, runner, run)),
            )
            pruning = Pruning(parts)
            asking = Approvals(parts, changed=runner.kick)

            def healed() -> None:
                runner.post(runner.post_again)
                asking.look_soon()

            intake = Intake(parts, lease, pruning, changed=runner.kick, healed=healed, answered=asking.look_soon)
            loops = [
                tasks.create_task(self._for_life(name, run))
                for name, run in (
                    ("lease", lease.run),
                    ("intake", intake.run),
                    ("runner", runner.run),
                    ("pruning", pruning.run),
                    ("approvals", asking.run),
                    ("adapter", lambda: _pump(parts, runner)),
                )
            ]
            await self._stop.wait()
            await self._end(runner)
            for task in loops:
                task.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
            runner.close()
            await parts.adapter.close(detach=self.stopping is How.DETACH)
            await parts.write(bindings.note_position, parts.binding.cursor, parts.binding.watermark)
            await lease.release()

    async def _end(self, runner: Runner) -> None:
        """As `Receiver._end`, without signals."""
        self.parts.situation.stopping = True
        runner.kick()
        if self.stopping is How.DETACH:
            return
        if self.stopping is How.GRACE:
            await _at_most(GRACE_SECONDS, runner.free.wait())
        if runner.job is not None and runner.job.state in AT_THE_AGENT:
            runner.stop_hand()
        if runner.job is not None and runner.job.state is not JobState.UNKNOWN:
            await _at_most(LAST_WORDS_SECONDS, runner.rest.wait())

    async def _for_life(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        ladder = Ladder(self.parts.boot, ceiling=60.0)
        while True:
            began = self.parts.boot()
            try:
                await run()
            except Exception as error:  # noqa: BLE001 - the judge looks at it
                self._world.judge.fell(self, name, error)
            if self.parts.boot() - began > HEALTHY_SECONDS:
                ladder.succeeded()
            await asyncio.sleep(ladder.failed())


async def _at_most(seconds: float, call: Awaitable[Any]) -> None:
    try:
        async with asyncio.timeout(seconds):
            await call
    except TimeoutError:
        pass
