"""The recovery table: what a fresh look at Codex's own record proves about an attempt."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relay_receiver.adapters import codex_outcome
from relay_receiver.adapters.base import Finished, NeverStarted, Recovery, Result, Unprovable
from relay_receiver.adapters.codex_turn import Turn, answer
from relay_receiver.adapters.jsonrpc import JSON


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """What is known once the old app-server is certainly gone and a fresh one has the thread."""

    turn: Turn
    """What our own record has of it."""
    turns: Sequence[Mapping[str, Any]] | None
    """The thread's turns with all their items; None where Codex cannot read them."""
    lost: bool = False
    """Codex has no rollout of the thread, which never had a turn that ended."""
    before: str | None = None
    """The last turn of the thread before the hand-over, as far as it was known."""
    recorded: bool = True
    """Our record of the hand-over is there."""
    same_boot: bool = True
    same_home: bool = True
    """CODEX_HOME is the same directory (device and inode) as at the hand-over."""


def judge(look: Look, *, now: float) -> Recovery:
    """What became of the attempt: finished, never started, or nobody can know."""
    found = _find(look)
    if found is not None:
        return _shared(look.turn, found) or _found(look.turn, found, now=now)
    doubt = _doubt(look)
    if doubt is None:
        return NeverStarted(proof="Codex's record of the thread has no trace of it, and the machine runs since before")
    return Unprovable(reason=doubt, evidence=_evidence(look), suggestion=look.turn.text or None)


def _find(look: Look) -> Mapping[str, Any] | None:
    for turn in (look.turns or ())[::-1]:
        if look.turn.id is not None and turn.get("id") == look.turn.id:
            return turn
        if any(item.get("clientId") == look.turn.key for item in turn.get("items", ())):
            return turn
    return None


def _shared(turn: Turn, record: Mapping[str, Any]) -> Unprovable | None:
    """A turn that holds another message too: whose its answer is cannot be told."""
    own = {turn.key, f"{turn.key}.note"}
    items = record.get("items", ())
    if all(item.get("clientId") in own for item in items if item.get("type") == "userMessage"):
        return None
    evidence = {"thread": turn.thread, "turn": record.get("id"), "status": record.get("status")}
    reason = "Codex took the message into a turn that already ran"
    return Unprovable(reason=reason, evidence=evidence, suggestion=answer(items))


def _found(turn: Turn, record: Mapping[str, Any], *, now: float) -> Recovery:
    items = record.get("items", ())
    if record.get("status") in {"completed", "failed"}:
        end = codex_outcome.finished(turn, record, items, now=now)
        return end if end.result is not Result.UNKNOWN else Unprovable(reason=end.reason)
    text = answer(items) or turn.text
    evidence: JSON = {
        "thread": turn.thread,
        "turn": record.get("id"),
        "status": record.get("status"),
        "brokenOff": "on purpose" if record.get("completedAt") is not None else "Codex died",
        "items": [item.get("type") for item in items],
    }
    if turn.commands:
        evidence["commandsStarted"] = list(turn.commands.values())
    return Unprovable(
        reason="Codex ended in the middle of the turn: what it had done by then cannot be known",
        evidence=evidence,
        suggestion=text or None,
    )


def _doubt(look: Look) -> str | None:
    """Why the absence of a trace is no proof; None where it is one."""
    doubts = (
        (look.turns is None and not look.lost, "Codex's record of the thread cannot be read"),
        (not look.recorded, "the record of the hand-over is missing, so nothing about it can be proven"),
        (look.turn.started, "the agent had begun to work, but Codex's record of the thread does not show it"),
        (not look.same_boot, "the machine was restarted since, and Codex's files were not shown to survive that"),
        (not look.same_home, "Codex's home directory is another one than at the hand-over"),
        (_unexplained(look), "the thread has a turn without content that may be this one"),
    )
    return next((doubt for holds, doubt in doubts if holds), None)


def _unexplained(look: Look) -> bool:
    later = list(look.turns or ())
    for index, turn in enumerate(later):
        if turn.get("id") == look.before:
            later = later[index + 1 :]
            break
    return any(not turn.get("items") for turn in later)


def _evidence(look: Look) -> JSON:
    turns = (
        None if look.turns is None else [{"id": turn.get("id"), "status": turn.get("status")} for turn in look.turns]
    )
    return {
        "thread": look.turn.thread,
        "turn": look.turn.id,
        "threadTurns": None if turns is None else turns[-5:],
        "sameBoot": look.same_boot,
        "sameCodexHome": look.same_home,
        "started": look.turn.started,
    }


def as_finished(key: str, found: Recovery, *, how: str) -> Finished:
    """The same as an end of the attempt, for a turn whose app-server ended under it.

    Args:
        how: the words on how it ended.
    """
    match found:
        case NeverStarted(proof=proof):
            refused = codex_outcome.not_begun(f"{how} before it began the turn: {proof}.")
            return Finished(key=key, result=Result.REFUSED, reason=refused.reason, refused=refused)
        case Unprovable(reason=reason, evidence=evidence, suggestion=suggestion):
            told = {**evidence, "ended": how}
            return Finished(key=key, result=Result.UNKNOWN, text=suggestion or "", reason=reason, evidence=told)
        case Finished():
            return found
    raise TypeError(f"{type(found).__name__} is no end")
