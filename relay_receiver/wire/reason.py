"""Why a request that waits is not worked on yet, in one word for programs and one sentence for people."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Reason(StrEnum):
    """What a request waits for. A receiver's own word for its state is passed on where it is none of these."""

    OFFLINE = "offline"
    STANDBY = "standby"
    PAUSED = "paused"
    BUSY = "busy"
    REFUSED = "refused"
    USAGE_LIMIT = "usage_limit"
    UNAUTHORIZED = "unauthorized"
    UNKNOWN = "unknown"
    FAILING = "failing"
    STOPPING = "stopping"
    MANUAL = "manual"
    NOT_MENTIONED = "not_mentioned"
    PERSON = "person"


READY = "ready"

_SENTENCES = {
    Reason.OFFLINE: "its receiver is not connected",
    Reason.STANDBY: "the receiver that holds its lease is silent, and another stands by",
    Reason.PAUSED: "its chain is paused until a person speaks or resumes it",
    Reason.BUSY: "it is at another job",
    Reason.REFUSED: "its agent does not take the job just now",
    Reason.USAGE_LIMIT: "the usage limit of its agent is reached",
    Reason.UNAUTHORIZED: "its credential is not accepted",
    Reason.UNKNOWN: "the outcome of an earlier job is unknown until a person settles it",
    Reason.FAILING: "its receiver fails",
    Reason.STOPPING: "its receiver is being stopped",
    Reason.MANUAL: "its receiver stores messages and runs nothing by itself",
    Reason.NOT_MENTIONED: "only a request to it, or a message that mentions it, wakes it",
    Reason.PERSON: "it waits on a person",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Why:
    """What is in the way; all None where nothing is. `next_try` is a time in ISO 8601."""

    reason: str | None = None
    detail: str | None = None
    next_try: str | None = None


FREE = Why()
"""Nothing is in the way."""


def because(reason: Reason, detail: str | None = None, *, next_try: str | None = None) -> Why:
    """A reason with its sentence: the one given, else the usual one."""
    return Why(reason=reason.value, detail=detail or _SENTENCES[reason], next_try=next_try)


def why(state: str, detail: str | None, report: Mapping[str, Any], *, by_agent: bool, taken: bool) -> Why:
    """Why a receiver that is connected does not begin a request now.

    Args:
        state: its own word; `detail` the sentence with it.
        report: what it told of itself with its lease; empty for those that tell nothing.
        by_agent: the request is an agent's: a pause of the chain holds it up, and nobody else's.
        taken: it has the request already, so that its wake setting is no matter any more.
    """
    if report.get("wake") == Reason.MANUAL and not (taken and _waiting(report)):
        return because(Reason.MANUAL)
    if state == READY:
        return FREE
    if state == Reason.PAUSED and not by_agent and _mapping(report, "chain").get("paused"):
        return FREE
    if state == Reason.REFUSED:
        refused = _mapping(report, "refused")
        limit = refused.get("code") == Reason.USAGE_LIMIT
        said = refused.get("why") or detail
        return because(Reason.USAGE_LIMIT if limit else Reason.REFUSED, said, next_try=refused.get("nextTry"))
    sentence = next((text for word, text in _SENTENCES.items() if word == state), None)
    return Why(reason=state, detail=detail or sentence)


def _waiting(report: Mapping[str, Any]) -> bool:
    """Whether anything waits in its queue."""
    queue = _mapping(report, "queue")
    return bool(queue.get("queued") or queue.get("received"))


def _mapping(report: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = report.get(name)
    return found if isinstance(found, Mapping) else {}
