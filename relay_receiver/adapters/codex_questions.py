"""What Codex asked and has no answer to yet, under the exact ids of its calls."""

from collections.abc import Mapping, Sequence
from typing import Any

from relay_receiver.adapters import codex_asks, codex_requests, jsonrpc
from relay_receiver.adapters.base import Waiting
from relay_receiver.adapters.codex_turn import Turn
from relay_receiver.adapters.jsonrpc import Call, Message, Notice, Reply


class Questions:
    """Follows the calls of an app-server in both directions; the same live and on replay."""

    def __init__(self) -> None:
        self._asked: dict[jsonrpc.Id, Call] = {}
        self._waits: dict[jsonrpc.Id, Waiting] = {}
        """Those that are put to people."""
        self._given: set[jsonrpc.Id] = set()
        """Those whose answer is on its way."""

    def __bool__(self) -> bool:
        return bool(self._asked)

    def clear(self) -> None:
        """Another app-server: nothing is asked."""
        self._asked.clear()
        self._waits.clear()
        self._given.clear()

    def asked(self, call: Call) -> None:
        """Codex asks."""
        self._asked[call.id] = call

    def sent(self, message: Message | None, turn: Turn | None) -> Waiting | None:
        """Take a line that went to Codex; what people need not answer any more by it."""
        if not isinstance(message, Reply) or message.id not in self._asked:
            return None
        call = self._asked[message.id]
        if turn is not None and turn.asks(call.params):
            turn.answered.append(turn.question(call.id))
            turn.declined += codex_requests.declines(call, message)
        return self._over(message.id)

    def resolved(self, notice: Notice) -> Waiting | None:
        """Codex says that a call needs no answer any more; what people need not answer by it."""
        name = notice.params.get("requestId")
        return self._over(name) if isinstance(name, str | int) else None

    def dropped(self, turn: Turn) -> list[Waiting]:
        """The turn is over, and with it all that it asked; what people need not answer any more."""
        names = [name for name, call in self._asked.items() if turn.asks(call.params)]
        return [wait for name in names if (wait := self._over(name)) is not None]

    def pending(self) -> list[Call]:
        """What has no answer, oldest first."""
        return [call for name, call in self._asked.items() if name not in self._given]

    def put(self, call: Call, turn: Turn) -> Waiting:
        """The question to people that a call is.

        Raises:
            CannotShow: it is declined.
        """
        found = codex_asks.shown(call, turn.files)
        wait = Waiting(
            key=turn.key,
            question=turn.question(call.id),
            kind=found.kind,
            title=found.title,
            action=found.action,
            schema=found.schema,
        )
        self._waits[call.id] = wait
        return wait

    def waits(self) -> Sequence[Waiting]:
        """What waits for people."""
        return tuple(self._waits.values())

    def take(self, question: str) -> Call | None:
        """The call that a question is, once: a second answer to it finds nothing."""
        for name, wait in self._waits.items():
            if wait.question == question and name not in self._given:
                self._given.add(name)
                return self._asked[name]
        return None

    def _over(self, name: jsonrpc.Id) -> Waiting | None:
        self._asked.pop(name, None)
        self._given.discard(name)
        return self._waits.pop(name, None)


def answer(call: Call, decision: Mapping[str, Any]) -> bytes:
    """The line that gives a person's decision: accept or decline, nothing that lasts longer."""
    if decision.get("decision") != "accept":
        return codex_requests.decline(call)
    return jsonrpc.reply(call.id, codex_asks.accepted(call, decision.get("answers") or {}))
