"""Every statement that a running receiver makes finds its rows by an index, and does not read more than it needs."""

import re
from pathlib import Path

import pytest
from support_journal import arrive, asked, job_of, opened, said, statements, submitted

from relay_receiver.jobs.transitions import JobEvent
from relay_receiver.journal import approvals, chain, jobs, messages, waiting
from relay_receiver.journal import binding as bindings
from relay_receiver.journal.approvals import Decision
from relay_receiver.journal.journal import Journal
from relay_receiver.journal.tables import ApprovalState

SMALL = "binding|place|chain_base|alembic_version|json_each|opened|anon_[0-9]+|CONSTANT ROW|[0-9]+ CONSTANT ROWS|c"
"""What may be read whole: single rows, values that we bring, and counted rows that a LIMIT bounds."""
SCAN = re.compile(rf"SCAN (?!({SMALL})\b|\(subquery|\w+ VIRTUAL TABLE)")
PARTIAL = "ix_approval_unsettled|ix_job_open|ix_job_queued|ix_job_unposted|ix_message_received|ux_job_in_flight"
BOUNDED = re.compile(rf"SCAN (approval|job|message) USING (COVERING )?INDEX ({PARTIAL})\b")
"""These indexes hold only what is open or waits: that is what is wanted, or a LIMIT ends it."""
ORDERED = re.compile(r"SCAN (job|message) USING (COVERING )?INDEX (ix_job_event|ix_message_event)$")
"""Newest first along the index; only with a LIMIT, and with nothing that passes rows over."""
OLDEST = re.compile(r"SCAN message USING (COVERING )?INDEX ix_message_old$")
"""In order along the index, with a LIMIT: pruning forgets at once what it passes over, or its job stays."""
SORTED = re.compile(r"ORDER BY \+event")
"""At most 513 open jobs."""


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    journal = opened(tmp_path)
    for first in range(1, 1001, 100):
        arrive(journal, *(said(number) for number in range(first, first + 100)))
        journal.write_now(
            lambda conn: conn.exec_driver_sql("UPDATE job SET state = 'done', result = 'x' WHERE state = 'queued'")
        )
    arrive(journal, *(said(number) for number in range(2001, 2301)), said(2400, person=True))
    return journal


def everything(journal: Journal) -> None:
    """Each call that a running receiver makes."""
    arrive(journal, said(3000), said(3001, person=True))
    for fn in (jobs.next_queued, jobs.in_flight, jobs.counts, jobs.unposted, messages.newest, bindings.get):
        journal.read_now(fn)
    job = job_of(journal, 2001)
    journal.read_now(messages.get, job.message)
    journal.read_now(messages.known, job.message, job.event)
    journal.read_now(messages.context, before_event=500, count=50)
    journal.read_now(jobs.get, job.id)
    journal.read_now(jobs.ahead, job.id)
    journal.read_now(jobs.events, job.id)
    journal.read_now(jobs.expired, 1e9)
    journal.read_now(jobs.posted_after, 5)
    journal.write_now(bindings.mend, 5)
    journal.write_now(bindings.mended, 5)
    journal.read_now(jobs.list_jobs, limit=20)
    journal.read_now(jobs.list_jobs, limit=20, open_only=True)
    job = submitted(journal, job)
    journal.write_now(jobs.move, job.id, JobEvent.ACCEPTED, at=1.0, who="adapter")
    for question in ("q", "p", "o"):
        journal.write_now(waiting.ask, asked(job, question), at=1.0)
    journal.read_now(approvals.unsettled)
    journal.read_now(approvals.of, job.id)
    one, two, _ = journal.read_now(approvals.pending, job.id)
    journal.write_now(approvals.known_as, one.id, "req_1")
    journal.write_now(approvals.decide, one.id, Decision(state=ApprovalState.APPROVED, by="ann"), at=2.0)
    journal.write_now(waiting.over, one.id, at=2.0)
    journal.write_now(waiting.found, job.id, job.attempt, [two], at=2.0)
    journal.read_now(waiting.waited, job, at=3.0)
    journal.write_now(approvals.settle, one.id)
    journal.write_now(jobs.requeue, job.id, JobEvent.RETRY, at=1.0, who="adapter", why="never started")
    journal.write_now(jobs.run_closed, job.id)
    submitted(journal, job_of(journal, 2400))
    journal.write_now(chain.resume, at=1.0, who="ann")
    person = job_of(journal, 2400)
    journal.write_now(jobs.set_columns, person.id, started_at=3.0)
    journal.write_now(jobs.note, person.id, at=3.0, who="ann", why="seen")
    journal.write_now(jobs.move, person.id, JobEvent.OUTPUT, at=4.0, who="adapter", outcome="completed", body="{}")
    journal.write_now(jobs.posted, person.id, result="answer", at=5.0)
    journal.write_now(jobs.move, job.id, JobEvent.CANCEL, at=6.0, who="ann", body="{}")
    journal.write_now(messages.promote, at=7.0)
    journal.write_now(bindings.note_position, "9.b", 9)
    journal.write_now(messages.prune, keep_count=100, keep_age=1.0, at=1e9, most=50)
    journal.write_now(messages.prune, keep_count=300, keep_age=1e8, at=1.0, most=50)


def test_no_statement_reads_a_table_through(journal: Journal) -> None:
    with statements(journal) as seen:
        everything(journal)
    asked = {
        statement: parameters[0] if isinstance(parameters, list) else parameters
        for statement, parameters in seen
        if statement.startswith(("SELECT", "UPDATE", "DELETE", "WITH"))
    }
    assert len(asked) > 40
    slow = []
    for statement, parameters in asked.items():
        plan = journal.read_now(
            lambda conn, statement=statement, parameters=parameters: [
                row.detail for row in conn.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            ]
        )
        for step in plan:
            allowed = BOUNDED.match(step) or (
                (ORDERED.match(step) or OLDEST.match(step)) and " LIMIT " in statement and " IN (" not in statement
            )
            if (
                (SCAN.search(step) and not allowed)
                or "AUTOMATIC" in step
                or ("TEMP B-TREE FOR ORDER BY" in step and not SORTED.search(statement))
            ):
                slow.append((statement, step))
    assert slow == []
    journal.close()


def test_the_number_of_statements_of_each_step_is_small(journal: Journal) -> None:
    job = job_of(journal, 2001)
    run = {}
    with statements(journal) as seen:
        journal.read_now(jobs.next_queued)
    run["next"] = len(seen)
    with statements(journal) as seen:
        submitted(journal, job)
    run["submit"] = len(seen)
    with statements(journal) as seen:
        journal.write_now(jobs.move, job.id, JobEvent.ACCEPTED, at=1.0, who="adapter", execution="e")
    run["running"] = len(seen)
    with statements(journal) as seen:
        journal.write_now(jobs.move, job.id, JobEvent.OUTPUT, at=1.0, who="adapter", outcome="completed", body="{}")
    run["output"] = len(seen)
    assert run == {"next": 5, "submit": 5, "running": 4, "output": 4}
    journal.close()
