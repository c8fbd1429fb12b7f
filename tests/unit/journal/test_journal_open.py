import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from support_journal import BINDING, arrive, job_of, machine, opened, said, statements

from relay_receiver.journal import binding as bindings
from relay_receiver.journal import place, schema
from relay_receiver.journal.journal import (
    CopiedState,
    Journal,
    JournalCorrupt,
    JournalError,
    NewerSchema,
    adopt,
)


def pragma(journal: Journal, name: str) -> object:
    return journal.read_now(lambda conn: conn.exec_driver_sql(f"PRAGMA {name}").scalar_one())


def test_it_is_durable_and_checked(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    assert pragma(journal, "journal_mode") == "wal"
    assert pragma(journal, "synchronous") == 2
    assert pragma(journal, "foreign_keys") == 1
    assert pragma(journal, "busy_timeout") == 5000
    journal.close()
    journal.close()


def test_its_files_are_private_from_the_start(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    arrive(journal, said(1))
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()}
    assert set(modes.values()) == {0o600}
    assert len(modes) == 3
    journal.close()


def test_its_file_was_never_readable_by_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the mode was mended, not given")

    before = os.umask(0)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(os, "chmod", refuse)
            patched.setattr(os, "fchmod", refuse)
            opened(tmp_path).close()
    finally:
        os.umask(before)
    path = tmp_path / "journal.sqlite3"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    opened(tmp_path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_opening_it_a_second_time_in_one_process_drops_no_lock(tmp_path: Path) -> None:
    first = opened(tmp_path)
    opened(tmp_path).close()
    code = (
        "import sqlite3, sys\n"
        "conn = sqlite3.connect(sys.argv[1], timeout=0)\n"
        "try: print(conn.execute('PRAGMA journal_mode = DELETE').fetchone())\n"
        "except sqlite3.OperationalError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "journal.sqlite3"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "database is locked\n"
    first.close()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.touch()
    (tmp_path / "journal.sqlite3").symlink_to(real)
    with pytest.raises(JournalError) as refused:
        Journal.open(tmp_path / "journal.sqlite3")
    assert refused.value.code == "journal_unusable"


def test_what_was_stored_is_there_again(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    arrive(journal, said(1))
    journal.close()
    journal = opened(tmp_path)
    assert journal.read_now(bindings.get) == BINDING.evolve(cursor="1.a", watermark=1)
    assert job_of(journal, 1).event == 1
    journal.close()


@pytest.mark.parametrize("how", ["copy", "moved machine"])
def test_a_copied_state_is_refused_until_it_is_adopted(tmp_path: Path, how: str) -> None:
    opened(tmp_path).close()
    path = tmp_path / "journal.sqlite3"
    here = machine
    if how == "copy":
        path = tmp_path / "copy" / "journal.sqlite3"
        path.parent.mkdir()
        shutil.copyfile(tmp_path / "journal.sqlite3", path)
    else:

        def here() -> str:
            return "machine-2"

    for _ in range(2):
        with pytest.raises(CopiedState) as refused:
            Journal.open(path, machine=here)
        assert "relay receiver adopt" in (refused.value.hint or "")
    holder = adopt(path, machine=here)
    journal = Journal.open(path, machine=here)
    binding = journal.read_now(bindings.get)
    assert binding is not None
    assert binding.holder == holder != BINDING.holder
    journal.close()


def test_the_original_goes_on_after_a_copy_was_adopted(tmp_path: Path) -> None:
    opened(tmp_path).close()
    shutil.copyfile(tmp_path / "journal.sqlite3", tmp_path / "copy.sqlite3")
    adopt(tmp_path / "copy.sqlite3", machine=machine)
    opened(tmp_path).close()


def test_a_backup_restored_over_the_original_is_refused(tmp_path: Path) -> None:
    opened(tmp_path).close()
    path = tmp_path / "journal.sqlite3"
    backup = schema.back_up(path, found=schema.HEAD)
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    path.write_bytes(backup.read_bytes())
    with pytest.raises(CopiedState):
        Journal.open(path, machine=machine)


def test_a_restart_may_renumber_devices() -> None:
    here = place.Place(machine="m", device="1", filesystem="77", inode="5")
    same = place.Place(machine="m", device="2", filesystem="77", inode="5")
    assert here.is_same(same)
    for other in (
        place.Place(machine="m", device="2", filesystem="78", inode="5"),
        place.Place(machine="m", device="1", filesystem="77", inode="6"),
        place.Place(machine="n", device="1", filesystem="77", inode="5"),
        place.Place(machine="m", device="2", filesystem="0", inode="5"),
    ):
        assert not here.is_same(other)
    assert not place.Place(machine="m", device="1", filesystem="0", inode="5").is_same(
        place.Place(machine="m", device="2", filesystem="0", inode="5")
    )


def test_adopting_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(JournalError) as refused:
        adopt(tmp_path / "journal.sqlite3")
    assert refused.value.code == "not_configured"
    assert not list(tmp_path.iterdir())


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite3"
    path.write_bytes(b"this is no database, whatever its name says" * 100)
    with pytest.raises(JournalCorrupt) as refused:
        Journal.open(path)
    assert str(path) in refused.value.sentence


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite3"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE theirs (x)")
    other.close()
    with pytest.raises(JournalCorrupt):
        Journal.open(path)


def test_a_newer_schema_is_refused_with_a_sentence(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    journal.write_now(lambda conn: conn.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'"))
    journal.close()
    with pytest.raises(NewerSchema) as refused:
        Journal.open(tmp_path / "journal.sqlite3", machine=machine)
    assert "9999" in refused.value.sentence
    assert not list(tmp_path.glob("*.before-*"))


def test_neither_a_first_start_nor_one_at_head_imports_alembic(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from relay_receiver.journal.journal import Journal\n"
        "for _ in range(2): Journal.open(Path(sys.argv[1])).close()\n"
        "print(sorted(name for name in sys.modules if name.split('.')[0] == 'alembic'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "journal.sqlite3"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_opening_at_head_takes_few_statements_and_writes_nothing(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    with statements(journal) as seen:
        journal.read_now(bindings.get)
    assert len(seen) == 2
    journal.close()
    before = (tmp_path / "journal.sqlite3").read_bytes()
    opened(tmp_path).close()
    assert (tmp_path / "journal.sqlite3").read_bytes() == before
