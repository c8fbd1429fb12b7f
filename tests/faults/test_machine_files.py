"""Files of a receiver that are damaged, emptied, newer or not to be written: mended, or said in one sentence."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest
from support_time import WITHIN
from support_world import World, until, world

from relay_receiver.receiver import verbs
from relay_receiver.receiver.target import Target
from relay_receiver.wire.errors import RelayError


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, Target]]:
    """A hub, and bob with a receiver that is configured."""
    with world(tmp_path_factory.mktemp("files")) as w:
        yield w, w.agent("bob")


@pytest.fixture(autouse=True)
def at_home(place: tuple[World, Target], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One world for all cases of this file; a file that a case damaged is whole again after it."""
    w, bob = place
    monkeypatch.setenv("RELAY_HOME", str(w.home))
    paths = [
        each for folder in (w.home / "profiles" / "bob", bob.folder) for each in folder.iterdir() if each.is_file()
    ]
    whole = {path: path.read_bytes() for path in paths}
    yield
    with suppress(RelayError):
        verbs.stop(bob, now=True)
    for side in ("-wal", "-shm"):
        (bob.folder / f"journal.sqlite3{side}").unlink(missing_ok=True)
    for path, content in whole.items():
        path.write_bytes(content)
        path.chmod(0o600)


def works(w: World, bob: Target) -> None:
    asked = w.ask(bob, "task=this")
    w.until_stage(asked["id"], "answered")


def refused(bob: Target) -> RelayError:
    """What a start says."""
    with pytest.raises(RelayError) as told:
        verbs.start(bob)
    assert told.value.hint
    assert "\n" not in told.value.sentence
    return told.value


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"profile": "bob"}', b"\xff\xfe", b'{"profile": "bo', b"[" * 100_000]
)
def test_damaged_facts_of_a_binding_are_put_aside_and_written_again(
    place: tuple[World, Target], content: bytes
) -> None:
    _, bob = place
    before = bob.facts()
    (bob.folder / "binding.json").write_bytes(content)
    assert [each["channelName"] for each in verbs.list_all()["receivers"]] == ["lab"]
    assert bob.facts() == before
    assert (bob.folder / "binding.json.damaged").read_bytes() == content
    assert verbs.status(bob)["state"] == "stopped"


def test_damaged_facts_are_mended_beside_a_receiver_that_works(place: tuple[World, Target]) -> None:
    w, bob = place
    verbs.start(bob)
    (bob.folder / "binding.json").write_bytes(b"")
    works(w, bob)
    until(lambda: verbs.status(bob)["state"] == "ready", what="a receiver at rest")
    verbs.restart(bob)
    works(w, bob)


def test_where_the_journal_cannot_tell_either_configure_is_named(place: tuple[World, Target]) -> None:
    _, bob = place
    (bob.folder / "binding.json").write_bytes(b"")
    (bob.folder / "journal.sqlite3").write_bytes(b"garbage" * 1000)
    assert "configure" in (refused(bob).hint or "")


@pytest.mark.parametrize(
    ("name", "content"), [("profile.json", b"[]"), ("secrets.json", b"\xff"), ("secrets.json", b"")]
)
def test_a_damaged_profile_is_named(place: tuple[World, Target], name: str, content: bytes) -> None:
    w, bob = place
    (w.home / "profiles" / "bob" / name).write_bytes(content)
    told = refused(bob)
    assert told.code == "bad_profile"
    assert name in told.sentence


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"", "not_configured"), (b"garbage" * 1000, "journal_corrupt"), (b"SQLite", "journal_corrupt")],
)
def test_a_damaged_journal_is_named_and_binding_anew_gets_to_work(
    place: tuple[World, Target], content: bytes, code: str
) -> None:
    w, bob = place
    for side in ("-wal", "-shm"):
        (bob.folder / f"journal.sqlite3{side}").unlink(missing_ok=True)
    journal = bob.folder / "journal.sqlite3"
    journal.write_bytes(content)
    told = refused(bob)
    assert told.code == code
    assert "configure" in (told.hint or "")
    assert str(journal) in told.sentence
    journal.rename(bob.folder / "aside")
    w.bind("bob")
    verbs.start(bob)
    works(w, bob)
    verbs.stop(bob)
    (bob.folder / "aside").replace(journal)


def test_a_journal_of_a_newer_version_is_left_alone(place: tuple[World, Target]) -> None:
    _, bob = place
    with closing(sqlite3.connect(bob.folder / "journal.sqlite3")) as conn:
        conn.execute("UPDATE alembic_version SET version_num = '9999'")
        conn.commit()
    assert refused(bob).code == "newer_schema"


def test_a_damaged_page_of_the_journal_is_said_and_nothing_is_run_on_a_guess(place: tuple[World, Target]) -> None:
    w, bob = place
    before = len(w.starts())
    with closing(sqlite3.connect(bob.folder / "journal.sqlite3")) as conn:
        conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        size = conn.execute("PRAGMA page_size").fetchone()[0]
        root = conn.execute("SELECT rootpage FROM sqlite_master WHERE name = 'job'").fetchone()[0]
    with (bob.folder / "journal.sqlite3").open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(os.urandom(size))
    verbs.start(bob)
    w.ask(bob, "task=never")

    until(lambda: verbs.status(bob)["state"] == "failing", what="the damage")
    told = verbs.status(bob)["needsPerson"]
    assert {each["what"] for each in told} == {"fault"}
    assert "journal.sqlite3 is damaged" in told[0]["why"]
    assert "configure" in told[0]["next"]
    assert len(w.starts()) == before


def test_a_state_that_cannot_be_written_is_said_by_status_start_and_doctor(place: tuple[World, Target]) -> None:
    _, bob = place
    lock = bob.folder / "lock"
    lock.unlink()
    lock.symlink_to("/nowhere/lock")
    try:
        assert refused(bob).code == "not_writable"
        with pytest.raises(RelayError) as told:
            verbs.status(bob)
        assert told.value.code == "not_writable"
        assert told.value.hint
        argv = [sys.executable, "-m", "relay_receiver.cli.main", "doctor", "--profile", "bob", "--output", "json"]
        checked = subprocess.run(argv, capture_output=True, check=False, timeout=WITHIN)
        assert any("cannot be used" in each["detail"] for each in json.loads(checked.stdout)["checks"])
    finally:
        lock.unlink()


@pytest.mark.parametrize("content", [b"", b"[]", b'{"rev": 1}', b"\xff"])
def test_a_damaged_declaration_stands_in_nobodys_way(place: tuple[World, Target], content: bytes) -> None:
    w, bob = place
    path = bob.folder / "declaration.json"
    path.write_bytes(content)
    path.chmod(0o600 if content else 0o644)
    try:
        verbs.start(bob)
        works(w, bob)
        assert "presence failed" not in (bob.folder / "receiver.log").read_text()
    finally:
        path.unlink()
