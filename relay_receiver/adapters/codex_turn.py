"""One turn of a Codex thread, followed from the lines of both directions; the same live and on replay."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from relay_receiver.adapters.base import Progress, Started
from relay_receiver.adapters.jsonrpc import JSON, Call, Fault, Message, Notice, Reply

NOTE_CHARS = 120
"""Characters of a note for `status`."""
KEPT_CHARS = 64 * 1024
"""Characters of the last message that a snapshot keeps, as the suggestion for an unknown outcome."""

NOT_OF_THE_MODEL = frozenset({"userMessage", "hookPrompt", "contextCompaction"})
"""Items that do not prove that the model began to work on the message."""

_NOTES = {
    "userMessage": "reads the message",
    "agentMessage": "writes",
    "reasoning": "thinks",
    "plan": "plans",
    "webSearch": "searches the web",
    "imageView": "looks at an image",
    "contextCompaction": "shortens its history",
}


@dataclass(kw_only=True)
class Turn:
    """What is known of the turn of one attempt."""

    key: str
    """The attempt; also the client's id of the user message."""
    thread: str
    call: str | int | None = None
    """The id of the `turn/start` line, once it was seen in the spool."""
    known: str | None = None
    """The last turn of the thread before that line: an answer that names it means that the message was merged."""
    id: str | None = None
    started: bool = False
    """An item of the model, or an approval, was seen."""
    merged: bool = False
    """The answer to `turn/start` named a turn that ran already."""
    refusal: Fault | None = None
    """Codex answered `turn/start` with an error."""
    text: str = ""
    """The last whole message of the model."""
    commands: dict[str, str] = field(default_factory=dict)
    """Commands that run, by item."""
    usage: dict[str, int] = field(default_factory=dict)
    resets_at: float | None = None
    """When a limit that is used up starts anew."""
    files: dict[str, list[Any]] = field(default_factory=dict)
    """The changes of patches that are not applied yet, by item."""
    asked: int = 0
    """Approvals and questions of this turn."""
    declined: int = 0
    """Those that were declined."""
    answered: list[str] = field(default_factory=list)
    """The questions whose answer went to Codex."""
    noted: bool = False
    """The agent was told why."""
    interrupting: bool = False
    ended: JSON | None = None
    """The turn of `turn/completed`."""

    @property
    def open(self) -> bool:
        """Whether it may still go on."""
        return self.ended is None and self.refusal is None and not self.merged

    def sent(self, message: Message | None, known: str | None) -> None:
        """Take a line that went to Codex.

        Args:
            known: the last turn of the thread that was known before this line.
        """
        if isinstance(message, Call) and message.method == "turn/start":
            if message.params.get("clientUserMessageId") == self.key:
                self.call, self.known = message.id, known
        elif isinstance(message, Call) and message.method == "turn/steer":
            self.noted = self.noted or message.params.get("clientUserMessageId") == self.note_id
        elif isinstance(message, Call) and message.method == "turn/interrupt":
            self.interrupting = self.interrupting or message.params.get("turnId") == self.id

    def heard(self, message: Message | None) -> Sequence[Started | Progress]:
        """Take a line that came from Codex."""
        if isinstance(message, Reply):
            self._answered(message)
        elif isinstance(message, Call) and self.open and self.asks(message.params):
            self.asked += 1
            return self._proven()
        elif isinstance(message, Notice):
            if message.method == "account/rateLimits/updated":
                self._limits(message.params.get("rateLimits"))
            elif self.owns(message.params):
                return self._noticed(message.method, message.params)
        return ()

    def owns(self, params: Mapping[str, Any]) -> bool:
        """Whether these parameters are of this thread and of this turn."""
        if self.id is None or params.get("threadId") != self.thread:
            return False
        turn = params.get("turn")
        return (turn.get("id") if isinstance(turn, dict) else params.get("turnId")) == self.id

    def asks(self, params: Mapping[str, Any]) -> bool:
        """Whether a call with these parameters is of this turn; a tool may ask without naming one."""
        if params.get("turnId") is None:
            return self.id is not None and params.get("threadId") == self.thread
        return self.owns(params)

    def question(self, call: str | int) -> str:
        """The name of a question to people: this turn's call of that id, of exactly that type."""
        return f"{self.id}:{json.dumps(call)}"

    @property
    def note_id(self) -> str:
        """The client's id of a note to the agent."""
        return f"{self.key}.note"

    def _answered(self, reply: Reply) -> None:
        if self.call is None or reply.id != self.call or self.id is not None:
            return
        if reply.fault is not None:
            self.refusal = reply.fault
            return
        named = reply.result.get("turn", {}).get("id") if isinstance(reply.result, dict) else None
        if not isinstance(named, str):
            self.refusal = Fault("Codex answered without naming a turn")
        elif named == self.known:
            self.merged = True
        else:
            self.id = named

    def _noticed(self, method: str, params: JSON) -> Sequence[Started | Progress]:
        item = params.get("item")
        item = item if isinstance(item, dict) else {}
        match method:
            case "item/started":
                return self._item_started(item)
            case "item/completed":
                return self._item_completed(item)
            case "thread/tokenUsage/updated":
                self._count(params.get("tokenUsage"))
            case "error" if params.get("willRetry"):
                return (Progress(key=self.key, note=_short(f"tries again: {_message(params.get('error'))}")),)
            case "turn/completed":
                self.ended = params["turn"]
        return ()

    def _item_started(self, item: JSON) -> Sequence[Started | Progress]:
        kind, name = item.get("type"), str(item.get("id"))
        if kind == "commandExecution":
            self.commands[name] = str(item.get("command", ""))
        elif kind == "fileChange":
            self.files[name] = list(item.get("changes") or ())
        note = Progress(key=self.key, note=_short(describe(item)))
        return (*(() if kind in NOT_OF_THE_MODEL else self._proven()), note)

    def _item_completed(self, item: JSON) -> Sequence[Started | Progress]:
        kind = item.get("type")
        self.commands.pop(str(item.get("id")), None)
        self.files.pop(str(item.get("id")), None)
        if kind == "agentMessage":
            self.text = str(item.get("text", ""))
        return () if kind in NOT_OF_THE_MODEL else self._proven()

    def _proven(self) -> Sequence[Started | Progress]:
        if self.started:
            return ()
        self.started = True
        return (Started(key=self.key),)

    def _count(self, usage: Any) -> None:  # noqa: ANN401 - JSON
        """Add one request to the model; the totals of Codex are the whole thread's."""
        last = usage.get("last") if isinstance(usage, dict) else None
        for name, value in (last if isinstance(last, dict) else {}).items():
            if isinstance(value, int):
                self.usage[name] = self.usage.get(name, 0) + value

    def _limits(self, limits: Any) -> None:  # noqa: ANN401 - JSON
        windows = [limits.get(name) for name in ("primary", "secondary")] if isinstance(limits, dict) else []
        ends = [
            float(window["resetsAt"])
            for window in windows
            if isinstance(window, dict) and window.get("resetsAt") and window.get("usedPercent", 0) >= 100
        ]
        self.resets_at = max(ends, default=self.resets_at)

    def snapshot(self) -> JSON:
        """What the lines so far came to, so that they may be cut."""
        return {
            "call": self.call,
            "turn": self.id,
            "started": self.started,
            "text": self.text[-KEPT_CHARS:],
            "commands": dict(self.commands),
            "usage": dict(self.usage),
            "files": dict(self.files),
            "asked": self.asked,
            "declined": self.declined,
            "answered": list(self.answered),
            "noted": self.noted,
            "interrupting": self.interrupting,
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        self.call = snapshot.get("call")
        self.id = snapshot.get("turn")
        self.started = bool(snapshot.get("started"))
        self.text = str(snapshot.get("text") or "")
        self.commands = dict(snapshot.get("commands") or {})
        self.usage = dict(snapshot.get("usage") or {})
        self.files = dict(snapshot.get("files") or {})
        self.asked = int(snapshot.get("asked") or 0)
        self.declined = int(snapshot.get("declined") or 0)
        self.answered = list(snapshot.get("answered") or ())
        self.noted = bool(snapshot.get("noted"))
        self.interrupting = bool(snapshot.get("interrupting"))


def describe(item: Mapping[str, Any]) -> str:
    """What an item is about, in a few words."""
    match item.get("type"):
        case "commandExecution":
            return f"runs {item.get('command', '')}"
        case "mcpToolCall":
            return f"calls {item.get('server', '')}.{item.get('tool', '')}"
        case "fileChange":
            changes = item.get("changes")
            paths = [str(change.get("path")) for change in changes or () if isinstance(change, dict)]
            return f"changes {', '.join(paths) or 'files'}"
        case kind:
            return _NOTES.get(str(kind), str(kind))


def answer(items: Sequence[Any]) -> str | None:
    """The final answer among the items of a turn; None where the model said nothing."""
    said = [item for item in items if isinstance(item, dict) and item.get("type") == "agentMessage"]
    final = [item for item in said if item.get("phase") != "commentary"]
    chosen = (final or said)[-1:]
    return str(chosen[0].get("text", "")) if chosen else None


def _message(error: Any) -> str:  # noqa: ANN401 - JSON
    return str(error.get("message", "")) if isinstance(error, dict) else ""


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= NOTE_CHARS else line[: NOTE_CHARS - 1] + "…"
