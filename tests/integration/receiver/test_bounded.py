"""What a receiver takes on the disk does not grow with what passes through it."""

from pathlib import Path

from support_journal import opened
from support_world import until, world

from relay_receiver.journal.engine import WAL_LIMIT_BYTES
from relay_receiver.receiver import verbs
from relay_receiver.receiver.target import SPOOL
from relay_receiver.testing.traffic import flow


def test_the_journal_and_its_log_stop_growing(tmp_path: Path) -> None:
    journal = opened(tmp_path, channel="c")
    at = {size.messages: size for size in flow(journal, 4000, keep=200)}
    assert at[4000].file <= at[1500].file * 1.1
    assert at[4000].wal <= 2 * WAL_LIMIT_BYTES
    left = [
        journal.read_now(lambda conn, table=table: conn.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one())  # noqa: S608 - constants
        for table in ("message", "job", "chain_base")
    ]
    assert max(left[:2]) <= 1000
    assert left[2] <= 1100
    journal.close()


def test_the_spool_is_empty_again_however_many_jobs_went_through(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        bob = w.agent("bob")
        verbs.start(bob)
        for message in [w.ask(bob, f"task={number}")["id"] for number in range(10)]:
            w.until_stage(message, "answered")
        until(lambda: not list((bob.folder / SPOOL).iterdir()), what="an empty spool")
