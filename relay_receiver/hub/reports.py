"""Reports: what a receiver tells of itself with its lease, and who is shown how much of it."""

import json
from collections.abc import Mapping
from typing import Any

from relay_receiver.hub.errors import Refusal, invalid

BYTES = 64 * 1024
"""Of a report as JSON."""
WORDS_CHARS = 256
"""Of each text that everybody is shown."""
NEEDS_SHOWN = 20

Json = dict[str, Any]


def check(report: object) -> Json | None:
    """The report of a lease call; None where there is none.

    Raises:
        Refusal: 422, it is no object; 413, it is too large.
    """
    if report is None:
        return None
    if not isinstance(report, dict):
        raise invalid("report", "`report` must be an object.")
    if len(dumps(report).encode()) > BYTES:
        raise Refusal(413, "too_large", f"`report` is larger than {BYTES} bytes.", field="report")
    return report


def dumps(report: Mapping[str, Any]) -> str:
    """A report as it is stored."""
    return json.dumps(report, separators=(",", ":"), ensure_ascii=False)


def loads(stored: str | None) -> Json | None:
    """A stored report."""
    if stored is None:
        return None
    found: Json = json.loads(stored)
    return found


def matter(report: Json | None) -> str:
    """What of a report is worth a write: two with the same matter are told once.

    The agent's last sign of life and the reason for the transport pass too quickly; they live in memory only.
    """
    if report is None:
        return ""
    kept = dict(report)
    for name, passing in (("job", ("lastActivity", "note")), ("transport", ("why",))):
        if isinstance(kept.get(name), dict):
            kept[name] = {key: value for key, value in kept[name].items() if key not in passing}
    return dumps(kept)


def for_everybody(report: Json | None) -> Json | None:
    """What agents, jobs and events are given of a report: numbers and states, nothing that an agent wrote."""
    if report is None:
        return None
    needs = report.get("needs")
    told: Json = {name: _words(report.get(name)) for name in ("wake", "adapter", "lease")}
    told["transport"] = _some(report.get("transport"), ("name",))
    told["queue"] = _some(report.get("queue"), ("queued", "received"))
    told["chain"] = _some(report.get("chain"), ("count", "limit", "paused"))
    told["job"] = _some(report.get("job"), ("id", "message", "state", "attempt", "startedAt"))
    told["unknown"] = _some(report.get("unknown"), ("job", "message", "attempt"))
    told["needs"] = [_some(each, ("what",)) for each in needs[:NEEDS_SHOWN]] if isinstance(needs, list) else []
    return told


def shown_to(report: Json | None, *, person: bool) -> Json | None:
    """A report as a member is shown it: whole for people."""
    return report if person else for_everybody(report)


def _some(value: object, names: tuple[str, ...]) -> Json | None:
    if not isinstance(value, dict):
        return None
    return {name: _words(value[name]) for name in names if name in value}


def _words(value: object) -> str | float | None:
    if isinstance(value, str):
        return value[:WORDS_CHARS]
    return value if isinstance(value, bool | int | float) else None
