"""Decisions of people that come from the hub: applied once, between two steps of the runner, and answered.

What a decision does and its outcome are one transaction. It is refused where the situation that it meant is over.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relay_receiver.client.errors import HubAway, HubError
from relay_receiver.jobs.job import Job
from relay_receiver.jobs.state import AT_THE_AGENT, JobState
from relay_receiver.jobs.transitions import TransitionError
from relay_receiver.journal import chain, controls, jobs
from relay_receiver.journal.controls import Control
from relay_receiver.journal.journal import Connection
from relay_receiver.receiver import leftovers, settle
from relay_receiver.receiver.backoff import Ladder
from relay_receiver.receiver.parts import Parts
from relay_receiver.receiver.runner import Runner
from relay_receiver.receiver.situation import LeaseState
from relay_receiver.wire import faultpoint
from relay_receiver.wire.errors import RelayError

CONTROL = "receiver.control"
DONE, REFUSED = "done", "refused"
SENTENCE_CHARS = 1000
TELL_CEILING = 60.0
"""Seconds between tries to tell the hub an outcome, at the most."""
_OVER = frozenset({403, 404, 409})
"""The hub does not want to know: it has another outcome, or has lost the decision."""


def understood(data: object, *, agent: str, channel: str, at: float) -> Control | None:
    """The decision that an event tells of; None where it is about another receiver.

    Raises:
        ValueError, KeyError, TypeError: it is none.
    """
    told = data["control"] if isinstance(data, Mapping) else None
    if not isinstance(told, Mapping):
        raise ValueError("the event has no decision in it")  # noqa: TRY004 - what an event lacks is one error
    if told["agent"] != agent or told["channel"] != channel:
        return None
    arguments, outcome = told["arguments"], told.get("outcome")
    if not isinstance(arguments, dict) or not told["id"]:
        raise ValueError("the decision has no arguments")
    return Control(
        id=str(told["id"]),
        action=str(told["action"]),
        arguments=json.dumps(arguments),
        by_id=str(told["by"]["id"]),
        by_name=str(told["by"]["name"]),
        at=at,
        outcome=None if outcome is None else DONE if outcome == DONE else REFUSED,
        sentence=None if outcome is None else str(told.get("sentence")),
    )


def found_in(events: Sequence[Mapping[str, Any]], parts: Parts) -> list[Control]:
    """The decisions about this receiver in a batch of events; what cannot be read is logged and passed over."""
    found = []
    for event in events:
        if event.get("type") == CONTROL:
            with _passing_over(parts, event.get("id")):
                me = parts.binding
                found.append(understood(event.get("data"), agent=me.agent, channel=me.channel, at=parts.now()))
    return [each for each in found if each is not None]


@contextlib.contextmanager
def _passing_over(parts: Parts, number: object) -> Any:  # noqa: ANN401 - a generator
    try:
        yield
    except (ValueError, KeyError, TypeError) as error:
        parts.log.warning("decision not understood", extra={"number": number, "why": repr(error)})


def store(conn: Connection, found: Sequence[Control]) -> None:
    """Store decisions, in the transaction of the cursor that they came with."""
    for each in found:
        controls.arrive(conn, each)


def apply(conn: Connection, wanted: str, *, channel: str, at: float) -> Control | None:
    """Do what a person decided, and record what became of it; nothing where that happened before."""
    found = controls.get(conn, wanted)
    if found is None or found.outcome is not None:
        return None
    try:
        with conn.begin_nested():
            sentence = _ACTIONS[found.action](conn, found, channel=channel, at=at)
        outcome = DONE
    except RelayError as error:
        outcome, sentence = REFUSED, error.sentence
    except (TransitionError, LookupError, TypeError, ValueError) as error:
        outcome, sentence = REFUSED, f"This receiver does not understand the decision: {error}."
    controls.end(conn, wanted, outcome=outcome, sentence=sentence[:SENTENCE_CHARS])
    return controls.get(conn, wanted)


def _settle(conn: Connection, found: Control, *, channel: str, at: float) -> str:
    said = found.given
    job, verb = _meant(conn, said), settle.Verb(said["verb"])
    settle.settle(
        conn,
        job.id,
        verb,
        channel=channel,
        text=said.get("text"),
        reason=said.get("reason"),
        who=found.who,
        at=at,
    )
    match verb:
        case settle.Verb.ACCEPT:
            return "It counts as done; its result is posted."
        case settle.Verb.ABANDON:
            return "It is given up; the requester is told."
        case settle.Verb.RETRY:
            return f"It is run again, as attempt {job.attempt + 1}."


def _cancel(conn: Connection, found: Control, *, channel: str, at: float) -> str:
    job = settle.cancel(conn, _meant(conn, found.given).id, channel=channel, who=found.who, at=at)
    if job.state in AT_THE_AGENT:
        return "The agent is asked to stop; what that comes to is shown on the request."
    return "It is cancelled; the agent had not begun it."


def _resume(conn: Connection, found: Control, *, channel: str, at: float) -> str:  # noqa: ARG001 - as every action
    if found.given.get("pause") != chain.pause(conn):
        raise RelayError("The pause that was meant is over: agents' jobs were let go on since.", code="not_paused")
    if not jobs.next_queued(conn).paused:
        raise RelayError("No agents' jobs are paused here now.", code="not_paused")
    chain.resume(conn, at=at, who=found.who)
    return "Agents' jobs go on."


_ACTIONS: dict[str, Callable[..., str]] = {"settle": _settle, "cancel": _cancel, "resume": _resume}


def _meant(conn: Connection, said: Mapping[str, Any]) -> Job:
    """The job that a decision names, where it is still at the attempt that the person saw."""
    job = jobs.get(conn, str(said["job"]))
    if job is None:
        raise RelayError(f"There is no job {said['job']} here.", code="unknown_job")
    if job.attempt != said["attempt"]:
        sentence = f"Job {job.id} is at attempt {job.attempt} now; attempt {said['attempt']} was meant."
        raise RelayError(sentence, code="other_attempt")
    return job


class Controls:
    """Applies what has arrived and tells the hub what became of it; waits for news, and does nothing meanwhile."""

    def __init__(self, parts: Parts, runner: Runner) -> None:
        self._parts = parts
        self._runner = runner
        self._news = asyncio.Event()
        self._ask = False
        self._ladder = Ladder(parts.boot, ceiling=TELL_CEILING)

    def look(self) -> None:
        """Something has arrived."""
        self._news.set()

    def ask_hub(self) -> None:
        """Ask the hub what waits, where the lease is held.

        The events that told of it may be gone or older than this journal; or the hub has lost what it was told.
        """
        self._ask = True
        self._news.set()

    async def run(self) -> None:
        """Work until cancelled; begins with what a process before this one left."""
        self._news.set()
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                await self._look()
            except (HubAway, HubError) as error:
                wait = self._ladder.failed(after=getattr(error, "retry_after", None))
                self._parts.log.info("decisions put off", extra={"why": error.sentence, "retry_in": round(wait, 1)})
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._news.wait()
                self._news.set()
            else:
                self._ladder.succeeded()

    async def _look(self) -> None:
        while found := await self._parts.journal.read(controls.untold):
            for each in found:
                if each.outcome is None:
                    await self._runner.ask(lambda each=each: self._apply(each))  # type: ignore[misc]  # bound at once
            for each in await self._parts.journal.read(controls.untold):
                if each.outcome is not None:
                    await self._tell(each)
        if self._ask:
            await self._asked()

    async def _apply(self, found: Control) -> None:
        """Called between two steps of the runner."""
        parts, channel = self._parts, self._parts.binding.channel
        if found.action == "settle":
            await self._end_leftovers(found)
        faultpoint.hit("control.apply.before")
        done = await parts.write(apply, found.id, channel=channel, at=parts.now())
        if done is None:
            return
        parts.log.info("decided", extra={"control": done.id, "who": done.who, "outcome": done.outcome})
        await self._runner.decided()
        parts.lease_in_doubt.set()

    async def _end_leftovers(self, found: Control) -> None:
        """What an unknown job left running is ended before it is settled; where it cannot be, that is refused."""
        parts = self._parts
        job = await parts.journal.read(jobs.get, str(found.given.get("job")))
        if job is None or job.state is not JobState.UNKNOWN or job.attempt != found.given.get("attempt"):
            return
        try:
            await leftovers.end_beside(parts, job, who=found.who)
        except RelayError as error:
            sentence = error.sentence[:SENTENCE_CHARS]
            await parts.write(controls.end, found.id, outcome=REFUSED, sentence=sentence)

    async def _tell(self, found: Control) -> None:
        parts = self._parts
        try:
            await parts.hub.tell_control(found.id, outcome=found.outcome or REFUSED, sentence=found.sentence or "")
        except HubError as error:
            if error.status not in _OVER:
                raise
            parts.log.warning("outcome of a decision not taken", extra={"control": found.id, "why": error.sentence})
        await parts.write(controls.tell, found.id)

    async def _asked(self) -> None:
        """Store what waits at the hub. What is known here already is not applied again; its outcome is told again.

        Without the lease it may be for another machine's receiver of this agent: it is asked again with the lease.
        """
        parts, me = self._parts, self._parts.binding
        self._ask = False
        if parts.situation.lease is not LeaseState.HELD:
            return
        try:
            waiting = await parts.hub.controls(channel=me.channel, agent=me.agent, waiting=True)
        except HubError as error:
            if error.status == 404:  # a hub that knows no decisions
                return
            self._ask = True
            raise
        except HubAway:
            self._ask = True
            raise
        found = found_in([{"type": CONTROL, "data": {"control": each}} for each in reversed(waiting)], parts)
        if found:
            await parts.write(store, found)
            self._news.set()
