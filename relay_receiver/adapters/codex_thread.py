"""The one thread of a binding: started or resumed as the binding says, and what runs on it."""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relay_receiver.adapters.base import AdapterUnusable, Binding
from relay_receiver.adapters.codex_ledger import Ledger
from relay_receiver.adapters.codex_server import AppServer
from relay_receiver.adapters.jsonrpc import JSON, Fault, Message, Notice

APPROVAL = "on-request"
SANDBOX = "workspace-write"
REVIEWER = "user"

TOOLS = "relay"
TOOL_START_SECONDS = 30
WRITER_TRIES = 10
WRITER_SECONDS = 0.5
"""Tries, and seconds between them, while an app-server that just ended still holds the thread."""

log = logging.getLogger(__name__)


class Thread:
    """Knows the thread's id, the turn that runs on it, and the last one."""

    def __init__(self, binding: Binding, ledger: Ledger) -> None:
        self._binding = binding
        self._ledger = ledger
        self.lost: str | None = None
        """A thread that Codex has no record of, and that never had a turn: replaced by a new one."""
        self.running: str | None = None
        self.last: str | None = None
        self._tools = asyncio.Event()

    @property
    def id(self) -> str:
        """The thread's id; empty before there is one."""
        return self._ledger.thread or ""

    def rebind(self, binding: Binding) -> None:
        """What is compared with the effective settings from the next load on."""
        self._binding = binding

    def heard(self, message: Message | None) -> None:
        """Take a line from Codex: turns that begin and end, and whether its tools are there."""
        if isinstance(message, Notice) and message.method == "mcpServer/startupStatus/updated":
            if message.params.get("name") == TOOLS and message.params.get("status") != "starting":
                self._tools.set()
            return
        if not isinstance(message, Notice) or message.params.get("threadId") != self.id:
            return
        turn = message.params.get("turn")
        name = turn.get("id") if isinstance(turn, dict) else None
        if message.method == "turn/started":
            self.running = self.last = name
        elif message.method == "turn/completed" and name == self.running:
            self.running = None

    async def load(self, server: AppServer, session: str | None) -> None:
        """Have a fresh app-server load the thread of `session`, or a new one.

        Raises:
            AdapterUnusable: it is lost, someone else drives it, or it does not run as the binding says.
        """
        await self._signed_in(server)
        ours = session is not None and session in {self._ledger.session, self._ledger.thread}
        known = self._ledger.thread if ours else session
        self.running = None
        self._tools.clear()
        answer = None if known is None else await self._resume(server, known)
        fresh = answer is None
        if answer is None:
            answer = await self._call(server, "thread/start", self._wanted())
        self._compare(answer)
        thread = answer["thread"]
        if fresh:
            self.lost = known
        self._ledger.session, self._ledger.thread = session, str(thread["id"])
        turns = () if fresh else await self.turns(server, self.id) or ()
        self._ledger.worked = bool(turns)
        self._ledger.save()
        self.last = turns[-1]["id"] if turns else None
        await self._tools_are_there()

    async def _tools_are_there(self) -> None:
        """Wait for the tools: Codex begins a turn without those that still start, and its model never hears of them."""
        if not self._binding.settings.get("tools"):
            return
        try:
            async with asyncio.timeout(TOOL_START_SECONDS):
                await self._tools.wait()
        except TimeoutError:
            log.warning("the tools of relay did not start within %d s: Codex works without them", TOOL_START_SECONDS)

    async def is_loaded(self, server: AppServer) -> bool:
        """Whether a living app-server has the thread; it was compared when it was loaded."""
        if not self.id:
            return False
        try:
            answer = await server.call("thread/read", {"threadId": self.id, "includeTurns": False})
        except Fault:
            return False
        status = answer.get("thread", {}).get("status", {}).get("type")
        return status in {"idle", "active", "systemError"}

    async def turns(self, server: AppServer, thread: str) -> list[JSON] | None:
        """The turns of a thread with all their items; None where Codex cannot read them."""
        try:
            answer = await server.call("thread/read", {"threadId": thread, "includeTurns": True})
        except Fault as fault:
            log.info("the turns of thread %s cannot be read: %s", thread, fault.message)
            return None
        found = answer.get("thread", {}).get("turns")
        return [turn for turn in found if isinstance(turn, dict)] if isinstance(found, list) else None

    def _wanted(self) -> JSON:
        return {
            "cwd": str(self._binding.directory),
            "approvalPolicy": APPROVAL,
            "approvalsReviewer": REVIEWER,
            "sandbox": SANDBOX,
        }

    async def _resume(self, server: AppServer, thread: str) -> JSON | None:
        """The answer to the resume; None where the thread was lost before its first turn."""
        params = {"threadId": thread, "excludeTurns": True, **self._wanted()}
        for tries_left in reversed(range(WRITER_TRIES)):
            try:
                return await server.call("thread/resume", params)
            except Fault as fault:
                if "no rollout found" in fault.message:
                    if self._ledger.worked or thread != self._ledger.thread:
                        raise AdapterUnusable(
                            f"Codex has lost the thread {thread} of this binding ({fault.message}): "
                            "`relay receiver configure --new-session` begins a new one.",
                            "session_lost",
                        ) from fault
                    return None
                if "active writer" not in fault.message:
                    raise AdapterUnusable(f"Codex does not resume its thread: {fault.message}.", "refused") from fault
                if not tries_left:
                    raise AdapterUnusable(
                        f"Another program drives the Codex thread {thread} of this binding: close it there.", "busy"
                    ) from fault
            await asyncio.sleep(WRITER_SECONDS)
        return None

    async def _signed_in(self, server: AppServer) -> None:
        answer = await self._call(server, "account/read", {})
        if answer.get("requiresOpenaiAuth") and answer.get("account") is None:
            raise AdapterUnusable("Codex is not signed in: run `codex login`.", "unauthorized")

    async def _call(self, server: AppServer, method: str, params: JSON) -> JSON:
        try:
            return await server.call(method, params)
        except Fault as fault:
            raise AdapterUnusable(f"Codex refuses {method}: {fault.message}.", "refused") from fault

    def _compare(self, answer: Mapping[str, Any]) -> None:
        """Refuse to run where Codex would not run as the binding says."""
        sandbox = answer.get("sandbox")
        sandbox = sandbox if isinstance(sandbox, dict) else {}
        cwd = answer.get("cwd")
        network = bool(self._binding.settings.get("network"))
        pairs = (
            ("the sandbox", sandbox.get("type"), "workspaceWrite"),
            ("the network", sandbox.get("networkAccess"), network),
            ("the approval policy", answer.get("approvalPolicy"), APPROVAL),
            ("the reviewer of approvals", answer.get("approvalsReviewer"), REVIEWER),
            ("the directory", cwd and str(Path(cwd).resolve()), str(self._binding.directory.resolve())),
        )
        for what, found, wanted in pairs:
            if found != wanted:
                raise AdapterUnusable(
                    f"Codex would run with {what} {found!r} instead of {wanted!r}: "
                    "its own settings or a policy of the machine forbid it.",
                    "refused",
                )
