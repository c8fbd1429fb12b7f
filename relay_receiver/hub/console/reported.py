"""What a receiver reports of itself, as pages show it. An agent's machine sent it: nothing of it is taken on trust."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from sqlalchemy import Connection

from relay_receiver.hub import leases, members
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.store import Store
from relay_receiver.wire.action import visible

Json = Mapping[str, Any]
_NAMED = frozenset({"job", "message", "attempt"})
"""What of a sheet is shown beside it."""
_SHOWN_OTHERWISE = frozenset({"approval", "unknown", "paused"})
"""What a receiver needs that is a request to people already, or has a form of its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class InHand:
    """The job in hand."""

    id: str
    message: str | None
    state: str
    attempt: int | None
    started_at: str | None
    last_activity: str | None
    note: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Unknown:
    """A job whose outcome no program can know, with what there is to see of it."""

    job: str
    message: str | None
    attempt: int | None
    given: Json
    """As it was reported; up to 64 KiB, so it is only made readable where it is read."""

    @property
    def why(self) -> str | None:
        """Why nobody knows."""
        return _text(self.given.get("why")) or _text(self.given.get("error"))

    @property
    def text(self) -> str | None:
        """What the agent had said, a suggestion for what to post."""
        return _text(self.given.get("text"))

    @property
    def sheet(self) -> str:
        """Everything that was reported of it, to be read."""
        return "\n".join(_lines({name: value for name, value in self.given.items() if name not in _NAMED}))


@dataclass(frozen=True, kw_only=True, slots=True)
class Receiver:
    """One receiver of a channel."""

    channel: str
    agent: str
    name: str
    state: str
    detail: str | None
    adapter: str | None = None
    wake: str | None = None
    transport: str | None = None
    transport_why: str | None = None
    lease: str | None = None
    queued: int = 0
    received: int = 0
    chain_count: int | None = None
    chain_limit: int | None = None
    paused: bool = False
    job: InHand | None = None
    unknown: Unknown | None = None
    needs: tuple[str, ...] = ()
    """What a person has to see to, in a word each."""
    last_error: str | None = None
    proves: str | None = None


def receivers(conn: Connection, store: Store, person: Actor, *, waiting: bool = False) -> list[Receiver]:
    """The receivers in a person's channels, by channel and name.

    Args:
        waiting: only those for which somebody has to decide or mend something.
    """
    found: list[Receiver] = []
    for place in sorted(person.channels):
        seen = leases.of_channel(conn, store, place, person=True)
        chosen = [who for who in seen if not waiting or _waits(seen[who])]
        named = members.names(conn, chosen)
        found += sorted((_read(place, who, named[who].name, seen[who]) for who in chosen), key=lambda each: each.name)
    return found


def count_waiting(conn: Connection, store: Store, person: Actor) -> int:
    """How many receivers in a person's channels wait for somebody. Every page asks: nothing of a report is written."""
    return sum(
        _waits(seen)
        for place in person.channels
        for seen in leases.of_channel(conn, store, place, person=True).values()
    )


def _waits(seen: Json) -> bool:
    report = _object(seen.get("report"))
    return (
        _is_said(_object(report.get("unknown")).get("job"))
        or _object(report.get("chain")).get("paused") is True
        or any(True for _ in _needed(report.get("needs")))
    )


def _read(channel: str, agent: str, name: str, seen: Json) -> Receiver:
    report = _object(seen.get("report"))
    transport, queue, chain = (_object(report.get(each)) for each in ("transport", "queue", "chain"))
    return Receiver(
        channel=channel,
        agent=agent,
        name=name,
        state=_text(seen.get("state")) or "silent",
        detail=_text(seen.get("detail")),
        adapter=_text(report.get("adapter")),
        wake=_text(report.get("wake")),
        transport=_text(transport.get("name")),
        transport_why=_text(transport.get("why")),
        lease=_text(report.get("lease")),
        queued=_number(queue.get("queued")) or 0,
        received=_number(queue.get("received")) or 0,
        chain_count=_number(chain.get("count")),
        chain_limit=_number(chain.get("limit")),
        paused=chain.get("paused") is True,
        job=_in_hand(_object(report.get("job"))),
        unknown=_unknown(_object(report.get("unknown"))),
        needs=tuple(_needs(report.get("needs"))),
        last_error=_text(report.get("lastError")),
        proves=_text(_object(report.get("proves")).get("note")),
    )


def _in_hand(job: Json) -> InHand | None:
    wanted = _text(job.get("id"))
    if wanted is None:
        return None
    return InHand(
        id=wanted,
        message=_text(job.get("message")),
        state=_text(job.get("state")) or "running",
        attempt=_number(job.get("attempt")),
        started_at=_text(job.get("startedAt")),
        last_activity=_text(job.get("lastActivity")),
        note=_text(job.get("note")),
    )


def _unknown(sheet: Json) -> Unknown | None:
    job = _text(sheet.get("job"))
    if job is None:
        return None
    return Unknown(job=job, message=_text(sheet.get("message")), attempt=_number(sheet.get("attempt")), given=sheet)


def _lines(value: Any, indent: str = "") -> Iterator[str]:  # noqa: ANN401 - JSON
    """A sheet as lines that read well: names before values, what is nested below them."""
    entries = value.items() if isinstance(value, Mapping) else ((None, each) for each in value)
    for name, each in entries:
        label = "-" if name is None else f"{visible(str(name))}:"
        if each is None or each in ("", [], {}):
            continue
        if (short := _short(each)) is not None:
            yield f"{indent}{label} {short}"
        elif isinstance(each, str):
            yield f"{indent}{label}"
            yield from (f"{indent}  {line}" for line in visible(each).strip().split("\n"))
        else:
            yield f"{indent}{label}"
            yield from _lines(each, f"{indent}  ")


def _short(value: Any) -> str | None:  # noqa: ANN401 - JSON
    """A value, or a flat object, that fits on one line; None where it does not."""
    if isinstance(value, str):
        return None if "\n" in value.strip() else visible(value.strip())
    if isinstance(value, Mapping):
        words = {name: _short(each) for name, each in value.items() if each not in (None, "", [], {})}
        flat = not any(isinstance(each, Mapping | list) for each in value.values()) and None not in words.values()
        return ", ".join(f"{visible(str(name))} {said}" for name, said in words.items()) if flat else None
    return None if isinstance(value, list) else json.dumps(value)


def _needs(given: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
    for each in _needed(given):
        yield _text(each.get("why")) or visible(each["what"])


def _needed(given: Any) -> Iterator[Json]:  # noqa: ANN401 - JSON
    """What a receiver needs and no other part of a page shows."""
    for each in given if isinstance(given, list) else ():
        what = _object(each).get("what")
        if _is_said(what) and what not in _SHOWN_OTHERWISE:
            yield each


def _object(value: Any) -> Json:  # noqa: ANN401 - JSON
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str | None:  # noqa: ANN401 - JSON
    return visible(value) if _is_said(value) else None


def _is_said(value: Any) -> TypeGuard[str]:  # noqa: ANN401 - JSON
    return isinstance(value, str) and bool(value) and not value.isspace()


def _number(value: Any) -> int | None:  # noqa: ANN401 - JSON
    return value if isinstance(value, int) and not isinstance(value, bool) else None
