"""A page of 50 new requests into the journal, empty and with 4,000 messages and jobs in it."""

import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import event

from benchmarks.figure import Figure
from relay_receiver.jobs.transitions import JobEvent
from relay_receiver.journal import binding as bindings
from relay_receiver.journal import jobs, messages
from relay_receiver.journal.binding import Binding
from relay_receiver.journal.journal import Connection, Journal
from relay_receiver.wire.message import Message

PAGE = 50
STORED = 4000
TIMES = 1.2
ME = "agent-me"
BINDING = Binding(
    agent=ME,
    agent_name="Me",
    workspace="w",
    channel="c",
    channel_name="lab",
    wake="addressed",
    adapter="command",
    argv=("/bin/true",),
    directory="/",
    network=False,
    tools=True,
    env=(),
    approvals="ask",
    approvers=(),
    approval_time=86400.0,
    chain_limit=3,
    ceiling=3600.0,
    stall=900.0,
    keep_messages=1000,
    keep_days=0,
    session=None,
    holder="h",
    subscription="s",
    chain_count=0,
    cursor=None,
    watermark=None,
    configured_at=1.0,
)


class _Undone(Exception):  # noqa: N818 - it is no error
    """Takes a page back, so that each is the first one."""


@dataclass(kw_only=True)
class _Page:
    cpu: float = 0.0
    statements: tuple[str, ...] = ()


def measure(*, quick: bool) -> list[Figure]:
    rounds = 11 if quick else 31
    with tempfile.TemporaryDirectory(prefix="relay-benchmark-") as folder:
        empty = Journal.open(Path(folder) / "empty.sqlite3")
        full = Journal.open(Path(folder) / "full.sqlite3")
        try:
            for each in (empty, full):
                each.write_now(bindings.create, BINDING)
            for first in range(0, STORED, 200):
                full.write_now(_work_off, _requests(first + 1, 200))
            pages: dict[int, list[_Page]] = {0: [], STORED: []}
            for _ in range(rounds):
                pages[0].append(_page(empty))
                pages[STORED].append(_page(full))
            scans = full.read_now(_scans, pages[STORED][0].statements)
        finally:
            empty.close()
            full.close()
    at = {stored: statistics.median(page.cpu for page in found) * 1000 for stored, found in pages.items()}
    counts = {stored: len(found[0].statements) for stored, found in pages.items()}
    return [
        Figure(
            what=f"page of {PAGE} requests, CPU, {STORED:,} in the journal",
            value=at[STORED],
            unit="ms",
            floor=at[0],
            times=TIMES,
            peer="22 / 1595",
            note=f"floor: an empty journal; n {rounds}",
        ),
        Figure(
            what=f"page of {PAGE} requests, SQL statements",
            value=counts[STORED],
            unit="statements",
            goal=counts[0],
            note="goal: as with an empty journal",
        ),
        Figure(
            what=f"page of {PAGE} requests, scans of a table",
            value=len(scans),
            unit="scans",
            goal=0,
            note="; ".join(scans),
        ),
    ]


def _page(journal: Journal) -> _Page:
    """One page, taken back afterwards."""
    page = _Page()
    arrived = _requests(STORED + 1, PAGE)

    def take(conn: Connection) -> None:
        statements: list[str] = []

        def noted(_conn: Any, _cursor: Any, statement: str, *_rest: Any) -> None:  # noqa: ANN401 - SQLAlchemy's hook
            statements.append(statement)

        event.listen(conn, "before_cursor_execute", noted)
        began = time.thread_time()
        messages.intake(conn, arrived, cursor="x", watermark=STORED + PAGE, at=2.0)
        page.cpu = time.thread_time() - began
        event.remove(conn, "before_cursor_execute", noted)
        page.statements = tuple(statements)
        raise _Undone

    try:
        journal.write_now(take)
    except _Undone:
        return page
    raise AssertionError("the page was not taken back")


def _work_off(conn: Connection, arrived: Sequence[Message]) -> None:
    """Take requests in, and bring their jobs to an end."""
    messages.intake(conn, arrived, cursor="x", watermark=arrived[-1].event, at=1.0)
    for each in arrived:
        job = jobs.of_message(conn, each.id)
        assert job is not None
        jobs.submit(conn, job.id, holder="h", fence="f", run_claim=job.claim, at=1.0)
        jobs.move(conn, job.id, JobEvent.OUTPUT, at=1.0, who="adapter", outcome="completed", text="done", body="{}")
        jobs.posted(conn, job.id, result=f"r{each.id}", at=1.0)


def _scans(conn: Connection, statements: Sequence[str]) -> list[str]:
    """Steps that walk a whole table of messages or jobs."""
    found = set()
    for statement in set(statements):
        marks = statement.count("?")
        for row in conn.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", (None,) * marks):
            if row[3].startswith("SCAN") and "INDEX" not in row[3] and "json_each" not in row[3]:
                found.add(row[3])
    return sorted(each for each in found if any(name in each for name in ("message", "job")))


def _requests(first: int, count: int) -> list[Message]:
    return [
        Message.parse(
            {
                "id": f"m{number}",
                "event": number,
                "channel": "c",
                "authorId": "human",
                "author": {"id": "person", "name": "Ann", "kind": "human"},
                "kind": "request",
                "content": f"work {number} " + "x" * 200,
                "to": ME,
                "chain": {"root": f"r{number}", "hop": 0},
                "createdAt": "2026-01-01T00:00:00.000Z",
            }
        )
        for number in range(first, first + count)
    ]
