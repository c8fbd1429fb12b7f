"""The connection to one `codex app-server` under its keeper: calls, their answers, and every line in order."""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Callable, Coroutine
from typing import Any

from relay_receiver.adapters import jsonrpc
from relay_receiver.adapters.jsonrpc import JSON, Fault, Message, Reply
from relay_receiver.processes.agent import AgentEnded, KeptAgent

CALL_SECONDS = 60.0
"""How long an answer of the app-server is waited for; what takes longer is not in its calls but in turns."""
END_GRACE_SECONDS = 5.0

_QUIET = (
    "command/exec/outputDelta",
    "item/agentMessage/delta",
    "item/commandExecution/outputDelta",
    "item/fileChange/outputDelta",
    "item/fileChange/patchUpdated",
    "item/plan/delta",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/textDelta",
    "thread/readState/changed",
    "turn/diff/updated",
)
"""Notices that only repeat in pieces what a later one says whole; without them the spool stays small."""

log = logging.getLogger(__name__)

Heard = Callable[[int, str, Message | None, int], None]
"""Takes a line's number, its direction (`in` went to Codex, `out` came from it), its message and its bytes."""


class ServerEnded(Exception):  # noqa: N818 - it says what happened
    """The app-server is gone, and with it the call. `unsent`: certainly no byte of it left."""

    def __init__(self, words: str, *, unsent: bool = False) -> None:
        super().__init__(words)
        self.unsent = unsent


class AppServer:
    """One attached app-server. `heard` is called for every line, in order, before an answer reaches its caller."""

    def __init__(self, agent: KeptAgent, heard: Heard, gone: Callable[[AgentEnded], None]) -> None:
        self._agent = agent
        self._heard = heard
        self._gone = gone
        self._life = secrets.token_hex(4)
        self._count = 0
        self._pending: dict[str, asyncio.Future[Reply]] = {}
        self._replay = agent.position
        self._caught_up = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._reader: asyncio.Task[None] | None = None
        self.ended: AgentEnded | None = None
        self.version = ""

    @property
    def keeper(self) -> str:
        """Identity of the keeper, as JSON."""
        return self._agent.identity

    @property
    def position(self) -> int:
        """The number of the last line in the spool."""
        return self._agent.position

    def read(self) -> None:
        """Begin to read; with a living app-server the lines of before come first."""
        if self._replay == 0:
            self._caught_up.set()
        self._reader = asyncio.create_task(self._read(), name="codex reader")

    async def caught_up(self) -> None:
        """Wait until the lines of before were heard, or there are no more."""
        await self._caught_up.wait()

    def beside(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run `work` beside the reader, until it is done or the connection is let go."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def initialize(self) -> None:
        """Introduce this client; an app-server that knows it already says so."""
        params: JSON = {
            "clientInfo": {"name": "relay-receiver", "title": "Relay Receiver", "version": "1"},
            "capabilities": {"experimentalApi": True, "optOutNotificationMethods": list(_QUIET)},
        }
        try:
            answer = await self.call("initialize", params)
        except Fault as fault:
            if "Already initialized" not in fault.message:
                raise
        else:
            self.version = str(answer.get("userAgent", ""))
            await self.send(jsonrpc.notice("initialized"))

    async def call(self, method: str, params: JSON, *, within: float = CALL_SECONDS) -> JSON:
        """Call a method and wait for its result.

        Raises:
            Fault: it was answered with an error.
            ServerEnded: the app-server ended first.
            TimeoutError: no answer in time.
        """
        name, line = self.prepare(method, params)
        future = self.expect(name)
        try:
            await self.send(line)
            async with asyncio.timeout(within):
                answer = await future
        finally:
            self._pending.pop(name, None)
        if answer.fault is not None:
            raise answer.fault
        return answer.result if isinstance(answer.result, dict) else {}

    def prepare(self, method: str, params: JSON) -> tuple[str, bytes]:
        """A call's id, unique over all lives of the receiver, and its line."""
        self._count += 1
        name = f"{self._life}.{self._count}"
        return name, jsonrpc.call(name, method, params)

    def expect(self, name: str) -> asyncio.Future[Reply]:
        """What the answer to the call `name` will be given to."""
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        if self.ended is not None:
            future.set_exception(ServerEnded(how_it_ended(self.ended)))
        self._pending[name] = future
        return future

    async def send(self, line: bytes) -> int:
        """Hand a line to the keeper; its number in the spool.

        Raises:
            ServerEnded: the app-server or its keeper is gone.
        """
        if self.ended is not None:
            raise ServerEnded(how_it_ended(self.ended), unsent=True)
        try:
            return await self._agent.send(line)
        except AgentEnded as ended:
            raise ServerEnded(how_it_ended(ended)) from ended
        except OSError as error:
            raise ServerEnded(str(error)) from error

    async def cut(self, through: int) -> None:
        """Drop the lines up to `through` from the spool."""
        with contextlib.suppress(AgentEnded, OSError):
            await self._agent.cut(through)

    async def close(self, *, detach: bool) -> None:
        """Let go; without `detach` the app-server and all of its group is ended."""
        for task in (*self._tasks, self._reader):
            if task is not None:
                task.cancel()
        await asyncio.gather(*self._tasks, *([self._reader] if self._reader else []), return_exceptions=True)
        if detach and self.ended is None:
            await self._agent.detach()
        else:
            await self._agent.end(END_GRACE_SECONDS)

    async def _read(self) -> None:
        try:
            async for line in self._agent.lines():
                self._take(line.number, line.direction, line.data)
        except AgentEnded as ended:
            self.ended = ended
        except Exception as error:
            log.exception("the connection to the keeper failed")
            self.ended = AgentEnded(exit=None, signal=None, stderr_tail=str(error), overflow=False)
        if self.ended is not None:
            self._fail(self.ended)

    def _take(self, number: int, direction: str, data: bytes) -> None:
        message = jsonrpc.parse(data)
        try:
            self._heard(number, direction, message, len(data))
        except Exception:
            log.exception("a line of the app-server was not understood")
        if direction == "out" and isinstance(message, Reply):
            future = self._pending.pop(str(message.id), None)
            if future is not None and not future.done():
                future.set_result(message)
        if number >= self._replay:
            self._caught_up.set()

    def _fail(self, ended: AgentEnded) -> None:
        for future in self._pending.values():
            if not future.done():
                future.set_exception(ServerEnded(how_it_ended(ended)))
        self._pending.clear()
        self._caught_up.set()
        self._gone(ended)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s failed", task.get_name(), exc_info=error)


def how_it_ended(ended: AgentEnded) -> str:
    """How it ended, for a person."""
    if ended.overflow:
        return "the Codex app-server wrote more than the bound and was ended"
    how = f"was ended by signal {ended.signal}" if ended.signal else f"ended with exit code {ended.exit}"
    last = ended.stderr_tail.strip().splitlines()[-1:] if ended.stderr_tail else []
    return f"the Codex app-server {how}" + (f" ({last[0]})" if last else "")
