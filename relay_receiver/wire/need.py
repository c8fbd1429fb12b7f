"""What needs a person: requests that they may answer, and receivers that stand still until somebody decides."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from relay_receiver.jobs.text import clean_name

Json = dict[str, Any]

_GONE = "offline"
TITLES = {
    "unknown": "nobody can prove whether a job was done; nothing runs until it is settled",
    "paused": "the chain is paused; agents' requests wait",
    "foreign_run": "the hub holds a run open that its receiver does not know",
    "unauthorized": "the hub rejects its credential",
    "fault": "its receiver fails",
    "silent": "its process does not answer",
}
"""What a need of a receiver means, where it brings no sentence of its own."""
_DECIDED_BY_REQUEST = frozenset({"approval", "input", "choice", "form", "question", "request"})
"""Needs of a receiver that are shown as the request itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Need:
    """One thing that waits for a person. The same thing has the same id for as long as it waits, and never again.

    Attributes:
        id: of this need.
        what: approval, input, choice, form; unknown, paused, fault, foreign_run, unauthorized ...
        title: one line for a person; what others wrote is in it as they wrote it.
        channel: `{id, name}`.
        who: `{id, name}` of the agent that asks, or whose receiver it is.
        since, expires_at: times in ISO 8601, where they are known.
        next: the line to type.
        message, job: what it is about, where that is known.
        request: the whole request, for those that are answered.
    """

    id: str
    what: str
    title: str
    channel: Mapping[str, Any]
    who: Mapping[str, Any]
    next: str
    since: str | None = None
    expires_at: str | None = None
    message: str | None = None
    job: str | None = None
    request: Mapping[str, Any] | None = None

    def to_json(self) -> Json:
        """As programs read it."""
        told = asdict(self)
        told["expiresAt"] = told.pop("expires_at")
        return told

    def line(self) -> str:
        """As a person reads it, on one line."""
        until = f" (until {self.expires_at})" if self.expires_at else ""
        where = clean_name(str(self.channel.get("name")))
        return (
            f"{self.what.replace('_', ' ')} of {clean_name(str(self.who.get('name')))} in {where}: {self.title}{until}"
        )


def of_requests(
    requests: Iterable[Mapping[str, Any]], me: str, channels: Mapping[str, Mapping[str, Any]]
) -> list[Need]:
    """The open requests that a person may answer, those that expire first at the front."""
    mine = [
        each
        for each in requests
        if each.get("state") == "open" and (each.get("approvers") is None or me in each["approvers"])
    ]
    return [
        Need(
            id=f"request:{each['id']}",
            what=str(each["kind"]),
            title=str(each["title"]),
            channel=channels.get(str(each["channel"])) or {"id": each["channel"], "name": each["channel"]},
            who={name: (each.get("author") or {}).get(name) for name in ("id", "name")},
            next=f"relay requests show {each['id']}",
            since=each.get("createdAt"),
            expires_at=each.get("expiresAt"),
            message=each.get("message"),
            job=each.get("job"),
            request=each,
        )
        for each in sorted(mine, key=lambda each: str(each.get("expiresAt")))
    ]


def of_receiver(member: Mapping[str, Any], channel: Mapping[str, Any]) -> list[Need]:
    """What the receiver of a channel's member needs from a person, as it told with its lease."""
    running = member.get("receiver")
    if not isinstance(running, Mapping):
        return []
    report = _mapping(running.get("report"))
    gone = running.get("state") == _GONE
    needs = [each for each in report.get("needs") or () if isinstance(each, Mapping)]
    return [
        _standing(member, channel, report, each)
        for each in needs
        if each.get("what") not in _DECIDED_BY_REQUEST and (each.get("what") == "unknown" or not gone)
    ]


def _standing(
    member: Mapping[str, Any], channel: Mapping[str, Any], report: Mapping[str, Any], need: Mapping[str, Any]
) -> Need:
    what = str(need.get("what"))
    unknown, chain = _mapping(report.get("unknown")), _mapping(report.get("chain"))
    episode = {
        "unknown": f"{need.get('job')}.{unknown.get('attempt')}",
        "paused": str(chain.get("pause") or chain.get("count")),
    }.get(what) or hashlib.sha256(f"{need.get('why')} {need.get('job')} {need.get('next')}".encode()).hexdigest()[:16]
    why = need.get("why") or need.get("title")
    return Need(
        id=f"{what}:{member.get('id')}:{channel.get('id')}:{episode}",
        what=what,
        title=str(why or TITLES.get(what, "it waits for a person")),
        channel={name: channel.get(name) for name in ("id", "name")},
        who={name: member.get(name) for name in ("id", "name")},
        next="relay console",
        since=unknown.get("submittedAt") if what == "unknown" else None,
        message=unknown.get("message") if what == "unknown" else None,
        job=need.get("job"),
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
