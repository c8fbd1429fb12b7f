"""`relay notify`: run a command of one's own for each thing that needs this person, each once."""

import asyncio
import contextlib
import json
import random
import secrets
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import click

from relay_receiver.cli import needs, output
from relay_receiver.cli.acting import Actor, profile
from relay_receiver.cli.options import DURATION, Command
from relay_receiver.jobs import backoff
from relay_receiver.processes import files, hook
from relay_receiver.processes.hook import Hook
from relay_receiver.processes.lock import InstanceLock
from relay_receiver.wire import faultpoint
from relay_receiver.wire.errors import RelayError
from relay_receiver.wire.message import iso
from relay_receiver.wire.need import Need

STATE = "notify.json"
LOCK = "notify.lock"
SECONDS = 30.0
"""How long the command may take, unless told otherwise."""

Run = Callable[[bytes, str], Awaitable[str | None]]
"""Runs the command with an event and a nonce: None where it succeeded, else why not."""


@click.command(cls=Command)
@click.option(
    "--exec", "command", required=True, metavar="CMD", help="The command; it gets the event as JSON on stdin."
)
@click.option("--time", "limit", type=DURATION, default=SECONDS, metavar="30s", help="End the command after this time.")
@click.option("--env", multiple=True, metavar="NAME", help="Hand this variable on to the command. Repeatable.")
@click.option("--once", is_flag=True, help="Tell what waits now, then end. Exit status 1 if a command failed.")
@click.option("--seconds", type=DURATION, metavar="N", help="End after this time.")
@click.pass_context
def notify(
    ctx: click.Context,
    command: str,
    *,
    limit: float,
    env: tuple[str, ...],
    once: bool,
    seconds: float | None,
) -> None:
    """Run a command for each approval, question, unknown job and paused chain that needs you, each once.

    In the foreground, until Ctrl-C. What was told is remembered across restarts; a command that fails is tried again,
    at longer and longer intervals, for as long as the thing still needs you. No shell: --exec 'sh -c "..."' is one.
    """
    chosen = profile()
    who = needs.of_person(chosen)
    runs = Hook(argv=hook.parse(command), seconds=limit, env=env)
    lock = InstanceLock(files.private_dir(chosen.directory) / LOCK)
    if not lock.acquire():
        raise RelayError(
            f"relay notify runs already for the profile {chosen.name}.",
            code="already_running",
            hint="End that one first; two would tell you everything twice.",
        )
    try:
        lock.announce()
        memory = Memory.load(chosen.directory / STATE)
        memory.clear_away(limit)
        teller = Teller(
            memory, lambda event, nonce: hook.run(runs, event, nonce=nonce), profile=chosen.name, told=_told
        )
        ctx.exit(asyncio.run(_live(who, teller, once=once, seconds=seconds)))
    finally:
        lock.release()


@dataclass(kw_only=True, slots=True)
class Memory:
    """What was told, and what is being told: one private file, always whole, on the disk before it counts.

    Attributes:
        told: by the id of the need, when. Only of those that still wait: an id never comes back.
        telling: `{id, nonce}` of the command that may be running.
    """

    path: Path
    told: dict[str, str] = field(default_factory=dict)
    telling: dict[str, str] | None = None

    @classmethod
    def load(cls, path: Path) -> Self:
        """What is stored; a damaged file is put aside, and everything is told once more."""
        try:
            said = json.loads(files.read_private(path))
            told = {str(key): str(at) for key, at in said["told"].items()}
            telling = said.get("telling")
            return cls(path=path, told=told, telling={k: str(telling[k]) for k in ("id", "nonce")} if telling else None)
        except FileNotFoundError:
            return cls(path=path)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            path.replace(path.with_name(f"{path.name}.damaged"))
            needs.warn(f"{path} was damaged and is put aside; what needs you now is told again.")
            return cls(path=path)

    def save(self) -> None:
        """Put it on the disk."""
        files.write_private(self.path, json.dumps({"told": self.told, "telling": self.telling}, indent=1).encode())

    def begin(self, need: str, nonce: str) -> None:
        """A command is about to run."""
        self.telling = {"id": need, "nonce": nonce}
        self.save()

    def end(self, need: str, *, done: bool, at: float) -> None:
        """It has run."""
        self.telling = None
        if done:
            self.told[need] = iso(at)
        self.save()

    def forget_but(self, waiting: Mapping[str, object]) -> None:
        """Forget what waits no longer."""
        kept = {key: at for key, at in self.told.items() if key in waiting}
        if len(kept) != len(self.told):
            self.told = kept
            self.save()

    def clear_away(self, limit: float) -> None:
        """Wait for a command that outlived an earlier process, so that two never run at once."""
        if self.telling is None:
            return
        if hook.left(self.telling["nonce"]):
            needs.warn(f"A command of before still runs; it is waited for, {limit:g} s at the most.")
        ended = hook.end_left(self.telling["nonce"], seconds=limit)
        if ended:
            needs.warn(f"It was ended: {', '.join(map(str, ended))}.")
        needs.warn(f"It is not known whether {self.telling['id']} was told; it is told again if it still needs you.")
        self.telling = None
        self.save()


@dataclass(kw_only=True, slots=True)
class _Failed:
    times: int
    due: float


class Teller:
    """Runs the command for what was not told yet, one at a time; what fails is tried again with back-off."""

    def __init__(
        self,
        memory: Memory,
        run: Run,
        *,
        profile: str,
        told: Callable[[Need], None],
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._memory, self._run, self._profile, self._told = memory, run, profile, told
        self._clock, self._now = clock, now
        self._waiting: dict[str, Need] = {}
        self._seen = False
        """Before the first look it is not known what waits no longer."""
        self._failed: dict[str, _Failed] = {}
        self.changed = asyncio.Event()

    def see(self, found: list[Need]) -> None:
        """Take what needs this person now."""
        self._waiting, self._seen = {each.id: each for each in found}, True
        self._failed = {key: each for key, each in self._failed.items() if key in self._waiting}
        self.changed.set()

    async def step(self) -> float | None:
        """Tell all that is due; the seconds until something is due again, None where nothing is."""
        self.changed.clear()
        if self._seen:
            self._memory.forget_but(self._waiting)
        while (need := self._due()) is not None:
            await self._tell(need)
        left = [each.due - self._clock() for key, each in self._failed.items() if key not in self._memory.told]
        return max(0.0, min(left)) if left else None

    @property
    def failing(self) -> bool:
        """Whether something could not be told yet."""
        return bool(self._failed)

    def _due(self) -> Need | None:
        """The next that is not told: as of now, since what needs a person changes while a command runs."""
        for key, need in self._waiting.items():
            failed = self._failed.get(key)
            if key not in self._memory.told and (failed is None or failed.due <= self._clock()):
                return need
        return None

    async def _tell(self, need: Need) -> None:
        nonce = secrets.token_hex(16)
        event = {**need.to_json(), "profile": self._profile}
        self._memory.begin(need.id, nonce)
        faultpoint.hit("notify.run.before")
        wrong = await self._run(json.dumps(event, ensure_ascii=False).encode() + b"\n", nonce)
        faultpoint.hit("notify.run.after")
        self._memory.end(need.id, done=wrong is None, at=self._now())
        faultpoint.hit("notify.told")
        if wrong is None:
            self._failed.pop(need.id, None)
            self._told(need)
            return
        times = self._failed[need.id].times + 1 if need.id in self._failed else 1
        wait = backoff.delay(times, jitter=random.random())  # noqa: S311 - spreads load
        self._failed[need.id] = _Failed(times=times, due=self._clock() + wait)
        needs.warn(f"The command failed for {need.id}: {wrong}. It is run again in {wait:.0f} s (try {times + 1}).")


def _told(need: Need) -> None:
    if output.as_json():
        output.write_json({"told": need.id, "at": iso(time.time())}, sys.stdout)
    else:
        sys.stdout.write(output.line(f"told: {need.line()}") + "\n")
        sys.stdout.flush()


async def _live(who: Actor, teller: Teller, *, once: bool, seconds: float | None) -> int:
    """Tell until ended; the exit code."""
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    if once:
        teller.see(await _look(who))
        await teller.step()
        return output.ERROR if teller.failing else output.DONE
    try:
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as tasks:
            tasks.create_task(needs.each_look(who, teller.see), name="look")
            tasks.create_task(_work(teller), name="tell")
    except (TimeoutError, asyncio.CancelledError):
        pass  # the time is up, or somebody ended it: both are its usual end
    except BaseExceptionGroup as group:
        refused, _ = group.split((RelayError, OSError))
        raise (group if refused is None else _first(refused)) from None
    return output.DONE


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first single error of a group."""
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


async def _work(teller: Teller) -> None:
    while True:
        wait = await teller.step()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await teller.changed.wait()


async def _look(who: Actor) -> list[Need]:
    from relay_receiver.client.needs import look

    return await who.converse(lambda hub: look(hub, who.id))
