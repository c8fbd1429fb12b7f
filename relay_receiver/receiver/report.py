"""The report: what a receiver tells of itself with its lease, so that people see it at the hub. Bounded, no secrets."""

import asyncio
import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from relay_receiver import __version__
from relay_receiver.jobs.job import Job
from relay_receiver.jobs.state import JobState
from relay_receiver.jobs.text import clean
from relay_receiver.journal import approvals, jobs
from relay_receiver.journal.binding import Binding
from relay_receiver.journal.journal import Connection, JournalError
from relay_receiver.receiver import evidence, views
from relay_receiver.receiver.parts import Parts
from relay_receiver.receiver.situation import LeaseState
from relay_receiver.wire.message import iso

TEXT_CHARS = 512
"""Of each text of a report, outside its evidence sheet."""
REPORT_BYTES = 12 * 1024
"""Of a report without its evidence sheet; the hub takes 64 KiB with it."""
SHEET_BYTES = 48 * 1024
LEVELS = 8
"""Of nesting: what is deeper is told as text. A hub takes 32."""
LEAST_CHARS = 64
"""Texts are not cut below this to make a sheet fit; lists are, at last to nothing."""
KEYS = 40
"""Names of an object that are always told."""
GATHER_SECONDS = 2.0
"""How long a report may keep the renewal of the lease waiting."""
SECRET_CHARS = 6
"""A value this short is no secret, and would be found everywhere."""

Json = dict[str, Any]


class Report:
    """Gathers what is told; the evidence of an unknown job is looked for once, beside everything else."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._hidden = secrets_of(parts.binding.env)
        self._wanted = asyncio.Event()
        self._job: Job | None = None
        self._seen: tuple[str, Json] | None = None
        """What could be seen of an attempt, by its key in the spool."""
        self._last: Json | None = None

    async def now(self) -> Json | None:
        """The report of this moment; the last one where the journal cannot be read."""
        parts = self._parts
        try:
            async with asyncio.timeout(GATHER_SECONDS):
                stored = await parts.journal.read(_stored, parts.binding)
        except (JournalError, TimeoutError) as error:
            parts.log.info("report not gathered", extra={"why": str(error)})
            return self._last
        status = views.running_status(parts.situation, stored["status"])
        report = self._told(status, stored["approvals"])
        report = fit(veiled(report, self._hidden), chars=TEXT_CHARS, most=REPORT_BYTES)
        report["unknown"] = self._sheet(stored["unknown"])
        self._last = report
        return report

    async def run(self) -> None:
        """Look for evidence whenever a job is unknown, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            job = self._job
            if job is None or self._seen_of(job) is not None:
                continue
            parts = self._parts
            found = await asyncio.to_thread(
                evidence.gather,
                directory=Path(parts.binding.directory),
                spool=parts.spool,
                key=_key(job),
                keeper=job.keeper,
                since=job.submitted_at,
            )
            self._seen = _key(job), {**found, "seenAt": iso(parts.now())}
            parts.lease_in_doubt.set()

    def _told(self, status: Mapping[str, Any], asked: list[str]) -> Json:
        job, situation = status["job"], self._parts.situation
        names = ("wake", "adapter", "queue", "chain", "transport", "refused", "stalled", "lastError", "proves")
        return {
            "version": __version__,
            **{name: status[name] for name in names},
            "program": Path(self._parts.binding.argv[0]).name if self._parts.binding.argv else status["adapter"],
            "lease": LeaseState.HELD.value,  # whoever reads it has it from the holder
            "needs": status["needsPerson"],
            "approvals": asked,
            "job": None
            if job is None
            else {
                **{name: job[name] for name in ("id", "message", "state", "attempt", "startedAt", "submittedAt")},
                "lastActivity": status["lastActivity"],
                "note": situation.last_note,
            },
        }

    def _sheet(self, sheet: Json | None) -> Json | None:
        """The evidence sheet of the unknown job, with what can be seen now once that was looked for."""
        self._job = None if sheet is None else sheet.pop("row")
        if sheet is None or self._job is None:
            self._seen = None
            return None
        seen = self._seen_of(self._job)
        if seen is None:
            self._wanted.set()
        return fit(veiled({**sheet, "now": seen}, self._hidden), chars=SHEET_BYTES, most=SHEET_BYTES, cut=_cut(sheet))

    def _seen_of(self, job: Job) -> Json | None:
        return self._seen[1] if self._seen is not None and self._seen[0] == _key(job) else None


def _stored(conn: Connection, binding: Binding) -> Json:
    job = jobs.in_flight(conn)
    unknown = None
    if job is not None and job.state is JobState.UNKNOWN:
        whole = views.job_sheet(conn, job.id) or {}
        names = ("message", "attempt", "state", "author", "request", "asked", "execution", "error", "text", "history")
        unknown = {
            "row": job,
            "job": job.id,
            **{name: whole.get(name) for name in names},
            **{name: whole.get(name) for name in ("createdAt", "submittedAt", "startedAt", "evidence")},
        }
    return {
        "status": views.stored_status(conn, binding),
        "approvals": [] if job is None else [each.request for each in approvals.pending(conn, job.id) if each.request],
        "unknown": unknown,
    }


def _key(job: Job) -> str:
    return f"{job.id}.{job.attempt}"


def _cut(sheet: Mapping[str, Any]) -> str:
    return f"Some of it is cut here; the whole is on the receiver's machine: relay receiver job {sheet['job']}"


def secrets_of(names: Iterable[str]) -> dict[str, str]:
    """The values of the named environment variables, by value: what must not be told."""
    found = {os.environ[name]: name for name in names if name in os.environ}
    return {value: name for value, name in found.items() if len(value) >= SECRET_CHARS}


def veiled(report: Json, hidden: Mapping[str, str]) -> Json:
    """The report with each hidden value replaced by the name of its variable."""

    def veil(value: object) -> object:
        if isinstance(value, str):
            for secret, name in hidden.items():
                value = value.replace(secret, f"[{name}]")
            return value
        if isinstance(value, dict):
            return {veil(key): veil(each) for key, each in value.items()}
        return [veil(each) for each in value] if isinstance(value, list | tuple) else value

    return dict(report) if not hidden else {name: veil(value) for name, value in report.items()}


def fit(report: Json, *, chars: int, most: int, cut: str | None = None) -> Json:
    """The report as any hub takes it, in at most `most` bytes of JSON: long texts keep both ends, lists their start.

    Args:
        chars: of each text, at first.
        cut: said under `cut` where anything was left out.
    """
    entries = 200
    while True:
        lost: list[object] = []
        made: Json = {name: _fit(value, chars, entries, LEVELS, lost) for name, value in report.items()}
        if cut is not None:
            made["cut"] = cut if lost else None
        if _size(made) <= most:
            return made
        if chars <= LEAST_CHARS and entries == 0:
            return _without_largest(made, most)
        chars, entries = max(LEAST_CHARS, chars // 2), entries // 2


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode())


def _without_largest(made: Json, most: int) -> Json:
    left = sorted(made, key=lambda name: _size(made[name]))
    while _size(made) > most and left:
        largest = left.pop()
        made = {**made, largest: f"left out: {_size(made[largest])} bytes"}
    return made


def _fit(value: object, chars: int, entries: int, levels: int, lost: list[object]) -> object:
    if isinstance(value, dict | list | tuple) and levels == 0:
        value = json.dumps(value, default=str)
    if isinstance(value, dict):
        kept = list(value.items())[: max(entries, KEYS)]
        if len(kept) < len(value):
            lost.append(value)
        return {_text(str(k), chars, lost): _fit(v, chars, entries, levels - 1, lost) for k, v in kept}
    if isinstance(value, list | tuple):
        if len(value) > entries:
            lost.append(value)
        return [_fit(each, chars, entries, levels - 1, lost) for each in value[:entries]]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float) and math.isfinite(value) and abs(value) < 2**53:
        return value
    return _text(str(value), chars, lost)


def _text(value: str, chars: int, lost: list[object]) -> str:
    said = clean(value)
    if len(said) <= chars:
        return said
    lost.append(value)
    half = chars // 2
    return f"{said[:half]} [{len(said) - 2 * half} characters cut] {said[-half:]}"
