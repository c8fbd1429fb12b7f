"""The three acts of the demo. Each shows one thing, and checks that it held."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relay_receiver.processes import identity
from relay_receiver.processes.identity import Life
from relay_receiver.testing.demo_channel import messages, results, stages
from relay_receiver.testing.demo_stage import Stage
from relay_receiver.testing.demo_words import LAST
from relay_receiver.wire.errors import RelayError
from relay_receiver.wire.stage import ENDS


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was to hold, and whether it did."""

    what: str
    held: bool


async def request_and_result(stage: Stage) -> list[Check]:
    """A request, its stages and its result."""
    asked = await stage.send("--to", "bob", content=stage.cast.words.add(17, 25))
    seen = await _end(stage, asked["id"])
    found = results(stage.channel.events, asked["id"])
    names = [each["stage"] for each in seen]
    return [
        Check("the request was answered, and by one result", names[-1] == "answered" and len(found) == 1),
        Check("the answer is right: 42", any("42" in each["content"] for each in found)),
        Check(
            "its stages were shown, in their order",
            [name for name in names if name != "running"] == ["received", "starting", "answered"],
        ),
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
        lambda events: _last_of_chain(events, first["id"]), what="the end of the counting", seconds=LAST * seconds
    )
    if held["chain"]["hop"] != LAST - 1:
        raise RelayError(f"they counted to {held['chain']['hop'] + 1}, not to {LAST}")
    status = await _paused(stage)
    paused = bool(status["chain"]["paused"])
    waits = not results(stage.channel.events, held["id"])
    stage.say(f"  alice's chain is {'paused' if paused else 'not paused'}: {status['queue']['queued']} request waits.")
    mine = await stage.send("--mention", "alice", content=words.aside())
    for message in (mine, held):
        await _answered(stage, message["id"])
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


async def _answered(stage: Stage, message: str) -> None:
    """Wait for the answer to a message."""
    await stage.channel.until(
        lambda events: results(events, message) or None, what="alice's answer", seconds=stage.cast.patience
    )


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


def _last_of_chain(events: Sequence[dict[str, Any]], root: str) -> dict[str, Any] | None:
    """The request with the last number, or the one before which the agents stopped: all are answered."""
    asked = list(_chain(messages(events), root))
    over = asked and (asked[-1]["chain"]["hop"] == LAST - 1 or all(results(events, each["id"]) for each in asked))
    return asked[-1] if over else None


def _chain(said: Sequence[dict[str, Any]], root: str) -> Iterator[dict[str, Any]]:
    return (each for each in said if each["kind"] == "request" and each["chain"]["root"] == root)


def _process(line: str) -> identity.ProcessIdentity | None:
    """The process that wrote a line of the demo's own agent; None for another agent's."""
    try:
        started: Mapping[str, Any] = json.loads(line)
        return identity.identify(int(started["pid"]))
    except (ValueError, LookupError, TypeError):
        return None


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
