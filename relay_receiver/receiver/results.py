"""The one result of a job: its outcome, its words, and the exact body that is posted."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from relay_receiver.adapters.base import Finished, Result
from relay_receiver.jobs.job import Job, operation_id
from relay_receiver.jobs.outcome import WIRE_OUTCOME, Outcome
from relay_receiver.jobs.text import clean, is_quiet
from relay_receiver.wire import limits

ATTACHMENT_NAME = "result.txt"
ATTACHMENT_TYPE = "text/plain; charset=utf-8"
REASON_CHARS = 500
"""Of why there is no answer, as the requester is shown it beside the result."""
_WITH_REASON = frozenset({Outcome.FAILED, Outcome.CANCELLED, Outcome.ABANDONED})
_ROOM = 512
"""Bytes of a message kept free for the line that names the attachment."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """How a job ends: what is stored in one transaction before anything is posted."""

    outcome: Outcome
    text: str
    error: str | None = None
    usage: str | None = None


def ending(finished: Finished, *, ceiling: bool = False) -> Ending:
    """The ending that an adapter's `completed`, `failed` or `cancelled` comes to."""
    usage = json.dumps(dict(finished.usage)) if finished.usage else None
    text = clean(finished.text)
    if finished.result is Result.COMPLETED:
        outcome = Outcome.QUIET if is_quiet(text) else Outcome.COMPLETED
        return Ending(outcome=outcome, text=text, usage=usage)
    cancelled = finished.result is Result.CANCELLED and not ceiling
    return Ending(
        outcome=Outcome.CANCELLED if cancelled else Outcome.FAILED,
        text=text,
        error=clean(finished.reason) or "the agent gave no reason",
        usage=usage,
    )


def is_posted(job: Job, outcome: Outcome) -> bool:
    """Whether this ending makes a message: a quiet answer to an ordinary message makes none."""
    return outcome is not Outcome.QUIET or job.request


def body(job: Job, channel: str, end: Ending, *, run: bool) -> dict[str, Any]:
    """The POST body of the result.

    Args:
        run: close the job's run in the same transaction at the hub; False where none was begun or it is closed.
    """
    content, attachment = _fit(_words(end))
    posted: dict[str, Any] = {
        "channel": channel,
        "kind": "result",
        "content": content,
        "replyTo": job.message,
        "to": job.author if job.by_agent else "human",
        "mentions": [],
        "operationId": operation_id(job.id),
        "outcome": WIRE_OUTCOME[end.outcome],
    }
    if end.error and end.outcome in _WITH_REASON:
        posted["reason"] = end.error[:REASON_CHARS]
    if attachment is not None:
        posted["attachments"] = [attachment]
    if run:
        posted["run"] = {"holderId": job.holder, "fence": job.fence, "requestId": job.id}
    return posted


def without_run(body: str) -> str:
    """A stored body that closes no run any more: the hub has none."""
    said = json.loads(body)
    said.pop("run", None)
    return json.dumps(said)


def whole_text(end: Ending) -> bytes:
    """The text of the result, uncut, as it is attached where it does not fit a message."""
    return _words(end).encode()


def _words(end: Ending) -> str:
    match end.outcome:
        case Outcome.COMPLETED:
            return end.text
        case Outcome.QUIET:
            return end.text.strip() or "(nothing to say)"
        case Outcome.CANCELLED:
            head = f"Cancelled: {end.error or 'on request'}"
        case Outcome.ABANDONED:
            head = f"Given up, its outcome stays unknown: {end.error or 'no reason given'}"
        case Outcome.FAILED:
            head = f"Failed: {end.error or 'no reason given'}"
    return f"{head}\n\n{end.text}" if end.text.strip() else head


def _fit(text: str) -> tuple[str, dict[str, Any] | None]:
    data = text.encode()
    if len(data) <= limits.CONTENT_BYTES:
        return text, None
    start = data[: limits.CONTENT_BYTES - _ROOM].decode("utf-8", "ignore")
    note = f"\n\n[This is the beginning. The whole text, {len(data)} bytes, is attached as {ATTACHMENT_NAME}.]"
    return start + note, {
        "id": hashlib.sha256(data).hexdigest(),
        "name": ATTACHMENT_NAME,
        "type": ATTACHMENT_TYPE,
        "size": len(data),
    }
