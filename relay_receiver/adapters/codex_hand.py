"""The turn in hand at a living app-server: its end told once, its questions declined, its interrupt confirmed."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from relay_receiver.adapters import codex_outcome, codex_requests
from relay_receiver.adapters.base import AdapterEvent, Finished, Progress, Result
from relay_receiver.adapters.codex_server import AppServer, ServerEnded
from relay_receiver.adapters.codex_thread import Thread
from relay_receiver.adapters.codex_turn import Turn, answer
from relay_receiver.adapters.jsonrpc import Call, Fault

AGAIN_SECONDS = 0.02
"""Between tries to interrupt a turn that Codex has not begun yet."""
INTERRUPT_SECONDS = 10.0
"""How long Codex gets to confirm an interrupt."""
QUIET_SECONDS = 3.0
"""How long the commands of an interrupted turn get to end once they were told to."""
NOTE_SECONDS = 5.0
"""How long a note to the agent is waited for before the decline goes out without it."""

log = logging.getLogger(__name__)


class Hand:
    """One attempt, from the line that hands it over to its end."""

    def __init__(self, turn: Turn, tell: Callable[[AdapterEvent], None]) -> None:
        self.turn = turn
        self._tell = tell
        self.answered = asyncio.Event()
        """The answer to `turn/start` was heard, or it never will be."""
        self.over = asyncio.Event()
        """The end was told."""
        self.quiescent = asyncio.Event()
        """No command of the turn runs."""
        self.end: Finished | None = None

    def heard(self) -> None:
        """Look at the turn again after a line of it."""
        turn = self.turn
        if turn.id is not None or not turn.open:
            self.answered.set()
        (self.quiescent.clear if turn.commands else self.quiescent.set)()

    def finish(self, end: Finished) -> None:
        """Tell the end; the first one counts."""
        if self.end is None:
            self.end = replace(end, answered=tuple(self.turn.answered))
            self._tell(self.end)
        self.answered.set()
        self.over.set()

    async def conclude(self, server: AppServer, thread: Thread) -> None:
        """Find out what the ended turn came to, and tell it.

        Raises:
            ServerEnded, TimeoutError: the app-server could not be asked whether the turn really ended without a word.
        """
        ended = self.turn.ended or {}
        items: Sequence[Any] = ended.get("items") or ()
        if ended.get("status") == "completed" and answer(items) is None:
            items = await self._full_items(server, thread)
        if ended.get("status") == "interrupted" and self.turn.commands:
            with contextlib.suppress(ServerEnded, TimeoutError):
                await self._end_commands(server)
        self.finish(codex_outcome.finished(self.turn, ended, items, now=time.time()))

    async def decline(self, server: AppServer, request: Call, note: str = codex_requests.DECLINED) -> None:
        """Decline what was asked, with a note to the agent before it, once a turn; the turn goes on."""
        turn = self.turn
        if turn.open and turn.asks(request.params):
            self._tell(Progress(key=turn.key, note=f"declined: {codex_requests.describe(request)}"))
            if not turn.noted:
                turn.noted = True
                await self.note(server, note)
        with contextlib.suppress(ServerEnded):
            await server.send(codex_requests.decline(request))

    async def interrupt(self, server: AppServer) -> bool:
        """Ask for a stop. True once the turn has ended, however it did."""
        try:
            async with asyncio.timeout(INTERRUPT_SECONDS):
                await self.answered.wait()
                with contextlib.suppress(ServerEnded):
                    await self._ask_to_stop(server)
                await self.over.wait()
        except TimeoutError:
            return False
        return self.end is not None and self.end.result is not Result.UNKNOWN

    async def _ask_to_stop(self, server: AppServer) -> None:
        """Ask again while Codex has accepted the turn and not begun it: it then finds nothing to interrupt."""
        turn = self.turn
        while turn.open:
            turn.interrupting = True
            try:
                await server.call("turn/interrupt", {"threadId": turn.thread, "turnId": turn.id})
            except Fault:
                await asyncio.sleep(AGAIN_SECONDS)
            else:
                return

    async def _full_items(self, server: AppServer, thread: Thread) -> Sequence[Any]:
        """A turn that ended without a word is read whole once before that is believed."""
        for turn in reversed(await thread.turns(server, self.turn.thread) or ()):
            if turn.get("id") == self.turn.id:
                items: Sequence[Any] = turn.get("items") or ()
                return items
        return ()

    async def _end_commands(self, server: AppServer) -> None:
        """An interrupt leaves the commands of the turn running: they are ended where Codex offers that."""
        try:
            await server.call("thread/backgroundTerminals/clean", {"threadId": self.turn.thread})
            async with asyncio.timeout(QUIET_SECONDS):
                await self.quiescent.wait()
        except Fault as fault:
            log.info("commands of an interrupted turn are not ended: %s", fault.message)

    async def note(self, server: AppServer, text: str) -> None:
        """Tell the agent something while Codex waits for an answer, so that it cuts nothing off."""
        params = {
            "threadId": self.turn.thread,
            "expectedTurnId": self.turn.id,
            "clientUserMessageId": self.turn.note_id,
            "input": [{"type": "text", "text": text}],
        }
        try:
            await server.call("turn/steer", params, within=NOTE_SECONDS)
        except (Fault, ServerEnded, TimeoutError) as error:
            log.info("the note to the agent was not taken: %s", error)
