from pathlib import Path

import pytest
from support_parts import Bench, message

from relay_receiver.journal.errors import JournalError
from relay_receiver.journal.export import export


def test_every_row_comes_out_beside_an_open_journal_and_nothing_is_written(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.arrive(message(1), message(2, kind="message"))
    path = tmp_path / "journal.sqlite3"
    before = path.read_bytes()
    rows = list(export(path))
    assert {row["id"] for row in rows if row["table"] == "message"} == {"m1", "m2"}
    assert [row["message"] for row in rows if row["table"] == "job"] == ["m1"]
    assert [row["agent"] for row in rows if row["table"] == "binding"] == ["a_me"]
    assert path.read_bytes() == before
    bench.journal.close()


def test_a_journal_that_is_not_there_is_said_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(JournalError):
        list(export(tmp_path / "nothing"))
    assert not (tmp_path / "nothing").exists()
