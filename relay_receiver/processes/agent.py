"""An agent on stdio under a keeper: numbered lines both ways, and a receiver that comes back to the same place."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from relay_receiver.processes.command import KeeperLost
from relay_receiver.processes.ending import End, end_child
from relay_receiver.processes.kept import LOOK_SECONDS, Kept
from relay_receiver.processes.launch import ANSWER_SECONDS, Launcher, Line, Order, connect, started
from relay_receiver.processes.spool import quarantine

DYING_SECONDS = 10.0
"""A keeper that was killed lets go of its connections this long, at the most, before it is gone."""
EOF_SECONDS = 5.0
"""How long an agent may take to end after EOF, before it is killed."""


class AgentRefused(Exception):  # noqa: N818 - it says what happened
    """The agent's program certainly did not start. `code` is the name of the errno."""

    def __init__(self, reason: str, code: str) -> None:
        super().__init__(reason)
        self.code = code


class AgentEnded(Exception):  # noqa: N818 - it says what happened
    """The agent's program has ended, after the last of its lines."""

    def __init__(self, *, exit: int | None, signal: int | None, stderr_tail: str, overflow: bool) -> None:  # noqa: A002 - its name
        super().__init__(f"it ended with {f'signal {signal}' if signal else f'exit status {exit}'}")
        self.exit = exit
        self.signal = signal
        self.stderr_tail = stderr_tail
        self.overflow = overflow

    @classmethod
    def of(cls, end: End) -> "AgentEnded":
        """As the keeper wrote it down."""
        return cls(
            exit=end.exit,
            signal=end.signal,
            stderr_tail=end.stderr.decode("utf-8", "replace"),
            overflow=end.overflow,
        )


class Displaced(Exception):  # noqa: N818 - it says what happened
    """Another receiver attached."""


@dataclass(frozen=True, slots=True)
class SpoolLine:
    """One line of the spool; `direction` is `in` (to the agent) or `out`."""

    number: int
    direction: str
    data: bytes

    @classmethod
    def parse(cls, record: bytes) -> Self:
        """Read a record of the spool.

        Raises:
            ValueError: it is none.
        """
        number, direction, data = record.split(b" ", 2)
        return cls(int(number), direction.decode("ascii"), data)


class KeptAgent:
    """An agent's program, as long as this receiver is attached to it."""

    def __init__(
        self, line: Line | None, *, key: str, spool: Path, identity: str, after: int = 0, last: int = 0
    ) -> None:
        self._line = line
        self._key = key
        self._spool = spool
        self._sent: dict[int, asyncio.Future[int]] = {}
        self._ids = itertools.count(1)
        self.identity = identity
        self._after = after
        self._over = False
        self.position = last
        """The number of the last line that is known to be in the spool."""

    @classmethod
    async def start(
        cls,
        launcher: Launcher,
        *,
        key: str,
        argv: Sequence[str],
        environment: Mapping[str, str],
        directory: Path,
        spool: Path,
        runtime: Path,
    ) -> "KeptAgent":
        """Start the program under a keeper of its own.

        Raises:
            AgentRefused: it certainly did not start.
            KeeperLost: the keeper died before it said so.
            LauncherLost: nothing was started.
        """
        order = Order(
            kind="agent", key=key, argv=argv, environment=environment, directory=directory, spool=spool, runtime=runtime
        )
        if (answer := await started(launcher, order)) is None:
            raise KeeperLost(f"the keeper of {key} ended before it said whether its program started")
        line, told = answer
        if told["t"] == "started":
            return cls(line, key=key, spool=spool, identity=told["identity"])
        await line.close()
        raise AgentRefused(told["reason"], told["code"])

    @classmethod
    async def attach(cls, key: str, spool: Path, runtime: Path, after: int) -> "KeptAgent | None":
        """Come back to a program that was started before, from the line after that number on.

        Where program and keeper have ended, what they left is read from the spool, and its end comes after it.
        None where there is nothing of it: never started, the keeper died without an end, or it does not answer.
        """
        until = time.monotonic() + ANSWER_SECONDS
        while True:
            kept = Kept.read(spool, key)
            dead = kept is None or kept.keeper_gone()
            line = await connect(runtime, key)
            if line is not None:
                with contextlib.suppress(ConnectionError):
                    await line.say(op="attach", after=after)
                    if (told := await line.answer("attached")) is not None:
                        last = int(told["last"])
                        return cls(line, key=key, spool=spool, identity=told["identity"], after=after, last=last)
                await line.close()
            if End.read(spool, key) is not None:
                return cls(None, key=key, spool=spool, identity="", after=after)
            if dead or time.monotonic() > until:
                return None
            await asyncio.sleep(LOOK_SECONDS)

    async def send(self, line: bytes) -> int:
        """Say one line (without its newline) to the agent; its number, once it is in the spool.

        Raises:
            ConnectionError: the keeper is gone: whether the agent got the line is unknown.
            ValueError: it is more than one line.
        """
        if b"\n" in line:
            raise ValueError("only one line is sent at a time")
        if self._line is None or self._over:
            raise ConnectionError("the agent has ended")
        number = next(self._ids)
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._sent[number] = done
        try:
            await self._line.say(op="send", line=line.decode("utf-8", "surrogateescape"), id=number)
            sent = await done
            self.position = max(self.position, sent)
            return sent
        finally:
            self._sent.pop(number, None)

    async def lines(self) -> AsyncIterator[SpoolLine]:
        """Every line of both directions, in order. Somebody must read them for `send` to return.

        Raises:
            AgentEnded: after the last line of a program that has ended.
            Displaced: another receiver attached.
            KeeperLost: the keeper died.
        """
        try:
            while self._line is not None and (told := await self._line.hear()) is not None:
                if isinstance(told, bytes):
                    line = SpoolLine.parse(told)
                    self._after = line.number
                    self.position = max(self.position, line.number)
                    yield line
                elif told["t"] == "displaced":
                    raise Displaced
                elif told["t"] == "sent":
                    self._was_sent(told)
                else:
                    break
            if (end := End.read(self._spool, self._key)) is None:
                raise await self._lost()
            for line in self._spooled():
                yield line
            raise AgentEnded.of(end)
        finally:
            self._over = True
            for waiting in self._sent.values():
                if not waiting.done():
                    waiting.set_exception(ConnectionError("the keeper of the agent is gone"))

    async def _lost(self) -> Exception:
        """Why a connection broke before the end: another receiver attached, or the keeper died."""
        kept = Kept.read(self._spool, self._key)
        if kept is None or await kept.ends(within=DYING_SECONDS):
            return KeeperLost(f"the keeper of {self._key} died, and left no end")
        return Displaced()

    def _was_sent(self, told: dict[str, Any]) -> None:
        waiting = self._sent.get(told["id"])
        if waiting is not None and not waiting.done():
            waiting.set_result(told["n"])

    def _spooled(self) -> list[SpoolLine]:
        """Lines of the file that were not heard; half a line at its end is none."""
        path = self._spool / f"{self._key}.lines"
        found = []
        try:
            *records, _ = path.read_bytes().split(b"\n")
            for record in records:
                line = SpoolLine.parse(record)
                self.position = max(self.position, line.number)
                if line.number > self._after:
                    found.append(line)
        except FileNotFoundError:
            return []
        except ValueError:
            quarantine(path)
        return found

    async def cut(self, through: int) -> None:
        """Drop lines up to that number: their turn is recorded."""
        if self._line is not None:
            with contextlib.suppress(ConnectionError):
                await self._line.say(op="cut", through=through)

    async def end(self, grace: float = EOF_SECONDS) -> None:
        """EOF, then TERM of the group after the grace, then KILL. `lines` tells when it is gone; so does `gone`."""
        if self._line is not None:
            with contextlib.suppress(ConnectionError):
                await self._line.say(op="end", grace=grace)

    async def detach(self) -> None:
        """Let go; the agent runs on under its keeper."""
        if self._line is not None:
            await self._line.close()


async def gone(key: str, *, spool: Path, grace: float) -> bool:
    """See that nothing of an agent lives, where its keeper is dead: ends what is left. True once it is so."""
    kept = Kept.read(spool, key)
    if kept is None:
        return True
    if not kept.keeper_gone():
        return False
    return await asyncio.to_thread(end_child, kept, grace=grace)
