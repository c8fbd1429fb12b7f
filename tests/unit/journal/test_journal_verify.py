import sqlite3
from pathlib import Path

import pytest
from support_parts import Bench, message

from relay_receiver.jobs.transitions import JobEvent
from relay_receiver.journal import jobs
from relay_receiver.journal.errors import JournalCorrupt, JournalError
from relay_receiver.journal.verify import verify

FILE = "journal.sqlite3"


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A journal with jobs on their way, written and closed."""
    bench = Bench(tmp_path)
    bench.arrive(*(message(number) for number in range(1, 200)))
    first = bench.journal.read_now(jobs.of_message, "m1")
    assert first is not None
    bench.journal.write_now(jobs.move, first.id, JobEvent.CANCEL, at=1.0, who="a test")
    bench.journal.close()
    return tmp_path / FILE


def change(path: Path, words: str) -> None:
    conn = sqlite3.connect(path)
    with conn:
        conn.execute(words)
    conn.close()


def test_a_journal_at_work_is_whole_and_nothing_is_written(whole: Path) -> None:
    before = whole.read_bytes()
    assert verify(whole) == []
    assert whole.read_bytes() == before


def test_a_job_that_is_not_where_its_history_says_is_told(whole: Path) -> None:
    change(whole, "UPDATE job SET state = 'failed' WHERE message = 'm1'")
    [fault] = verify(whole)
    assert "is failed, and its history ends with cancelled" in fault


def test_a_row_that_refers_to_nothing_is_told(whole: Path) -> None:
    change(whole, "DELETE FROM message WHERE id = 'm2'")
    assert any("refers to a message that is not there" in each for each in verify(whole))


def test_pages_that_were_overwritten_are_told(whole: Path) -> None:
    data = bytearray(whole.read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 4096] = b"\x5a" * 4096
    whole.write_bytes(data)
    assert "damaged" in _said(whole)


def _said(path: Path) -> str:
    """What is found; some damage cannot be read past."""
    try:
        return " ".join(verify(path))
    except JournalCorrupt as error:
        return error.sentence


def test_what_is_no_journal_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database, but long enough to be looked at" * 100)
    with pytest.raises(JournalCorrupt):
        verify(tmp_path / "text")
    with pytest.raises(JournalError):
        verify(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
