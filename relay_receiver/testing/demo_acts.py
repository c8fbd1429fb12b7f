"""The three acts of the demo. Each shows one thing, and checks that it held."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from relay_receiver.processes import identity
from relay_receiver.processes.identity import Life
from relay_receiver.testing.demo_channel import messages, results, stages
from relay_receiver.testing.demo_stage import Stage
from relay_receiver.testing.demo_words import LAST
from relay_receiver.wire.errors import RelayError
from relay_receiver.wire.stage import ENDS

MEANINGS = {
    "stored": "the hub has it on its disk",
    "received": "bob's receiver has it in its journal",
    "starting": "the hub lets it run, this once",
    "running": "bob works",
    "answered": "the result is at the hub",
}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was to hold, and whether it did."""

    what: str
    held: bool


async def request_and_result(stage: Stage) -> list[Check]:
    """A request, its stages and its result."""
    asked = await stage.send("--to", "bob", content=stage.cast.words.add(17, 25))
    seen = await _end(stage, asked["id"])
    began = _seconds(asked["createdAt"])
    shown = [{"stage": "stored", "since": asked["createdAt"]}, *seen]
    for each in shown:
        name = each["stage"]
        passed = (_seconds(each["since"]) - began) * 1000
        stage.say(f"    {passed:6.0f} ms  {name:<9} {MEANINGS.get(name) or each.get('reason') or ''}")
    found = results(stage.channel.events, asked["id"])
    names = [each["stage"] for each in shown]
    return [
        Check("the request was answered, and by one result", names[-1] == "answered" and len(found) == 1),
        Check("the answer is right: 42", any("42" in each["content"] for each in found)),
        Check("it was received and started before it was answered", names[1:3] == ["received", "starting"]),
    ]


async def killed(stage: Stage) -> list[Check]:
    """A receiver killed in the middle of a job, and started again."""
    before = len(stage.starts("bob"))
    asked = await stage.send("--to", "bob", content=stage.cast.words.slow())
    line = await stage.started("bob", before=before)
    pid = int((await stage.status("bob"))["pid"])
    await stage.kill(pid)
    stage.say(f"  bob's agent has begun. bob's receiver (process {pid}): kill -9. It is gone.")
    if (agent := _process(line)) is not None:
        alive = identity.life(agent) is Life.ALIVE
        stage.say(f"  The agent (process {agent.pid}) {'works on under its keeper' if alive else 'has ended'}.")
    again = await stage.machine.relay("receiver", "start", as_="bob")
    stage.say(f"  A new receiver is ready (process {again['pid']}).")
    seen = await _end(stage, asked["id"])
    starts = stage.starts("bob")[before:]
    stage.say(f"  The agent's own log of starts has {len(starts)} new line{'' if len(starts) == 1 else 's'}.")
    attempts = [job["attempt"] for job in await stage.jobs("bob") if job["message"] == asked["id"]]
    return [
        Check("another process took over", int(again["pid"]) != pid),
        Check("the job ran once", len(starts) == 1 and attempts == [1]),
        Check(
            "the job was answered once",
            seen[-1]["stage"] == "answered" and len(results(stage.channel.events, asked["id"])) == 1,
        ),
    ]


async def chain(stage: Stage) -> list[Check]:
    """Two agents that give each other work until the chain pauses, and a person who goes first and resumes it."""
    words, seconds = stage.cast.words, stage.cast.patience
    first = await stage.send("--to", "alice", content=words.count("bob", me="alice"))
    held = await stage.channel.until(
        lambda events: _at_hop(messages(events), first["id"], LAST - 1),
        what=f"request {LAST} of the chain",
        seconds=LAST * seconds,
    )
    status = await _paused(stage)
    paused = bool(status["chain"]["paused"])
    waits = not results(stage.channel.events, held["id"])
    stage.say(f"  alice's chain is {'paused' if paused else 'not paused'}: {status['queue']['queued']} request waits.")
    mine = await stage.send("--mention", "alice", content=words.aside())
    for message in (mine, held):
        await stage.channel.until(
            lambda events, of=message["id"]: results(events, of) or None, what="an answer of alice", seconds=seconds
        )
    jobs = {job["message"]: job for job in await stage.jobs("alice")}
    hops = [said["chain"]["hop"] for said in _chain(messages(stage.channel.events), first["id"])]
    resumed = not (await stage.status("alice"))["chain"]["paused"]
    return [
        Check("each request carried one hop more than the one before", hops == list(range(LAST))),
        Check("the chain paused, and its request waited", paused and waits),
        Check(
            "the person's message went first, though it came later",
            jobs[mine["id"]]["event"] > jobs[held["id"]]["event"]
            and jobs[mine["id"]]["submittedAt"] < jobs[held["id"]]["submittedAt"],
        ),
        Check("that lifted the pause, and the chain went on to its end", resumed),
    ]


async def _end(stage: Stage, asked: str) -> list[dict[str, Any]]:
    """Wait for the end of a request and for its result; its stages."""

    def ended(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]] | None:
        seen = stages(events, asked)
        over = bool(seen) and seen[-1]["stage"] in {*ENDS, "unknown"}
        told = seen[-1]["stage"] != "answered" or results(events, asked) if seen else False
        return seen if over and told else None

    return await stage.channel.until(ended, what="the end of the request", seconds=stage.cast.patience)


async def _paused(stage: Stage) -> dict[str, Any]:
    """The status of alice's receiver once its chain is paused, or as it is when that does not happen."""
    end = time.monotonic() + stage.cast.patience
    while True:
        status = await stage.status("alice")
        if status["chain"]["paused"] or time.monotonic() > end:
            return status


def _at_hop(said: Sequence[dict[str, Any]], root: str, hop: int) -> dict[str, Any] | None:
    return next((each for each in _chain(said, root) if each["chain"]["hop"] == hop), None)


def _chain(said: Sequence[dict[str, Any]], root: str) -> Iterator[dict[str, Any]]:
    return (each for each in said if each["kind"] == "request" and each["chain"]["root"] == root)


def _process(line: str) -> identity.ProcessIdentity | None:
    """The process that wrote a line of the demo's own agent; None for another agent's."""
    try:
        started: Mapping[str, Any] = json.loads(line)
        return identity.identify(int(started["pid"]))
    except (ValueError, LookupError, TypeError):
        return None


def _seconds(iso: str) -> float:
    return datetime.fromisoformat(iso).timestamp()


ACTS = (
    ("A request and its result, with the time of every stage", request_and_result),
    ("A receiver is killed in the middle of a job, and started again", killed),
    ("Two agents give each other work until the chain pauses; a person's message goes first", chain),
)


async def play(stage: Stage) -> list[Check]:
    """Play every act; one that breaks off is a check that did not hold."""
    checks: list[Check] = []
    for number, (title, act) in enumerate(ACTS, start=1):
        stage.say(f"\n{number}. {title}")
        try:
            found = await act(stage)
        except RelayError as error:
            found = [Check(f"it went to its end: {error.sentence}", held=False)]
        for check in found:
            stage.say(f"  {'ok  ' if check.held else 'NOT '} {check.what}")
        checks += found
    return checks
