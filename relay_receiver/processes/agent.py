"""An agent on stdio under a keeper: numbered lines both ways, and a receiver that comes back to the same place."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relay_receiver.processes.command import KeeperLost
from relay_receiver.processes.ending import End, end_child, quarantine
from relay_receiver.processes.launch import Kept, Launcher, Line, Order, connect

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
        line = await launcher.launch(order)
        told = await line.hear()
        if told is None:
            raise KeeperLost(f"the keeper of {key} ended before it said whether its program started")
        if told["t"] == "refused":
            await line.close()
            raise AgentRefused(told["reason"], told["code"])
        return cls(line, key=key, spool=spool, identity=told["identity"])

    @classmethod
    async def attach(cls, key: str, spool: Path, runtime: Path, after: int) -> "KeptAgent | None":
        """Come back to a program that was started before, from the line after that number on.

        Where program and keeper have ended, what they left is read from the spool, and its end comes after it.
        None where there is nothing of it: never started, or the keeper died without an end.
        """
        line = await connect(runtime, key)
        if line is not None:
            with contextlib.suppress(ConnectionError):
                await line.say(op="attach", after=after)
                told = await line.hear()
                while told is not None and told["t"] != "attached":
                    told = await line.hear()
                if told is not None:
                    return cls(line, key=key, spool=spool, identity=told["identity"], last=told["last"])
            await line.close()
        if End.read(spool, key) is None:
            return None
        return cls(None, key=key, spool=spool, identity="", after=after)

    async def send(self, line: bytes) -> int:
        """Say one line (without its newline) to the agent; its number, once it is in the spool.

        Raises:
            ConnectionError: the keeper is gone: whether the agent got the line is unknown.
        """
        if self._line is None:
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
            if self._line is None:
                for line in self._spooled():
                    yield line
                end = End.read(self._spool, self._key)
                raise KeeperLost("the end cannot be read") if end is None else AgentEnded.of(end)
            while (told := await self._line.hear()) is not None:
                if told["t"] == "line":
                    self.position = max(self.position, told["n"])
                    yield SpoolLine(told["n"], told["d"], _bytes(told["line"]))
                else:
                    self._told(told)
            if (end := End.read(self._spool, self._key)) is not None:
                raise AgentEnded.of(end)
            raise KeeperLost(f"the keeper of {self._key} is gone")
        finally:
            for waiting in self._sent.values():
                if not waiting.done():
                    waiting.set_exception(ConnectionError("the keeper of the agent is gone"))

    def _told(self, told: dict[str, Any]) -> None:
        match told["t"]:
            case "sent":
                waiting = self._sent.get(told["id"])
                if waiting is not None and not waiting.done():
                    waiting.set_result(told["n"])
            case "displaced":
                raise Displaced
            case "ended":
                end = End.read(self._spool, self._key)
                raise KeeperLost("the end cannot be read") if end is None else AgentEnded.of(end)
            case _:
                pass

    def _spooled(self) -> list[SpoolLine]:
        path = self._spool / f"{self._key}.lines"
        found = []
        try:
            for record in path.read_bytes().split(b"\n"):
                if record:
                    number, direction, data = record.split(b" ", 2)
                    self.position = max(self.position, int(number))
                    if int(number) > self._after:
                        found.append(SpoolLine(int(number), direction.decode(), data))
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
        """EOF, then KILL of the group after the grace. `lines` tells when it is gone; so does `gone`."""
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


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
