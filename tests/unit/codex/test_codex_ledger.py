import stat
from pathlib import Path

import pytest

from relay_receiver.adapters.codex_ledger import Ledger, codex_home, identity_of
from relay_receiver.adapters.codex_reference import Reference


def spool(tmp_path: Path) -> Path:
    folder = tmp_path / "spool"
    folder.mkdir(mode=0o700)
    return folder


def test_what_is_saved_is_loaded_and_private(tmp_path: Path) -> None:
    folder = spool(tmp_path)
    ledger = Ledger.load(folder)
    assert not ledger.present
    ledger.key, ledger.thread, ledger.home, ledger.turn = "j.1", "T", [1, 2], {"started": True}
    ledger.save()
    again = Ledger.load(folder)
    assert again == ledger
    assert again.present
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"key": "j.1"}'])
def test_a_damaged_record_is_no_record(tmp_path: Path, text: str) -> None:
    folder = spool(tmp_path)
    Ledger.load(folder).save()
    (folder / "agent.ledger").write_text(text)
    ledger = Ledger.load(folder)
    assert (ledger.present, ledger.key, ledger.boot) == (False, "", "")


def test_a_record_that_another_could_write_is_no_record(tmp_path: Path) -> None:
    folder = spool(tmp_path)
    ledger = Ledger.load(folder)
    ledger.save()
    ledger.path.chmod(0o666)
    assert not Ledger.load(folder).present


def test_codex_home_is_named_or_in_the_home_directory(tmp_path: Path) -> None:
    assert codex_home({"HOME": "/home/x"}) == Path("/home/x/.codex")
    assert codex_home({"HOME": "/home/x", "CODEX_HOME": "/c"}) == Path("/c")
    found = tmp_path.stat()
    assert identity_of(tmp_path) == [found.st_dev, found.st_ino]
    assert identity_of(tmp_path / "none") == []


@pytest.mark.parametrize("text", [None, "", "{", "[]", "5", '{"since": "x"}'])
def test_a_reference_that_is_not_ours_is_an_empty_one(text: str | None) -> None:
    assert Reference.parse(text) == Reference()


def test_a_reference_is_read_as_it_was_written() -> None:
    reference = Reference(thread="T", turn="U", since=7)
    assert Reference.parse(reference.to_json()) == reference
