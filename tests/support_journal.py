"""What tests of the journal share: a binding, messages, and a look at the SQL that runs."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import event

from relay_receiver.journal import approvals, jobs, messages
from relay_receiver.journal import binding as bindings
from relay_receiver.journal.approvals import Approval
from relay_receiver.journal.binding import Binding
from relay_receiver.journal.journal import Journal
from relay_receiver.wire.message import Message

ME = "agent-me"
BINDING = Binding(
    agent=ME,
    agent_name="Me",
    workspace="w1",
    channel="c1",
    channel_name="lab",
    wake="addressed",
    adapter="command",
    argv=("/bin/true", "--flag"),
    directory="/srv/project",
    network=False,
    tools=True,
    env=("TOKEN",),
    approvals="ask",
    approvers=(),
    approval_time=86400.0,
    chain_limit=3,
    ceiling=3600.0,
    stall=900.0,
    keep_messages=1000,
    keep_days=0,
    session=None,
    holder="h1",
    subscription="s1",
    chain_count=0,
    cursor=None,
    watermark=None,
    configured_at=1.0,
)


def machine() -> str:
    return "machine-1"


def opened(path: Path, **changes: Any) -> Journal:
    """A journal with a binding, made or opened."""
    journal = Journal.open(path / "journal.sqlite3", machine=machine)
    if journal.read_now(bindings.get) is None:
        journal.write_now(bindings.create, BINDING.evolve(**changes))
    return journal


def said(number: int, **changes: Any) -> Message:
    """A message of the channel: an agent's request to me unless told otherwise."""
    data: dict[str, Any] = {
        "id": f"m{number}",
        "event": number,
        "channel": "c1",
        "author": {"id": "agent-other", "name": "Other", "kind": "agent"},
        "kind": "request",
        "content": f"work {number}",
        "to": ME,
        "chain": {"root": f"r{number}", "hop": 1},
        "createdAt": "2026-01-01T00:00:00.000Z",
    }
    if changes.pop("person", False):
        data |= {"authorId": "human", "author": {"id": "person-1", "name": "Ann", "kind": "human"}}
        data["chain"] = {"root": f"r{number}", "hop": 0}
    return Message.parse(data | changes)


def arrive(journal: Journal, *arrived: Message, at: float = 10.0) -> messages.Intake:
    """Take messages in, with a cursor after the last one."""
    last = max((each.event for each in arrived), default=0)
    return journal.write_now(messages.intake, arrived, cursor=f"{last}.a", watermark=last, at=at)


def job_of(journal: Journal, number: int) -> Any:
    """The job of message `number`."""
    return journal.read_now(jobs.of_message, f"m{number}")


def submitted(journal: Journal, job: Any, at: float = 20.0) -> Any:
    """The job once its hand-over is committed."""
    return journal.write_now(jobs.submit, job.id, holder="h1", fence="f1", run_claim=job.claim, at=at)


def asked(job: Any, question: str = "q1", **changes: Any) -> Approval:
    """A question of that attempt of a job."""
    wanted: dict[str, Any] = {"kind": "approval", "title": f"do {question}?", "action": {"kind": "command"}}
    given = {"schema": None, "approvers": (), "at": 5.0, **wanted, **changes}
    return approvals.new(job=job.id, attempt=job.attempt, question=question, **given)


@contextlib.contextmanager
def statements(journal: Journal) -> Iterator[list[tuple[str, Any]]]:
    """Collect each SQL statement that runs inside, with its parameters."""
    seen: list[tuple[str, Any]] = []

    def note(_conn: Any, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        seen.append((statement, parameters))

    engine = journal._conn.engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(engine, "before_cursor_execute", note)


@contextlib.contextmanager
def traced(journal: Journal) -> Iterator[list[str]]:
    """Collect what SQLite itself runs, BEGIN and COMMIT included, one line for each row of a bulk insert."""
    seen: list[str] = []
    driver = journal._conn.connection.driver_connection
    assert driver is not None
    driver.set_trace_callback(seen.append)
    try:
        yield seen
    finally:
        driver.set_trace_callback(None)
