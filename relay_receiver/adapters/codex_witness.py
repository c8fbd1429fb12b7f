"""What our own record of a hand-over and Codex's record of the thread prove together."""

import time

from relay_receiver.adapters import codex_recovery
from relay_receiver.adapters.base import Binding, NeverStarted, Recovery, Work
from relay_receiver.adapters.codex_ledger import Ledger, codex_home, identity_of
from relay_receiver.adapters.codex_reference import Reference
from relay_receiver.adapters.codex_server import AppServer
from relay_receiver.adapters.codex_thread import Thread
from relay_receiver.adapters.codex_turn import Turn
from relay_receiver.processes import identity


class Witness:
    """Writes the record before each hand-over, and looks at both records after a death."""

    def __init__(self, binding: Binding, ledger: Ledger, thread: Thread) -> None:
        self._binding = binding
        self._ledger = ledger
        self._thread = thread
        self._boot_before = ledger.boot
        """The boot of the record that was there when this process began; empty where there was none."""

    def rebind(self, binding: Binding) -> None:
        """Take changed settings."""
        self._binding = binding

    def write_down(self, key: str, *, keeper: str, since: int) -> None:
        """Record that this attempt is about to be handed over.

        Args:
            since: the number of the spool line before it.

        Raises:
            OSError: it could not be written.
        """
        ledger = self._ledger
        ledger.keeper, ledger.key, ledger.turn, ledger.position = keeper, key, {}, since
        ledger.boot, ledger.before = identity.boot_id(), self._thread.last
        ledger.home = identity_of(codex_home(self._binding.environment))
        ledger.save()

    async def judge(self, server: AppServer, turn: Turn) -> Recovery:
        """The recovery table, with a fresh look at Codex's own record."""
        ledger = self._ledger
        lost = turn.thread == self._thread.lost
        turn.started = turn.started or bool(self._binding.evidence.get("started"))
        look = codex_recovery.Look(
            turn=turn,
            turns=None if lost else await self._thread.turns(server, turn.thread),
            lost=lost,
            before=ledger.before,
            recorded=ledger.present and ledger.key == turn.key,
            same_boot=ledger.boot == identity.boot_id(),
            same_home=ledger.home == identity_of(codex_home(self._binding.environment)),
        )
        return codex_recovery.judge(look, now=time.time())

    async def judge_unrecorded(self, server: AppServer, execution: str | None, work: Work) -> Recovery:
        """An attempt that is not the one in hand."""
        ledger = self._ledger
        if execution is None and ledger.key != work.key and self._boot_before == identity.boot_id():
            return NeverStarted(proof="the record that is written before a hand-over was not written")
        reference = Reference.parse(execution)
        turn = Turn(key=work.key, thread=reference.thread or self._thread.id, id=reference.turn)
        if ledger.key == work.key:
            turn.restore(ledger.turn)
        return await self.judge(server, turn)
