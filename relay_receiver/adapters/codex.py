"""The codex adapter: one dedicated thread of `codex app-server` for each binding, under a keeper."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

from relay_receiver.adapters import (
    codex_launch,
    codex_outcome,
    codex_questions,
    codex_recovery,
    codex_requests,
    codex_start,
)
from relay_receiver.adapters.base import (
    Accepted,
    AdapterEvent,
    AdapterUnusable,
    Binding,
    Finished,
    HandoverLost,
    NeverStarted,
    Proofs,
    Recovery,
    Refused,
    Result,
    Scope,
    Started,
    StillRunning,
    Unprovable,
    Waiting,
    WaitOver,
    Work,
)
from relay_receiver.adapters.codex_asks import CannotShow
from relay_receiver.adapters.codex_hand import Hand
from relay_receiver.adapters.codex_ledger import Ledger
from relay_receiver.adapters.codex_questions import Questions
from relay_receiver.adapters.codex_reference import Reference
from relay_receiver.adapters.codex_server import CALL_SECONDS, AppServer, Gone, ServerEnded
from relay_receiver.adapters.codex_thread import Thread
from relay_receiver.adapters.codex_turn import Turn
from relay_receiver.adapters.codex_witness import Witness
from relay_receiver.adapters.jsonrpc import JSON, Call, Fault, Message, Notice
from relay_receiver.processes import identity
from relay_receiver.processes.launch import Launcher
from relay_receiver.wire import faultpoint

CUT_BYTES = 4 * 1024 * 1024
"""After so many bytes of lines a turn is written down as a snapshot, and its lines are cut."""
REOPEN_TRIES = 3
REOPEN_SECONDS = 2.0
"""Tries, and seconds between them, to ask a fresh app-server what became of a turn."""

log = logging.getLogger(__name__)


class CodexAdapter:
    """Runs jobs as turns of one Codex thread. What Codex asks of people waits for `answer`.

    Settings: `argv`, the Codex to run (`["codex"]` on PATH), `network` for the commands of jobs (closed), `tools`,
    whether jobs get `relay` as tools, `ask`, without which questions are declined with a note to the agent. A changed
    setting counts from the next turn on.
    """

    proves = Proofs(
        never_started=True,
        finished=True,
        survives_receiver=True,
        note="by Codex's own record of the thread; not across a restart of the machine",
    )
    long_lived = True

    def __init__(self, binding: Binding, launcher: Launcher) -> None:
        self._binding = binding
        self._launcher = launcher
        self._ledger = Ledger.load(binding.spool)
        self._thread = Thread(binding, self._ledger)
        self._witness = Witness(binding, self._ledger, self._thread)
        self._session: str | None = None
        self._server: AppServer | None = None
        self._hand: Hand | None = None
        self._events: asyncio.Queue[AdapterEvent | None] = asyncio.Queue()
        self._opening = asyncio.Lock()
        self._submitting = asyncio.Lock()
        self._questions = Questions()
        self._replaying = False
        self._position = 0
        self._uncut = 0
        self._settling: asyncio.Task[None] | None = None

    @classmethod
    def check(cls, binding: Binding) -> dict[str, Any]:
        """What can be known without a turn; see `codex_launch.check`."""
        return codex_launch.check(binding)

    def rebind(self, binding: Binding) -> None:
        """The next turn is begun as `binding` says, by a fresh app-server where that makes a difference."""
        self._binding = binding
        self._thread.rebind(binding)
        self._witness.rebind(binding)

    async def open(self, session: str | None) -> str | None:
        """Attach to the app-server that is there, or start one; have it load the thread of `session`."""
        self._session = session
        await self._ready()
        self._session = self._thread.id
        return self._session

    async def submit(self, work: Work) -> Accepted | Refused:
        """Begin a turn with the prompt, once."""
        async with self._submitting:
            if self._thread.running is not None and self._living():
                return Refused(scope=Scope.BINDING, reason="Codex still works on an earlier turn.", code="busy")
            try:
                server = await self._ready(anew=self._is_stale())
            except AdapterUnusable as error:
                return Refused(scope=Scope.BINDING, reason=str(error), code=error.code)
            return await self._hand_over(server, work)

    async def events(self) -> AsyncIterator[AdapterEvent]:
        """Everything that happens, in order; ends with `close`."""
        while (event := await self._events.get()) is not None:
            yield event

    async def answer(self, question: str, decision: Mapping[str, Any]) -> None:
        """Answer the pending call that asked exactly this."""
        server, hand = self._server, self._hand
        call = self._questions.take(question)
        if call is None or server is None or hand is None:
            log.info("an answer to a question that is not asked any more is not used: %s", question)
            return
        if (note := decision.get("note")) and hand.turn.open:
            await hand.note(server, str(note))
        try:
            await server.send(codex_questions.answer(call, decision))
        except ServerEnded as error:
            log.info("the answer did not reach Codex, whose turn has ended with it: %s", error)

    async def interrupt(self, execution: str) -> bool:
        """Interrupt the turn and wait for its end."""
        hand, server = self._hand, self._server
        if hand is None or server is None or Reference.parse(execution).turn not in {None, hand.turn.id}:
            return False
        return await hand.interrupt(server)

    async def recover(self, execution: str | None, work: Work) -> Recovery:
        """What the lines of the living app-server, or else Codex's own record, prove about the attempt."""
        server = await self._ready()
        hand = self._hand
        if hand is None or hand.turn.key != work.key:
            return await self._witness.judge_unrecorded(server, execution, work)
        turn = hand.turn
        if hand.end is None and turn.ended is not None:
            await hand.conclude(server, self._thread)
        if hand.end is None and server.keeper == self._ledger.keeper and turn.call is None:
            return NeverStarted(proof="the line that begins the turn was never given to Codex")
        if hand.end is None and server.keeper == self._ledger.keeper:
            return await self._recover_living(server, hand, execution)
        if hand.end is not None:
            return _as_recovery(hand.end)
        found = await self._witness.judge(server, turn)
        return replace(found, answered=tuple(turn.answered)) if isinstance(found, Finished) else found

    async def recorded(self, key: str) -> None:
        """The outcome is committed: the lines of the turn may go."""
        if self._ledger.key != key:
            return
        self._hand = None
        self._ledger.key, self._ledger.turn, self._ledger.position = "", {}, self._position
        try:
            self._ledger.save()
        except OSError as error:
            log.warning("the record of the hand-over could not be closed: %s", error)
            return
        if self._server is not None:
            self._uncut = 0
            await self._server.cut(self._position)

    async def close(self, *, detach: bool = False) -> None:
        """Let go of the app-server; without `detach` it is ended."""
        if self._settling is not None:
            self._settling.cancel()
            await asyncio.gather(self._settling, return_exceptions=True)
        server, self._server = self._server, None
        if server is not None:
            await server.close(detach=detach)
        self._events.put_nowait(None)

    # The app-server.

    def _living(self) -> bool:
        return self._server is not None and self._server.gone is None

    def _is_stale(self) -> bool:
        """Whether the binding changed since the app-server was started."""
        return self._ledger.launch != codex_launch.plan(self._binding).fingerprint

    async def _ready(self, *, anew: bool = False) -> AppServer:
        """The app-server with the thread loaded.

        Args:
            anew: end the one that is there first.
        """
        async with self._opening:
            server = self._server
            if server is not None and server.gone is None and not anew:
                return server
            self._server = None
            if server is not None:
                await server.close(detach=False)
            elif not anew:
                self._server = await self._attach()
            self._server = self._server or await self._start()
            for request in self._questions.pending():
                self._put(self._server, request)
            return self._server

    async def _attach(self) -> AppServer | None:
        """The app-server that a process before this one left with the keeper, its lines heard again."""
        ledger = self._ledger
        self._restore()
        self._questions.clear()
        server = await codex_start.attach(self._binding, after=ledger.position, heard=self._heard, gone=self._gone)
        if server is None:
            return None
        self._replaying = True
        server.read()
        try:
            await server.initialize()
            ours = self._session is not None and self._session in {ledger.session, ledger.thread}
            if ours and await self._take_over(server):
                return server
        except (ServerEnded, TimeoutError, Fault) as error:
            log.info("the app-server that was there is of no use: %s", error)
            await server.caught_up()
        except BaseException:
            await server.close(detach=True)
            raise
        finally:
            self._replaying = False
        await server.close(detach=False)
        return None

    async def _take_over(self, server: AppServer) -> bool:
        """Speak to an app-server that was attached to. False where it is to be replaced."""
        self._replaying = False
        if self._thread.running is None and (self._is_stale() or not await self._thread.is_loaded(server)):
            return False
        if self._hand is not None and self._hand.turn.ended is not None:
            server.beside(self._conclude(server, self._hand), "codex conclude")
        return True

    def _restore(self) -> None:
        """The turn in hand, as the record has it."""
        ledger = self._ledger
        if not ledger.key or self._hand is not None:
            return
        turn = Turn(key=ledger.key, thread=ledger.thread or "")
        turn.restore(ledger.turn)
        self._hand = Hand(turn, self._events.put_nowait)
        self._hand.heard()
        self._thread.running = turn.id

    async def _start(self) -> AppServer:
        launch = codex_launch.plan(self._binding)
        server = await codex_start.start(self._binding, launch, self._launcher, heard=self._heard, gone=self._gone)
        self._ledger.launch, self._ledger.server = launch.fingerprint, server.keeper
        self._ledger.position = self._position = self._uncut = 0
        if not self._ledger.key:
            self._ledger.boot = identity.boot_id()
        self._questions.clear()
        server.read()
        try:
            await server.initialize()
            await self._thread.load(server, self._session)
        except (ServerEnded, TimeoutError, Fault) as error:
            await server.close(detach=False)
            raise AdapterUnusable(f"Codex does not answer: {str(error) or 'not in time'}.", "refused") from error
        except BaseException:
            await server.close(detach=False)
            raise
        return server

    # The turn in hand.

    async def _hand_over(self, server: AppServer, work: Work) -> Accepted | Refused:
        turn = Turn(key=work.key, thread=self._thread.id)
        params: JSON = {
            "threadId": turn.thread,
            "clientUserMessageId": work.key,
            "input": [{"type": "text", "text": work.prompt}],
        }
        turn.call, line = server.prepare("turn/start", params)
        since = self._position
        try:
            faultpoint.hit("adapter.write-down.before")
            self._witness.write_down(work.key, keeper=server.keeper, since=since)
        except OSError as error:
            return Refused(scope=Scope.BINDING, reason=f"The hand-over could not be written down: {error}.")
        faultpoint.hit("adapter.write-down.after")
        hand = self._hand = Hand(turn, self._events.put_nowait)
        try:
            await server.send(line)
            faultpoint.hit("adapter.turn-start.sent")
        except ServerEnded as error:
            if error.unsent:
                self._hand = None
                return Refused(scope=Scope.BINDING, reason=f"Codex did not take it: {error}.")
        try:
            async with asyncio.timeout(CALL_SECONDS):
                await hand.answered.wait()
        except TimeoutError:
            raise HandoverLost("Codex did not answer when the turn was handed over.") from None
        if turn.merged:
            raise HandoverLost("Codex took the message into a turn that already ran.")
        if turn.refusal is not None:
            self._hand = None
            return codex_outcome.refused(turn, turn.refusal)
        faultpoint.hit("adapter.turn-start.answered")
        if turn.id is None:
            await hand.over.wait()
            if hand.end is not None and hand.end.refused is not None:
                return hand.end.refused
        return Accepted(execution=_reference(turn, since), keeper=server.keeper)

    def _heard(self, number: int, direction: str, message: Message | None, size: int) -> None:
        """Take one line, in order; of both directions, live or again."""
        self._position = number
        self._uncut += size
        hand = self._hand
        if direction == "in":
            self._over(self._questions.sent(message, None if hand is None else hand.turn))
            if hand is not None:
                hand.turn.sent(message, self._thread.last)
            return
        proven = hand is not None and hand.turn.started
        events = () if hand is None else hand.turn.heard(message)
        self._tell(*events)
        self._thread.heard(message)
        self._heard_of_questions(message)
        if hand is None:
            return
        if hand.turn.ended is not None:
            self._over(*self._questions.dropped(hand.turn))
        hand.heard()
        self._ledger.worked = self._ledger.worked or hand.turn.ended is not None
        if self._replaying:
            return
        if isinstance(message, Notice) and message.method == "turn/completed" and hand.turn.ended is not None:
            if self._server is not None:
                self._server.beside(self._conclude(self._server, hand), "codex conclude")
        elif not self._questions and (proven is not hand.turn.started or self._uncut > CUT_BYTES):
            self._snapshot(hand.turn)

    # What it asks.

    def _heard_of_questions(self, message: Message | None) -> None:
        if isinstance(message, Call):
            self._questions.asked(message)
            if not self._replaying and self._server is not None:
                self._put(self._server, message)
        elif isinstance(message, Notice) and message.method == "serverRequest/resolved":
            self._over(self._questions.resolved(message))

    def _put(self, server: AppServer, request: Call) -> None:
        """Put it to people, or decline it: what nobody is asked, and what is of no turn in hand."""
        hand = self._hand or Hand(Turn(key="", thread=""), self._events.put_nowait)
        note = codex_requests.DECLINED
        if self._binding.settings.get("ask") and hand.turn.open and hand.turn.asks(request.params):
            try:
                self._events.put_nowait(self._questions.put(request, hand.turn))
            except CannotShow as why:
                note = codex_requests.not_shown(str(why))
            else:
                return
        server.beside(hand.decline(server, request, note), "codex decline")

    def _over(self, *waits: Waiting | None) -> None:
        self._tell(*(WaitOver(key=wait.key, question=wait.question) for wait in waits if wait is not None))

    def _tell(self, *events: AdapterEvent) -> None:
        """Say what happens; what happened before this process is found by `recover`."""
        if not self._replaying:
            for event in events:
                self._events.put_nowait(event)

    async def _conclude(self, server: AppServer, hand: Hand) -> None:
        try:
            await hand.conclude(server, self._thread)
        except (ServerEnded, TimeoutError):
            gone = server.gone or Gone(words="the Codex app-server did not answer")
            self._settling = asyncio.create_task(self._settle(hand, gone), name="codex settle")

    def _snapshot(self, turn: Turn) -> None:
        """Write down what the lines so far came to; many of them are cut then."""
        self._ledger.turn, self._ledger.position = turn.snapshot(), self._position
        try:
            self._ledger.save()
        except OSError as error:
            log.warning("the turn could not be written down: %s", error)
            return
        if self._uncut > CUT_BYTES and self._server is not None:
            self._uncut = 0
            self._server.beside(self._server.cut(self._position), "codex cut")

    # What became of it.

    def _gone(self, gone: Gone) -> None:
        """The app-server in use ended; a turn in hand is looked after with a fresh one."""
        if self._server is None or self._server.gone is not gone:
            return
        log.warning("%s", gone.words)
        self._thread.running = None
        hand = self._hand
        if hand is None or hand.end is not None or hand.turn.ended is not None:
            return
        hand.answered.set()
        self._settling = asyncio.create_task(self._settle(hand, gone), name="codex settle")

    async def _settle(self, hand: Hand, gone: Gone) -> None:
        """Run the recovery table once for a turn whose app-server ended under it."""
        key, how = hand.turn.key, gone.words
        if gone.overflow:
            hand.finish(Finished(key=key, result=Result.FAILED, text=hand.turn.text, reason=f"It failed: {how}."))
            return
        why: Exception | None = None
        for _ in range(REOPEN_TRIES):
            try:
                found = await self._witness.judge(await self._ready(), hand.turn)
            except Exception as error:  # noqa: BLE001 - whatever it is, the turn must have an end
                why = error
                await asyncio.sleep(REOPEN_SECONDS)
            else:
                hand.finish(codex_recovery.as_finished(key, found, how=how))
                return
        unknown = Unprovable(reason=f"{how}, and it could not be asked again: {why}", suggestion=hand.turn.text or None)
        hand.finish(codex_recovery.as_finished(key, unknown, how=how))

    async def _recover_living(self, server: AppServer, hand: Hand, execution: str | None) -> Recovery:
        turn = hand.turn
        try:
            async with asyncio.timeout(CALL_SECONDS):
                await hand.answered.wait()
        except TimeoutError:
            return Unprovable(reason="Codex has not answered yet whether it took the turn")
        if hand.end is not None:
            return _as_recovery(hand.end)
        if turn.refusal is not None:
            refused = codex_outcome.refused(turn, turn.refusal)
            return Finished(key=turn.key, result=Result.REFUSED, reason=refused.reason, refused=refused)
        if turn.merged:
            return Unprovable(reason="Codex took the message into a turn that already ran")
        if turn.started:
            self._events.put_nowait(Started(key=turn.key))
        return StillRunning(
            execution=execution or _reference(turn, self._ledger.position),
            keeper=server.keeper,
            waits=self._questions.waits(),
        )


def _as_recovery(end: Finished) -> Recovery:
    if end.result is not Result.UNKNOWN:
        return end
    return Unprovable(reason=end.reason, evidence=end.evidence, suggestion=end.text or None)


def _reference(turn: Turn, since: int) -> str:
    return Reference(thread=turn.thread, turn=turn.id, since=since).to_json()
