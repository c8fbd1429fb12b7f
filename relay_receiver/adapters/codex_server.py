"""The connection to one `codex app-server` under its keeper: calls, their answers, and every line in order."""

import asyncio
import logging
import re
import secrets
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from relay_receiver.adapters import jsonrpc
from relay_receiver.adapters.jsonrpc import JSON, Call, Fault, Message, Reply
from relay_receiver.processes.agent import AgentEnded, Displaced, KeptAgent
from relay_receiver.processes.command import KeeperLost

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

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")

log = logging.getLogger(__name__)

Heard = Callable[[int, str, Message | None, int], None]
"""Takes a line's number, its direction (`in` went to Codex, `out` came from it), its message and its bytes."""


class ServerEnded(Exception):  # noqa: N818 - it says what happened
    """The app-server is gone, and with it the call. `unsent`: certainly no byte of it left."""

    def __init__(self, words: str, *, unsent: bool = False) -> None:
        super().__init__(words)
        self.unsent = unsent


@dataclass(frozen=True, kw_only=True, slots=True)
class Gone:
    """How an app-server went."""

    words: str
    """A clause for a person."""
    overflow: bool = False
    """It said more than one job may."""


class AppServer:
    """One attached app-server. `heard` is called for every line, in order, before an answer reaches its caller."""

    def __init__(self, agent: KeptAgent, heard: Heard, gone: Callable[[Gone], None]) -> None:
        self._agent = agent
        self._heard = heard
        self._on_gone = gone
        self._life = secrets.token_hex(4)
        self._count = 0
        self._pending: dict[str, asyncio.Future[Reply]] = {}
        self._caught_up = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._reader: asyncio.Task[None] | None = None
        self.gone: Gone | None = None

    @property
    def keeper(self) -> str:
        """Identity of the keeper, as JSON; empty where it has ended."""
        return self._agent.identity

    def read(self) -> None:
        """Begin to read; of one that was attached to, the lines of before come first."""
        self._reader = asyncio.create_task(self._read(), name="codex reader")

    async def caught_up(self) -> None:
        """Wait until every line of before this process spoke was heard, or there are no more."""
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
            await self.call("initialize", params)
        except Fault as fault:
            if "Already initialized" not in fault.message:
                raise
        else:
            await self.send(jsonrpc.notice("initialized"))

    async def call(self, method: str, params: JSON, *, within: float = CALL_SECONDS) -> JSON:
        """Call a method and wait for its result.

        Raises:
            Fault: it was answered with an error.
            ServerEnded: the app-server ended first.
            TimeoutError: no answer in time.
        """
        name, line = self.prepare(method, params)
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._pending[name] = future
        try:
            async with asyncio.timeout(within):
                await self.send(line)
                answer = await future
        finally:
            self._pending.pop(name, None)
            future.cancel()
        if answer.fault is not None:
            raise answer.fault
        return answer.result if isinstance(answer.result, dict) else {}

    def prepare(self, method: str, params: JSON) -> tuple[str, bytes]:
        """A call's id, unique over all lives of the receiver, and its line."""
        self._count += 1
        name = f"{self._life}.{self._count}"
        return name, jsonrpc.call(name, method, params)

    async def send(self, line: bytes) -> None:
        """Hand a line to the keeper.

        Raises:
            ServerEnded: the app-server or its keeper is gone.
        """
        if self.gone is not None:
            raise ServerEnded(self.gone.words, unsent=True)
        try:
            await self._agent.send(line)
        except OSError as error:
            raise ServerEnded(f"the Codex app-server is gone ({error})") from error

    async def cut(self, through: int) -> None:
        """Drop the lines up to `through` from the spool."""
        await self._agent.cut(through)

    async def close(self, *, detach: bool) -> None:
        """Let go; without `detach` the app-server and all of its group is ended."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._reader is not None:
            if not detach and self.gone is None:
                await self._agent.end(END_GRACE_SECONDS)
                await asyncio.wait({self._reader}, timeout=2 * END_GRACE_SECONDS)
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        await self._agent.detach()

    async def _read(self) -> None:
        try:
            async for line in self._agent.lines():
                self._take(line.number, line.direction, line.data)
        except AgentEnded as ended:
            self.gone = _how(ended)
        except Displaced:
            self.gone = Gone(words="another receiver took over the Codex app-server")
        except KeeperLost:
            self.gone = Gone(words="the keeper of the Codex app-server died")
        gone = self.gone or Gone(words="the connection to the Codex app-server broke")
        self.gone = gone
        for future in self._pending.values():
            if not future.done():
                future.set_exception(ServerEnded(gone.words))
        self._caught_up.set()
        self._on_gone(gone)

    def _take(self, number: int, direction: str, data: bytes) -> None:
        message = jsonrpc.parse(data)
        try:
            self._heard(number, direction, message, len(data))
        except Exception:
            log.exception("a line of the app-server was not understood")
        if direction == "in" and isinstance(message, Call) and str(message.id).startswith(f"{self._life}."):
            self._caught_up.set()
        if direction == "out" and isinstance(message, Reply):
            future = self._pending.get(str(message.id))
            if future is not None and not future.done():
                future.set_result(message)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s failed", task.get_name(), exc_info=error)


def _how(ended: AgentEnded) -> Gone:
    if ended.overflow:
        return Gone(words="the Codex app-server said more than 20 MiB and was ended", overflow=True)
    if ended.signal:
        return Gone(words=f"the Codex app-server was ended by signal {ended.signal}")
    last = _COLOUR.sub("", ended.stderr_tail).strip().splitlines()[-1:] if ended.exit else []
    return Gone(
        words=f"the Codex app-server ended with exit code {ended.exit}" + "".join(f" ({line[:200]})" for line in last)
    )
