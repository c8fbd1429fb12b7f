"""The receiver process: its parts put together, started, supervised and stopped."""

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from relay_receiver.adapters import registry
from relay_receiver.client.hub import Hub
from relay_receiver.client.profiles import Profile
from relay_receiver.client.rest import Rest
from relay_receiver.jobs.state import AT_THE_AGENT, JobState
from relay_receiver.journal import binding as bindings
from relay_receiver.journal import jobs
from relay_receiver.journal.binding import Binding
from relay_receiver.journal.journal import Journal
from relay_receiver.processes import identity, paths
from relay_receiver.processes.launch import Launcher
from relay_receiver.receiver import presence
from relay_receiver.receiver.approvals import Approvals
from relay_receiver.receiver.backoff import Ladder
from relay_receiver.receiver.control import Control
from relay_receiver.receiver.controls import Controls
from relay_receiver.receiver.how import How
from relay_receiver.receiver.intake import Intake
from relay_receiver.receiver.lease import Lease
from relay_receiver.receiver.parts import Parts, adapter_binding
from relay_receiver.receiver.pruning import Pruning
from relay_receiver.receiver.reconcile import reconcile
from relay_receiver.receiver.report import Report
from relay_receiver.receiver.runner import Runner
from relay_receiver.receiver.situation import Fault, Situation
from relay_receiver.receiver.spoken import Spoken
from relay_receiver.receiver.target import JOURNAL
from relay_receiver.wire.errors import RelayError

GRACE_SECONDS = 30.0
"""How long `stop` waits for the job in hand before it interrupts it."""
LAST_WORDS_SECONDS = 10.0
"""How long a stopping receiver tries to confirm an interrupt and to post what it came to."""
HEALTHY_SECONDS = 60.0
"""A loop that ran this long before it failed starts its back-off anew."""
MENDED_SECONDS = 10.0
"""A loop that failed and then ran this long has got over it."""


class Receiver:
    """One binding at work in this process. Whoever makes it holds the instance lock."""

    def __init__(self, profile: Profile, folder: Path, log: logging.Logger) -> None:
        self._profile = profile
        self._folder = folder
        self._runtime = paths.runtime_dir(folder)
        self._log = log
        self._how: How | None = None
        self._stop = asyncio.Event()
        self._stronger = asyncio.Event()

    def stop(self, how: How) -> None:
        """Ask for the end; repeated safely."""
        if self._how is None or how > self._how:
            self._how = how
            self._stronger.set()
        self._stop.set()

    async def run(self, ready: Callable[[dict[str, Any]], None]) -> None:
        """Work until stopped. `ready` is called once journal and control socket are there."""
        journal = Journal.open(self._folder / JOURNAL)
        try:
            binding = journal.read_now(bindings.get)
            if binding is None:
                raise RelayError(
                    f"The journal {journal.path} is empty: it holds no binding.",
                    code="not_configured",
                    hint="relay receiver configure",
                )
            launcher = Launcher()
            await launcher.start()
            try:
                await self._work(journal, binding, launcher, ready)
            finally:
                await launcher.close()
        finally:
            journal.close()

    async def _work(
        self, journal: Journal, binding: Binding, launcher: Launcher, ready: Callable[[dict[str, Any]], None]
    ) -> None:
        situation = Situation()
        adapter = registry.load(binding.adapter)(
            adapter_binding(binding, self._folder, journal.read_now(jobs.in_flight)), launcher
        )
        proves = adapter.proves
        situation.proves = {
            "neverStarted": proves.never_started,
            "finished": proves.finished,
            "survivesReceiver": proves.survives_receiver,
            "note": proves.note,
        }
        async with Rest(self._profile.url, self._profile.token()) as rest:
            parts = Parts(
                profile=self._profile,
                binding=binding,
                journal=journal,
                hub=Hub(rest, patient=False),
                adapter=adapter,
                situation=situation,
                log=self._log,
                folder=self._folder,
                now=time.time,
                boot=identity.boot_seconds,
            )
            await self._supervise(parts, ready)

    async def _supervise(self, parts: Parts, ready: Callable[[dict[str, Any]], None]) -> None:
        async with asyncio.TaskGroup() as tasks:
            runner = Runner(parts, tasks)
            report = Report(parts)
            ordered = Controls(parts, runner)

            def renewed(run: dict[str, Any] | None) -> None:
                if not parts.situation.reconciled:
                    ordered.ask_hub()
                runner.post(lambda: reconcile(parts, runner, run))

            lease = Lease(
                parts,
                state=lambda: parts.situation.state(
                    None if runner.job is None else runner.job.state.value, reached=True
                ),
                reconcile=renewed,
                report=report.now,
                notable=lambda: parts.situation.notable(runner.job),
            )
            parts.noticed = lease.notice
            pruning = Pruning(parts)
            asking = Approvals(parts, changed=runner.kick)

            def healed() -> None:
                runner.post(runner.post_again)
                asking.look_soon()
                ordered.ask_hub()

            intake = Intake(
                parts,
                lease,
                pruning,
                changed=runner.kick,
                healed=healed,
                answered=asking.look_soon,
                ordered=ordered.look,
            )
            spoken = Spoken(parts, runner, lease, stop=self.stop)
            control = Control(self._runtime, spoken.verbs(), self._log)
            await control.open()
            self._hear_signals()
            loops = [
                tasks.create_task(self._for_life(parts.situation, "lease", lease.run), name="lease"),
                tasks.create_task(self._for_life(parts.situation, "intake", intake.run), name="intake"),
                tasks.create_task(self._for_life(parts.situation, "report", report.run), name="report"),
                tasks.create_task(self._for_life(parts.situation, "decisions", ordered.run), name="decisions"),
                tasks.create_task(self._for_life(parts.situation, "runner", runner.run), name="runner"),
                tasks.create_task(self._for_life(parts.situation, "approvals", asking.run), name="approvals"),
                tasks.create_task(self._for_life(parts.situation, "pruning", pruning.run), name="pruning"),
                tasks.create_task(
                    self._for_life(parts.situation, "adapter", lambda: _pump(parts, runner)), name="adapter"
                ),
                tasks.create_task(
                    self._for_life(parts.situation, "presence", lambda: presence.renew(parts, self._folder)),
                    name="presence",
                ),
            ]
            ready({"state": "ready", "pid": os.getpid()})
            self._log.info("ready")
            await self._stop.wait()
            await self._end(parts, runner)
            for task in loops:
                task.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
            runner.close()
            await parts.adapter.close(detach=self._how is How.DETACH)
            await parts.journal.write(bindings.note_position, parts.binding.cursor, parts.binding.watermark)
            await lease.release()
            await control.close()
        self._log.info("stopped")

    async def _end(self, parts: Parts, runner: Runner) -> None:
        """Bring the job in hand to an end, as the stop was asked for."""
        parts.situation.stopping = True
        runner.kick()
        if self._how is How.DETACH:
            return
        if self._how is How.GRACE:
            rest = asyncio.ensure_future(runner.free.wait())
            self._stronger.clear()
            stronger = asyncio.ensure_future(self._stronger.wait())
            await asyncio.wait({rest, stronger}, timeout=GRACE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            rest.cancel()
            stronger.cancel()
        if runner.job is not None and runner.job.state in AT_THE_AGENT:
            runner.stop_hand()
        if runner.job is not None and runner.job.state is not JobState.UNKNOWN:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_WORDS_SECONDS):
                    await runner.rest.wait()

    async def _for_life(self, situation: Situation, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """Run a loop, and start it again with back-off when it fails: a fault is shown, and ends no channel."""
        ladder = Ladder(identity.boot_seconds, ceiling=60.0)
        while True:
            began = identity.boot_seconds()
            mended = asyncio.get_running_loop().call_later(MENDED_SECONDS, situation.faults.pop, name, None)
            try:
                await run()
            except Exception as error:  # noqa: BLE001 - logged whole and shown, and the loop starts again
                self._log.exception("%s failed", name)
                situation.faults[name] = Fault.of(name, error)
            finally:
                mended.cancel()
            if identity.boot_seconds() - began > HEALTHY_SECONDS:
                ladder.succeeded()
            await asyncio.sleep(ladder.failed())

    def _hear_signals(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, lambda: self.stop(How.GRACE))
        loop.add_signal_handler(signal.SIGINT, lambda: self.stop(How.GRACE if self._how is None else How.NOW))
        loop.add_signal_handler(signal.SIGHUP, lambda: None)


async def _pump(parts: Parts, runner: Runner) -> None:
    async for event in parts.adapter.events():
        runner.take(event)
