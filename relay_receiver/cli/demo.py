"""`relay demo`: the main job, live, in under a minute, with a hub, a person and two agents of its own."""

import asyncio
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import click

from relay_receiver.cli import output
from relay_receiver.cli.demo_world import PERSON, Sent, World, until
from relay_receiver.receiver import verbs
from relay_receiver.testing import agent_program
from relay_receiver.wire.errors import RelayError

WORK_SECONDS = 3
"""How long the job takes in whose middle the receiver is killed."""


@click.command()
@click.option("--adapter", type=click.Choice(["command", "codex"]), default="command", help="What the agents are.")
@click.option("--keep", is_flag=True, help="Leave it running, to look around.")
def demo(adapter: str, keep: bool) -> None:  # noqa: FBT001 - click passes flags so
    """See it work, with a hub and two agents of its own."""
    folder = Path(tempfile.mkdtemp(prefix="relay-demo-"))
    os.environ["RELAY_HOME"] = str(folder / "home")
    os.environ.pop("RELAY_PROFILE", None)
    world = World(folder / "home", adapter)
    story = Story(world)
    try:
        asyncio.run(story.play(keep=keep))
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    held = all(story.checks.values())
    value = {"held": held, "checks": story.checks, "seconds": round(time.monotonic() - story.began, 1)}
    last = (
        "Everything held."
        if held
        else "NOT everything held: " + "; ".join(name for name, good in story.checks.items() if not good)
    )
    output.emit(value, last)
    click.get_current_context().exit(0 if held else 1)


class Story:
    """What is shown, step by step; `checks` has each promise that was looked at, and whether it held."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.checks: dict[str, bool] = {}
        self.began = time.monotonic()
        self._stream = sys.stderr if output.as_json() else sys.stdout

    def say(self, line: str = "") -> None:
        """Tell a person what happens, with the time since the start."""
        at = f"{time.monotonic() - self.began:5.1f} s  " if line else ""
        self._stream.write(f"{at}{line}\n")
        self._stream.flush()

    def head(self, title: str) -> None:
        """Begin a chapter."""
        self.say()
        self._stream.write(f"== {title}\n")

    def check(self, promise: str, *, held: bool) -> None:
        """Look at a promise."""
        self.checks[promise] = held
        self.say(f"{'held' if held else 'NOT HELD'}: {promise}")

    async def play(self, *, keep: bool) -> None:
        """Play all chapters; what cannot be played did not hold."""
        try:
            await self._set_up()
            async with self.world.watched():
                await self._request()
                await self._killed()
                await self._chain()
        except (RelayError, TimeoutError, OSError) as error:
            self.check(f"the demo went on to its end ({error})", held=False)
        finally:
            if keep:
                self._look_around()
            else:
                await self.world.close()

    async def _set_up(self) -> None:
        self.head("A hub, a person, two agents")
        await self.world.open()
        self.say(f"A hub runs at {self.world.url}. You are its owner, in the channel lab.")
        for name in ("ada", "bob"):
            await self.world.join(name)
            what = "a Codex" if self.world.adapter == "codex" else "a small program"
            self.say(f"{name} joined with a single-use code; a receiver runs {what} for it.")

    async def _request(self) -> None:
        self.head("A request and its result")
        sent = await self.world.ask("bob", "count the words: once in at most once into the agent once out")
        self.say("You asked bob to count some words.")
        stage = await self.world.ended(sent)
        results = await self.world.results(sent)
        self.say("Its stages, after it was stored: " + _stages(sent) + ".")
        if results:
            self.say(f"bob answered: {results[0]['content']}")
        self.check("one request, one result", held=stage == "answered" and len(results) == 1)

    async def _killed(self) -> None:
        self.head("The receiver is killed in the middle of a job")
        text = f"work for {WORK_SECONDS} seconds"
        if self.world.adapter == "codex":
            text = f"Run the shell command `sleep {WORK_SECONDS}`, once, and then say that it is done."
        before = len(agent_program.starts(self.world.directory("bob")))
        sent = await self.world.ask("bob", text)
        self.say(f"You asked bob for something that takes {WORK_SECONDS} seconds.")
        await until(lambda: self._at_work("bob"), what="the start of the job")
        pid = await self.world.kill("bob")
        self.say(f"Receiver process {pid} of bob got SIGKILL. Its keeper holds on to the job.")
        await self.world.start("bob")
        self.say("A new receiver was started; it found the job in its journal and attached to it again.")
        stage = await self.world.ended(sent)
        results = await self.world.results(sent)
        starts = len(agent_program.starts(self.world.directory("bob"))) - before
        if self.world.adapter == "command":
            self.say(f"The program's own log of starts, written with fsync, has {starts} new line.")
            self.check("the job ran once", held=starts == 1)
        self.check("it was answered once", held=stage == "answered" and len(results) == 1)

    async def _at_work(self, name: str) -> bool:
        job = (await self.world.status(name))["job"]
        return job is not None and job["state"] == "running"

    async def _chain(self) -> None:
        self.head("Two agents give each other work, until that pauses")
        text = "pass this on to bob"
        if self.world.adapter == "codex":
            text = (
                "Use the relay tool `send` to send bob the request 'pass this on to ada, in the same way'. Say: done."
            )
        await self.world.ask("ada", text)
        self.say("You asked ada to pass something on to bob, who passes it on to ada, who ...")
        paused = await until(self._paused, what="the pause")
        sent_by_agents = [m for m in await self.world.messages() if m["kind"] == "request" and m["authorId"] != "human"]
        self.say(f"After {len(sent_by_agents)} requests between agents {paused} is paused; what waits there is kept.")
        self.check("the chain paused by itself", held=True)
        waiting = await self._queued(paused)
        mine = await self.world.ask(paused, "count the words: a person goes first", kind="message")
        self.say(f"You wrote a message to {paused}.")
        await until(lambda: self._moved_on(paused, waiting), what="the end of the pause")
        order = [job for job in await self._done(paused) if job["message"] in {mine.id, *waiting}]
        first = min(order, key=lambda job: job["submittedAt"] or "~")["message"] if order else None
        self.say("It was taken first, and the work that had waited went on after it.")
        self.check("a person goes first and resumes the chain", held=first == mine.id)

    async def _paused(self) -> str | None:
        for name in self.world.agents:
            if (await self.world.status(name))["chain"]["paused"]:
                return name
        return None

    async def _queued(self, name: str) -> set[str]:
        jobs = await asyncio.to_thread(verbs.jobs, self.world.agents[name])
        return {job["message"] for job in jobs["jobs"] if job["state"] == "queued"}

    async def _done(self, name: str) -> list[dict[str, str]]:
        jobs = await asyncio.to_thread(verbs.jobs, self.world.agents[name])
        return [job for job in jobs["jobs"] if job["state"] == "done"]

    async def _moved_on(self, name: str, waiting: set[str]) -> bool:
        return waiting <= {job["message"] for job in await self._done(name)}

    def _look_around(self) -> None:
        self.head("It is left running")
        for line in (
            f"export RELAY_HOME={self.world.home}",
            f"relay status --profile {PERSON}",
            f"relay messages list --profile {PERSON}",
            "relay receiver status --profile bob",
            "relay receiver jobs --profile bob",
            f"relay messages send --profile {PERSON} --to bob --wait --content 'count the words: one two three'",
            "To end it: relay receiver stop --profile ada; relay receiver stop --profile bob; relay hub stop",
        ):
            self._stream.write(f"  {line}\n")


def _stages(sent: Sent) -> str:
    return ", ".join(f"{stage} {at * 1000:.0f} ms" for stage, at in sorted(sent.stages.items(), key=lambda s: s[1]))
