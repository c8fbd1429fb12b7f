"""The flat directory of keepers' files: who decides about an attempt, what is put aside, and what may go."""

import json
from pathlib import Path

import pytest

from relay_receiver.processes import files, spool
from relay_receiver.processes.ending import End
from relay_receiver.processes.identity import Life, boot_id, life
from relay_receiver.processes.kept import Kept

HEAD = {"exit": 0, "signal": None, "overflow": False, "leftovers": False, "stdout": 2, "stderr": 3}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return files.private_dir(tmp_path / "spool")


def test_whoever_claims_first_decides_and_asking_again_changes_nothing(folder: Path) -> None:
    assert spool.give_up(folder, "j.1")
    assert spool.give_up(folder, "j.1")
    (folder / "k.1.claim").write_bytes(b'{"pid": 1, "boot": "b"}\n')
    assert not spool.give_up(folder, "k.1")
    assert not spool.give_up(folder, "k.1")
    assert sorted(path.name for path in folder.iterdir()) == ["j.1.claim", "k.1.claim"]


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"\xff"])
def test_a_claim_that_cannot_be_read_is_a_keepers(folder: Path, damage: bytes) -> None:
    (folder / "j.1.claim").write_bytes(damage)
    assert not spool.give_up(folder, "j.1")


def test_a_sweep_takes_all_but_what_is_kept_and_what_was_given_up_in_this_boot(folder: Path, tmp_path: Path) -> None:
    runtime = files.private_dir(tmp_path / "run")
    names = [
        "j.1.claim",
        "j.1.end",
        "j.1.keeper",
        "j.1.job",
        "j.1.end.unreadable-1",
        "j.10.end",
        "k.1.job",
        "k.1.claim",
    ]
    for name in names:
        (folder / name).write_bytes(b"{}")
    assert spool.give_up(folder, "given.1")
    (folder / "old.1.claim").write_text(json.dumps({"givenUp": "another boot"}))
    mine, others, control = (
        spool.socket_path(runtime, "k.1"),
        spool.socket_path(runtime, "j.1"),
        runtime / "control.sock",
    )
    for path in (mine, others, control):
        path.touch()
    spool.sweep(folder, runtime, keep={"k.1"})
    assert sorted(path.name for path in folder.iterdir()) == ["given.1.claim", "k.1.claim", "k.1.job"]
    assert set(runtime.iterdir()) == {mine, control}
    assert spool.sweep(tmp_path / "never made", tmp_path / "nor this") == 0


def test_an_end_is_read_only_whole(folder: Path) -> None:
    whole = json.dumps(HEAD).encode() + b"\n" + b"\n\xff" + b"log"
    end = End.parse(whole)
    assert (end.stdout, end.stderr, end.exit) == (b"\n\xff", b"log", 0)
    for cut in range(len(whole)):
        files.write_private(folder / "j.1.end", whole[:cut])
        assert End.read(folder, "j.1") is None
        assert not (folder / "j.1.end").exists()
    assert len(spool.unreadable(folder, "j.1")) == len(whole)
    assert spool.unreadable(folder, "j.10") == []


def test_an_end_that_others_can_write_is_put_aside(folder: Path) -> None:
    path = folder / "j.1.end"
    path.write_bytes(json.dumps({**HEAD, "stdout": 0, "stderr": 0}).encode() + b"\n")
    path.chmod(0o666)
    assert End.read(folder, "j.1") is None
    path.symlink_to("/etc/passwd")
    assert End.read(folder, "j.1") is None


def test_a_keepers_record_is_read_as_far_as_it_was_written(folder: Path) -> None:
    told = {"pid": 7, "started": 1.5, "boot": boot_id(), "nonce": "n", "child": None, "childStarted": None}
    first = json.dumps(told).encode() + b"\n"
    second = json.dumps({**told, "child": 8, "childStarted": 2.5}).encode() + b"\n"
    path = folder / "j.1.keeper"
    assert Kept.read(folder, "j.1") is None
    for cut in range(len(first)):
        path.write_bytes(first[:cut])
        assert Kept.read(folder, "j.1") is None
    for cut in range(len(second)):
        path.write_bytes(first + second[:cut])
        kept = Kept.read(folder, "j.1")
        assert kept is not None
        assert (kept.keeper.pid, kept.keeper.nonce, kept.child) == (7, "n", None)
    path.write_bytes(first + second)
    kept = Kept.read(folder, "j.1")
    assert kept is not None
    assert kept.child is not None
    assert (kept.child.pid, kept.child.started, kept.child.nonce) == (8, 2.5, "n")


def test_a_start_time_that_is_not_known_proves_nothing_about_who_lives(folder: Path) -> None:
    told = {"pid": 1, "started": 0.0, "boot": boot_id(), "nonce": "n", "child": None, "childStarted": None}
    (folder / "j.1.keeper").write_text(json.dumps(told) + "\n")
    kept = Kept.read(folder, "j.1")
    assert kept is not None
    assert life(kept.keeper) is Life.UNKNOWN
    assert not kept.keeper_gone()
