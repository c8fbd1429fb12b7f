"""The runner: one job at a time from the queue to its posted result. The only task that moves jobs."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from relay_receiver.adapters.base import Accepted, AdapterEvent, AdapterUnusable, Refused, Scope
from relay_receiver.client.errors import HubAway, HubError
from relay_receiver.jobs.job import Job
from relay_receiver.jobs.outcome import Outcome
from relay_receiver.jobs.state import AT_THE_AGENT, JobState
from relay_receiver.jobs.transitions import JobEvent, TransitionError
from relay_receiver.journal import binding as bindings
from relay_receiver.journal import jobs, room
from relay_receiver.receiver import results, settle
from relay_receiver.receiver.backoff import Ladder
from relay_receiver.receiver.hand import Hand
from relay_receiver.receiver.handover import Begin, Handover
from relay_receiver.receiver.inquiry import AT_ONCE_SECONDS, Inquiry
from relay_receiver.receiver.outbox import Outbox, Posted
from relay_receiver.receiver.parts import Parts
from relay_receiver.receiver.repost import mend
from relay_receiver.receiver.situation import LeaseState
from relay_receiver.receiver.watch import Watch
from relay_receiver.wire import faultpoint
from relay_receiver.wire.stage import Stage

EXPIRE_SECONDS = 60.0
"""Between looks for jobs that expired in the queue."""
BEGIN_CEILING = 30.0
"""Seconds between tries of a begin, at the most."""

NOTABLE = frozenset({"paused", "refused", "unknown"})
"""States that requesters wait for a reason of: the hub is told at once when one begins or ends."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Command:
    """Something that another task wants done between two steps."""

    call: Callable[[], Coroutine[Any, Any, Any]]
    done: asyncio.Future[Any]


class Runner:
    """Everything that concerns jobs reaches it through one queue, so that nothing happens at once."""

    def __init__(self, parts: Parts, tasks: asyncio.TaskGroup) -> None:
        self._parts = parts
        self._tasks = tasks
        self._beside: set[asyncio.Task[Any]] = set()
        self._queue: asyncio.Queue[AdapterEvent | _Command | None] = asyncio.Queue()
        self._hand = Hand(parts)
        self._handover = Handover(parts)
        self._outbox = Outbox(parts)
        self._watch = Watch(parts, self._hand, self._outbox, refused=self._refused, later=self.post, beside=self._start)
        self._inquiry = Inquiry(parts, self._hand, self._watch, later=self.post, beside=self._start)
        self._begin = Ladder(parts.boot, ceiling=BEGIN_CEILING)
        self._refusals = Ladder(parts.boot)
        self._opening = Ladder(parts.boot)
        self._mending = Ladder(parts.boot)
        self._leftovers = False
        """Results that belong to no run may wait, and are posted also while a job is in hand."""
        self._opened = False
        self._recovered = False
        self._expire_at = 0.0
        self._word = "ready"
        self.free = asyncio.Event()
        """Set while nothing is at the agent."""
        self.rest = asyncio.Event()
        """Set while nothing is at the agent and nothing is left to post."""

    @property
    def job(self) -> Job | None:
        """The job in flight as the journal has it."""
        return self._hand.job

    def kick(self) -> None:
        """Look again: something that the runner waits for may have happened."""
        self._queue.put_nowait(None)

    def take(self, event: AdapterEvent) -> None:
        """Hear an event of the adapter."""
        self._queue.put_nowait(event)

    def post(self, call: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Have `call` run between two steps, without waiting for it."""
        self._queue.put_nowait(_Command(call, asyncio.get_running_loop().create_future()))

    async def ask(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run `call` between two steps, and return what it returns."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait(_Command(call, done))
        return await done

    def close(self) -> None:
        """End what runs beside the loop, once the loop itself has ended."""
        for task in self._beside:
            task.cancel()

    def _start(self, call: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = self._tasks.create_task(self._guarded(call, name), name=name)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)
        # One that is cancelled before its first step would leave the call behind, never awaited.
        task.add_done_callback(lambda _: call.close())
        return task

    async def _guarded(self, call: Coroutine[Any, Any, None], name: str) -> None:
        """What runs beside the loop ends nothing else when it fails."""
        try:
            await call
        except Exception as error:
            self._parts.situation.last_error = f"{name} failed: {error!r}"
            self._parts.log.exception("%s failed", name)

    async def run(self) -> None:
        """Work until cancelled. Begins from the journal alone, also after a fault of its own."""
        parts = self._parts
        await parts.write(room.promote, at=parts.now())
        self._hand.take(await parts.journal.read(jobs.in_flight))
        self._recovered = False
        stored = await parts.journal.read(bindings.get)
        parts.unseen.load(await parts.journal.read(jobs.posted_after, parts.binding.watermark or 0))
        if parts.unseen or (stored is not None and stored.mend_after is not None):
            self.post(self.post_again)
        while True:
            delay = await self._step()
            self._say_rest(delay)
            signal = await self._next(delay)
            if isinstance(signal, _Command):
                await self._answer(signal)
            elif signal is not None:
                await self._watch.hear(signal)
            elif self.job is not None and self.job.state in AT_THE_AGENT:
                await self._hand.look()

    def _say_rest(self, delay: float | None) -> None:
        at_agent = self.job is not None and self.job.state in AT_THE_AGENT
        (self.free.clear if at_agent else self.free.set)()
        at_rest = delay != 0 and (self.job is None or self.job.state is JobState.UNKNOWN)
        (self.rest.set if at_rest else self.rest.clear)()
        word = self._parts.situation.state(None if self.job is None else self.job.state.value, reached=True)
        if word != self._word and NOTABLE & {word, self._word}:
            self._parts.lease_in_doubt.set()
        self._word = word
        self._parts.noticed()

    async def _next(self, delay: float | None) -> AdapterEvent | _Command | None:
        if not self._queue.empty():
            return self._queue.get_nowait()
        if delay is None:
            return await self._queue.get()
        try:
            async with asyncio.timeout(delay):
                return await self._queue.get()
        except TimeoutError:
            return None

    async def _answer(self, command: _Command) -> None:
        try:
            result = await command.call()
        except asyncio.CancelledError:
            command.done.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - it goes to whoever asked
            if command.done.done():
                return
            self._parts.log.info("command refused", extra={"why": str(error)})
            command.done.set_exception(error)
        else:
            with contextlib.suppress(asyncio.InvalidStateError):
                command.done.set_result(result)

    async def _step(self) -> float | None:  # noqa: PLR0911 - one return a state
        """Take the next step. Seconds until there may be another: 0 at once, None when something must happen first."""
        state = None if self.job is None else self.job.state
        if state is JobState.OUTPUT:
            return await self._post()
        if not self._opened and (wait := await self._open()):
            return await self._tell(wait) if state is JobState.UNKNOWN else wait
        if not self._recovered:
            self._recovered = True
            if state is not None:
                await self._inquiry.now()
                return 0
        if state is None:
            if await self._outbox.post_leftovers():
                return 0
            return _sooner(await self._choose(), self._outbox.remaining())
        if self._leftovers:
            if await self._outbox.post_leftovers():
                return 0
            self._leftovers = self._outbox.remaining() is not None
        following = await (self._unknown() if state is JobState.UNKNOWN else self._watch.step())
        return _sooner(following, self._outbox.remaining()) if self._leftovers else following

    async def _open(self) -> float:
        """Make the adapter ready; seconds until the next try where it is not."""
        parts = self._parts
        if wait := self._opening.remaining():
            return wait
        try:
            session = await parts.adapter.open(parts.binding.session)
            faultpoint.hit("adapter.open.after")
        except AdapterUnusable as error:
            return self._closed(str(error), error.code)
        except Exception as error:
            parts.log.exception("adapter did not open")
            return self._closed(f"the adapter could not be opened: {error!r}", "refused")
        self._opening.succeeded()
        parts.situation.adapter_error = parts.situation.adapter_code = None
        if session is not None and session != parts.binding.session:
            await parts.write(bindings.change, session=session)
            parts.binding = parts.binding.evolve(session=session)
        self._opened = True
        return 0

    def _closed(self, why: str, code: str) -> float:
        situation = self._parts.situation
        situation.adapter_error, situation.adapter_code = why, code
        self._parts.log.warning("adapter unusable", extra={"why": why, "code": code})
        return self._opening.failed()

    # From the queue to the agent.

    async def _choose(self) -> float | None:
        """Hand over the next job, where one may run. Seconds until the next try."""
        situation = self._parts.situation
        ready = situation.lease is LeaseState.HELD and situation.reconciled and situation.foreign_run is None
        if situation.stopping or not ready:
            return None
        if wait := max(self._refusals.remaining(), self._begin.remaining()):
            return wait
        situation.retry_at = None
        await self._expire()
        following = await self._parts.journal.read(jobs.next_queued)
        situation.paused = following.paused
        return None if following.job is None else await self._hand_over(following.job)

    async def _expire(self) -> None:
        """Let go of what expired in the queue, by the hub's word, since its clock decides."""
        parts = self._parts
        if parts.boot() < self._expire_at:
            return
        self._expire_at = parts.boot() + EXPIRE_SECONDS
        for job in await parts.journal.read(jobs.expired, parts.now()):
            try:
                delivery = (await parts.hub.message(job.message)).get("delivery") or {}
            except (HubAway, HubError):
                return
            if delivery.get("stage") == Stage.EXPIRED:
                with contextlib.suppress(TransitionError):  # it was withdrawn meanwhile
                    await parts.write(jobs.move, job.id, JobEvent.EXPIRE, at=parts.now(), who="hub", why="it expired")

    async def _hand_over(self, job: Job) -> float:
        begin = await self._handover.begin(job)
        if begin is Begin.LATER:
            return self._put_off()
        self._begin.succeeded()
        if begin is Begin.ENDED:
            return 0
        handed = await self._handover.call(job)
        if handed is None:
            return 0
        if handed.job is None:
            return self._wait_after(handed.answer)
        self._hand.take(handed.job)
        if handed.answer is None:
            await self._lost(handed.why)
        elif isinstance(handed.answer, Refused):
            await self._refused(handed.answer)
        else:
            self._refusals.succeeded()
            self._parts.situation.refused = None
            self._watch.accepted(handed.answer)
        return 0

    async def _lost(self, why: str) -> None:
        """The hand-over broke: unless there is proof at once, nobody can know what came of it."""
        await self._inquiry.now(lost=why, within=AT_ONCE_SECONDS)
        if self.job is None:
            self._wait_after(Refused(scope=Scope.BINDING, reason=f"it certainly did not start: {why}"))

    def _put_off(self) -> float:
        situation = self._parts.situation
        error = self._handover.later
        code = getattr(error, "code", None)
        why = error.sentence if error is not None else "the hand-over was put off"
        situation.last_error = why
        self._parts.log.warning("begin put off", extra={"why": why, "code": code})
        if getattr(error, "status", None) == 401:
            situation.unauthorized = True
        if code == "fenced":
            situation.lease = LeaseState.LAPSED
        if code in {"fenced", "run_unresolved"}:
            self._parts.lease_in_doubt.set()
        return self._begin.failed(after=getattr(error, "retry_after", None))

    async def _refused(self, refused: Refused) -> None:
        if refused.scope is Scope.JOB:
            await self._hand.finish(results.Ending(outcome=Outcome.FAILED, text="", error=refused.reason))
            return
        self._wait_after(refused)
        queued = await self._hand.requeue(JobEvent.REFUSED, who="adapter", why=refused.reason)
        await self._handover.close_run(queued)

    def _wait_after(self, refused: Accepted | Refused | None) -> float:
        """Back off, and show why; seconds until the next try."""
        situation, now = self._parts.situation, self._parts.now()
        after = refused.retry_at - now if isinstance(refused, Refused) and refused.retry_at is not None else None
        wait = self._refusals.failed(after=after)
        situation.refused = refused.reason if isinstance(refused, Refused) else None
        situation.refused_code = refused.code if isinstance(refused, Refused) else None
        situation.retry_at = now + wait
        return wait

    # From the agent to the hub.

    async def _post(self) -> float | None:
        job = self._hand.held()
        if await self._outbox.post(job) is Posted.LATER:
            return self._outbox.remaining()
        faultpoint.hit("adapter.recorded.before")
        await self._parts.adapter.recorded(f"{job.id}.{job.attempt}")
        faultpoint.hit("adapter.recorded.after")
        self._hand.take(None)
        return 0

    async def _tell(self, wait: float | None) -> float | None:
        """Tell the requester once that the outcome is unknown."""
        if self._hand.held().notified:
            return wait
        if not await self._outbox.notify(self._hand.held()):
            return self._outbox.remaining()
        await self._hand.note(notified=True)
        return 0

    async def _unknown(self) -> float | None:
        """Tell of it, and look now and then for proof that turns up later."""
        memory, now = self._hand.memory, self._parts.boot()
        if now >= memory.look_again_at:
            memory.look_again_at = now + self._inquiry.look()
        return await self._tell(memory.look_again_at - now)

    # What people want; called between two steps.

    async def cancel(self, job_id: str, who: str) -> Job:
        """Cancel a job: at once where it is queued, by an interrupt where it runs.

        Raises:
            RelayError: there is no such job, it has ended, or its outcome is unknown and it is for a person to settle.
        """
        parts = self._parts
        cancelled = await parts.write(settle.cancel, job_id, channel=parts.binding.channel, who=who, at=parts.now())
        if self._hand.job is not None and self._hand.job.id == job_id:
            self._hand.job = cancelled
        else:
            self._leftovers = True
        return cancelled

    async def decided(self) -> None:
        """Go on from what another part has changed in the journal on a person's word."""
        self._leftovers = True
        await self.reload()

    async def post_again(self) -> None:
        """Mend what a restored hub has lost: the subscription, and results; tried until the hub could be asked."""
        try:
            found = await mend(self._parts)
        except (HubAway, HubError) as error:
            wait = self._mending.failed(after=getattr(error, "retry_after", None))
            self._parts.log.info("mending put off", extra={"why": error.sentence, "retry_in": round(wait, 1)})
            self._start(self._post_again_in(wait), "post again")
            return
        self._mending.succeeded()
        if found:
            self._parts.log.warning("results posted again", extra={"count": found})

    async def _post_again_in(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self.post(self.post_again)

    def hub_is_back(self) -> None:
        """The lease was taken anew: what waited for the hub is tried at once."""
        self._outbox.retry_now()
        self._begin.succeeded()

    async def reload(self) -> None:
        """Read binding and job in flight again, after another part changed them; try again at once."""
        parts = self._parts
        changed = await parts.journal.read(bindings.get)
        if changed is not None:
            position = {"cursor": parts.binding.cursor, "watermark": parts.binding.watermark}
            parts.binding = changed.evolve(**position)
            parts.adapter.rebind(parts.adapter_binding())
        job = await parts.journal.read(jobs.in_flight)
        if job is None or self.job is None or job.id != self.job.id or job.attempt != self.job.attempt:
            self._hand.take(job)
        else:
            self._hand.job = job
        self._refusals.succeeded()
        self.hub_is_back()

    def stop_hand(self) -> None:
        """Interrupt the job at the agent, because the receiver stops."""
        if self.job is not None and self.job.state in AT_THE_AGENT:
            self._hand.memory.stopped = True
            self._watch.interrupt()


def _sooner(one: float | None, other: float | None) -> float | None:
    known = [delay for delay in (one, other) if delay is not None]
    return min(known) if known else None
