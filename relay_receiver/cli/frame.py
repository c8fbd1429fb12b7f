"""One picture of the receivers of a machine, for a terminal of any size: pure text in, lines out."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relay_receiver.cli.options import short
from relay_receiver.jobs.text import clean_name, printable
from relay_receiver.wire.message import seconds

NARROW = 64
"""Below so many columns a receiver takes lines instead of columns."""
COLUMNS = (("NAME", 14), ("CHANNEL", 10), ("STATE", 12), ("QUEUE", 5), ("CHAIN", 6), ("HUB", 9), ("JOB", 0))
"""Heads and widths; the last column takes what is left."""
PLAIN, BOLD, DIM, RED, GREEN, YELLOW, CYAN = "", "1", "2", "31", "32", "33", "36"

_BAD = frozenset({"failing", "unauthorized", "silent", "unknown"})
_TONES = {"ready": GREEN, "busy": CYAN, "stopped": DIM}
HELP = "q quits"


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One line and how it is shown; `tone` are the numbers of an SGR sequence."""

    text: str
    tone: str = PLAIN


def frame(
    receivers: Sequence[Mapping[str, Any]],
    *,
    width: int,
    height: int | None,
    now: float,
    clock: str = "",
    first: int = 0,
    more: str = "…",
) -> list[Line]:
    """The picture: a head, then each receiver, those that need a person first.

    Args:
        receivers: as `relay receiver status` tells them.
        height: lines at the most; all there are unless given.
        now: seconds since the epoch.
        clock: the time of day, for the head.
        first: how many receivers are scrolled past.
        more: stands where something was cut.
    """
    ordered = sorted(receivers, key=_urgency)
    lines = [Line(text=_head(ordered, clock), tone=BOLD)]
    if not ordered:
        lines += [Line(text="No receiver is configured on this machine."), Line(text="next: relay receiver start")]
    elif width >= NARROW:
        lines.append(Line(text=_row([name for name, _ in COLUMNS], width, more), tone=DIM))
    first = max(0, min(first, len(ordered) - 1))
    shown = first
    for each in ordered[first:]:
        block = _block(each, width, now, more)
        left = None if height is None else height - 1 - len(lines)
        if left is not None and len(block) > left:
            if left >= 1 and shown == first:
                lines += block[:left]
                shown += 1
            break
        lines += block
        shown += 1
    if height is not None:
        hidden = first + len(ordered) - shown
        lines.append(Line(text=f"{hidden} more: up and down; {HELP}" if hidden else HELP, tone=DIM))
    cut = lines if height is None else lines[:height]
    return [Line(text=fit(each.text, width, more), tone=each.tone) for each in cut]


def _head(receivers: Sequence[Mapping[str, Any]], clock: str) -> str:
    count = len(receivers)
    needing = sum(bool(each.get("needsPerson")) for each in receivers)
    busy = sum(bool(each.get("job")) for each in receivers)
    parts = [f"{count} receiver{'' if count == 1 else 's'}"]
    parts += [f"{needing} need{'s' if needing == 1 else ''} you"] if needing else []
    parts += [f"{busy} at a job"] if busy else []
    return " ".join(each for each in ("relay top", clock, ", ".join(parts)) if each)


def _urgency(now: Mapping[str, Any]) -> tuple[int, str, str]:
    """Those that need a person come first, then what is wrong, works, waits, and is stopped."""
    state = str(now.get("state"))
    rank = (
        0 if now.get("needsPerson") else 1 if state in _BAD else 2 if now.get("job") else 4 if state == "stopped" else 3
    )
    return rank, _name(now).casefold(), _channel(now).casefold()


def _block(now: Mapping[str, Any], width: int, at: float, more: str) -> list[Line]:
    state = str(now.get("state"))
    tone = RED if state in _BAD else YELLOW if now.get("needsPerson") else _TONES.get(state, YELLOW)
    queue, chain, hub, job = _queue(now), _chain(now), _hub(now), _job(now, at)
    if width >= NARROW:
        lines = [Line(text=_row([_name(now), _channel(now), state, queue, chain, hub, job], width, more), tone=tone)]
    else:
        lines = [Line(text=f"{_name(now)} in {_channel(now)}: {state}", tone=tone)]
        lines.append(Line(text=f"  queue {queue} chain {chain} hub {hub}"))
        lines += [Line(text=f"  job {job}")] if now.get("job") else []
    for need in now.get("needsPerson") or ():
        said = f"needs you: {str(need.get('what')).replace('_', ' ')}: {printable(str(need.get('next')))}"
        # A line to type is never cut.
        lines += [Line(text=part, tone=YELLOW) for part in wrap(said, width)]
    return [*lines, *(Line(text=f"  {text}", tone=each) for text, each in _remarks(now, at))]


def _remarks(now: Mapping[str, Any], at: float) -> Iterable[tuple[str, str]]:
    if now.get("detail"):
        yield printable(str(now["detail"])), PLAIN
    if now.get("stalled"):
        yield "its agent is silent for long", YELLOW
    if active := _active(now, at):
        yield active, DIM
    if now.get("lastError") and now.get("lastError") != now.get("detail"):
        yield f"last error: {printable(str(now['lastError']))}", RED


def _name(now: Mapping[str, Any]) -> str:
    return clean_name(str(now.get("agentName") or now.get("profile")))


def _channel(now: Mapping[str, Any]) -> str:
    return clean_name(str(now.get("channelName") or now.get("channel")))


def _queue(now: Mapping[str, Any]) -> str:
    queue = now.get("queue") or {}
    received = queue.get("received") or 0
    return f"{queue.get('queued', 0)}+{received}" if received else str(queue.get("queued", "-"))


def _chain(now: Mapping[str, Any]) -> str:
    chain = now.get("chain") or {}
    paused = "!" if chain.get("paused") else ""
    return f"{chain.get('count', '-')}/{chain.get('limit', '-')}{paused}"


def _hub(now: Mapping[str, Any]) -> str:
    if (now.get("lease") or {}).get("state") == "standby":
        return "standby"
    return str((now.get("transport") or {}).get("name") or "-")


def _job(now: Mapping[str, Any], at: float) -> str:
    job = now.get("job")
    if not isinstance(job, Mapping):
        return "-"
    began = job.get("startedAt") or job.get("submittedAt")
    parts = [str(job.get("state"))]
    parts += [elapsed(at - seconds(began))] if began else []
    parts += [f"#{job['attempt']}"] if (job.get("attempt") or 1) > 1 else []
    return ", ".join(parts)


def _active(now: Mapping[str, Any], at: float) -> str | None:
    """The agent's last sign of life in the job in hand."""
    if not now.get("job") or not now.get("lastActivity"):
        return None
    note = printable(str(now["lastNote"])) if now.get("lastNote") else ""
    return f"active {short(at - seconds(now['lastActivity']))} ago{': ' if note else ''}{note}"


def elapsed(time: float) -> str:
    """How long something takes: 45s, 12m05s, 2h05m, 3d04h."""
    left = max(0, int(time))
    for (unit, size), (finer, part) in (
        (("d", 86400), ("h", 3600)),
        (("h", 3600), ("m", 60)),
        (("m", 60), ("s", 1)),
    ):
        if left >= size:
            return f"{left // size}{unit}{left % size // part:02}{finer}"
    return f"{left}s"


def _row(cells: Sequence[str], width: int, more: str) -> str:
    fixed = [pad(fit(cell, size, more), size) for cell, (_, size) in zip(cells, COLUMNS, strict=True) if size]
    used = sum(size + 1 for _, size in COLUMNS if size)
    return " ".join([*fixed, fit(cells[-1], max(0, width - used), more)]).rstrip()


def cells(text: str) -> int:
    """How many columns a text takes on a terminal."""
    return sum(_cell(each) for each in text)


def _cell(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def fit(text: str, width: int, more: str) -> str:
    """The text on one line in at most `width` columns; `more` stands where it was cut."""
    line = " ".join(text.split("\n")).replace("\t", " ")
    if cells(line) <= width:
        return line
    room, kept = width - cells(more), ""
    for each in line:
        if cells(kept) + _cell(each) > room:
            break
        kept += each
    return kept + more if room >= 0 else ""


def wrap(text: str, width: int, *, indent: str = "  ") -> list[str]:
    """The text in as many lines as it takes, broken at spaces where that is possible; later lines stand further in."""
    lines, line = [], ""
    for word in text.split():
        whole = f"{line} {word}" if line else f"{indent}{word}"
        if line and cells(whole) > width:
            lines.append(line)
            whole = f"{indent}  {word}"
        while cells(whole) > width and (part := fit(whole, width, "")):
            lines.append(part)
            whole = whole[len(part) :]
        line = whole
    return [*lines, line]


def pad(text: str, width: int) -> str:
    """The text with spaces behind it, `width` columns wide."""
    return text + " " * max(0, width - cells(text))
