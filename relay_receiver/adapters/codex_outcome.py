"""What a Codex turn came to, and its errors in words that a person understands."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from relay_receiver.adapters.base import Finished, Refused, Result, Scope
from relay_receiver.adapters.codex_turn import NOT_OF_THE_MODEL, Turn, answer
from relay_receiver.adapters.jsonrpc import JSON, Fault

DETAIL_CHARS = 400
"""Characters of Codex's own words that a reason quotes."""

_STATUS = {
    401: "unauthorized",
    403: "unauthorized",
    429: "rateLimitExceeded",
    503: "serverOverloaded",
    529: "serverOverloaded",
}
_WORDS = (
    ("invalid_request_error", "badRequest"),
    ("stream disconnected", "disconnected"),
    ("idle timeout", "disconnected"),
)
"""What tells the class where Codex says `other`."""

_SENTENCES = {
    "contextWindowExceeded": (
        "The conversation no longer fits into the model's context window; "
        "`relay receiver configure --new-session` starts a new one"
    ),
    "sessionBudgetExceeded": "The budget of this Codex session is used up",
    "cyberPolicy": "The model's provider stopped it for its policy on security",
    "misalignmentPolicyViolation": "The model's provider stopped it for its policy",
    "tooManyDenials": "Codex gave up after too many declined actions",
    "internalServerError": "The model's provider had an error of its own",
    "badRequest": "The model's provider did not take the request",
    "sandboxError": "Codex's sandbox failed",
    "usageLimitExceeded": "The usage limit of the Codex account is reached",
    "rateLimitExceeded": "The model's provider takes no more requests for the moment",
    "serverOverloaded": "The model is overloaded",
    "flexUnavailable": "The model is overloaded",
    "unauthorized": "The model's provider does not accept Codex's credentials; `codex login` signs in anew",
    "unreachable": "The model's provider could not be reached",
    "disconnected": "The connection to the model broke off before the answer was complete",
}
_REFUSALS = {
    "usageLimitExceeded": "usage_limit",
    "rateLimitExceeded": "overloaded",
    "serverOverloaded": "overloaded",
    "flexUnavailable": "overloaded",
    "unauthorized": "unauthorized",
    "unreachable": "refused",
}
"""Classes that say nothing of the request: before any item of the model, nothing was done."""

_TRY_AGAIN = re.compile(
    r"try again at (?:(?P<day>[A-Z][a-z]{2} \d{1,2})(?:st|nd|rd|th), (?P<year>\d{4}) )?(?P<time>\d{1,2}:\d{2} [AP]M)"
)


def finished(turn: Turn, ended: Mapping[str, Any], items: Sequence[Any], *, now: float) -> Finished:
    """The end of an attempt from the turn as `turn/completed` or `thread/read` shows it.

    Args:
        items: the turn's items, as full as they were given.
        now: seconds since the epoch, for reset times.
    """
    evidence: JSON = {"thread": turn.thread, "turn": ended.get("id"), "status": ended.get("status")}
    if turn.commands:
        evidence["commandsStillRunning"] = list(turn.commands.values())
    if turn.declined:
        evidence["declined"] = turn.declined
    usage = dict(turn.usage) or None
    match ended.get("status"):
        case "completed":
            text = answer(items)
            return Finished(key=turn.key, result=Result.COMPLETED, text=text or "", usage=usage, evidence=evidence)
        case "failed":
            error = ended.get("error")
            return _failed(turn, error if isinstance(error, dict) else {}, items, now=now, evidence=evidence)
        case "interrupted" if turn.interrupting:
            return Finished(
                key=turn.key,
                result=Result.CANCELLED,
                text=turn.text,
                reason="it was interrupted",
                usage=usage,
                evidence=evidence,
            )
    return Finished(
        key=turn.key,
        result=Result.UNKNOWN,
        text=answer(items) or turn.text,
        reason="Codex broke the turn off, and what it had done by then cannot be known",
        usage=usage,
        evidence=evidence,
    )


def refused(turn: Turn, fault: Fault) -> Refused:
    """What an error answer to `turn/start` means: no turn began."""
    words = _quote(fault.message)
    if isinstance(fault.data, dict) and fault.data.get("input_error_code") == "input_too_large":
        return Refused(scope=Scope.JOB, reason=f"The request is too long for Codex: {words}")
    if "thread not found" in fault.message:
        return Refused(scope=Scope.BINDING, reason=f"Codex has not loaded the thread {turn.thread}")
    return Refused(scope=Scope.BINDING, reason=f"Codex did not take the turn: {words}")


def not_begun(reason: str) -> Refused:
    """The refusal of an attempt that certainly never began, through no fault of its own."""
    return Refused(scope=Scope.BINDING, reason=reason)


def error_class(error: Mapping[str, Any]) -> str:
    """The class of a turn's error: Codex's own word, or `unreachable`, `disconnected`, `other`."""
    info = error.get("codexErrorInfo")
    if isinstance(info, str) and info != "other":
        return info
    if isinstance(info, dict) and len(info) == 1:
        name, detail = next(iter(info.items()))
        status = detail.get("httpStatusCode") if isinstance(detail, dict) else None
        lost = "disconnected" if name == "responseStreamDisconnected" else "unreachable"
        return lost if status is None else _STATUS.get(status, "other")
    message = str(error.get("message", ""))
    return next((kind for words, kind in _WORDS if words in message), "other")


def sentence(error: Mapping[str, Any]) -> str:
    """One sentence about a turn's error, with Codex's own words behind it."""
    said = _SENTENCES.get(error_class(error), "Codex ended the turn with an error")
    words = _quote(str(error.get("message", "")))
    return f"{said} ({words})." if words else f"{said}."


def resets_at(error: Mapping[str, Any], *, now: float) -> float | None:
    """When a usage limit ends, from the words of the error; Codex writes them in local time."""
    found = _TRY_AGAIN.search(str(error.get("message", "")))
    if found is None:
        return None
    today = datetime.fromtimestamp(now).astimezone()
    at = datetime.strptime(found["time"], "%I:%M %p").time()  # noqa: DTZ007 - joined with the zone below
    if found["day"] is not None:
        day = datetime.strptime(f"{found['day']} {found['year']}", "%b %d %Y").date()  # noqa: DTZ007 - the same
        return datetime.combine(day, at).astimezone().timestamp()
    then = datetime.combine(today.date(), at).astimezone()
    return (then if then > today else then + timedelta(days=1)).timestamp()


def _failed(turn: Turn, error: Mapping[str, Any], items: Sequence[Any], *, now: float, evidence: JSON) -> Finished:
    kind = error_class(error)
    evidence["error"] = error.get("codexErrorInfo")
    reason = sentence(error)
    worked = turn.started or any(isinstance(item, dict) and item.get("type") not in NOT_OF_THE_MODEL for item in items)
    if kind in _REFUSALS and not worked:
        retry_at = (turn.resets_at or resets_at(error, now=now)) if kind == "usageLimitExceeded" else None
        why = Refused(scope=Scope.BINDING, reason=reason, retry_at=retry_at, code=_REFUSALS[kind])
        return Finished(key=turn.key, result=Result.REFUSED, reason=reason, refused=why, evidence=evidence)
    return Finished(
        key=turn.key,
        result=Result.FAILED,
        text=answer(items) or turn.text,
        reason=reason,
        usage=dict(turn.usage) or None,
        evidence=evidence,
    )


def _quote(message: str) -> str:
    """Codex's words on one line; a body of JSON is reduced to its own message."""
    try:
        body = json.loads(message)
    except ValueError:
        body = None
    if isinstance(body, dict):
        inner = body.get("error", body)
        message = str(inner.get("message", message)) if isinstance(inner, dict) else str(inner)
    line = " ".join(message.split()).rstrip(".")
    return line if len(line) <= DETAIL_CHARS else line[: DETAIL_CHARS - 1] + "…"
