"""Private files: who may read them, and what is there after each step."""

import os
import stat
from pathlib import Path

import pytest

from relay_receiver.processes import files
from relay_receiver.processes.files import NotPrivate


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_directory_and_its_missing_parents_are_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made = files.private_dir(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(before)
    assert [mode(path) for path in (made, made.parent, made.parent.parent)] == [0o700] * 3
    assert files.private_dir(made) == made


def test_a_directory_that_is_open_to_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    with pytest.raises(NotPrivate, match="open to others") as refused:
        files.private_dir(tmp_path / "open")
    assert refused.value.hint


def test_a_link_in_place_of_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(NotPrivate, match="not a directory"):
        files.private_dir(tmp_path / "link")


def test_what_belongs_to_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "theirs").mkdir(mode=0o700)
    files.write_private(tmp_path / "file", b"x")
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(NotPrivate, match="another user"):
        files.private_dir(tmp_path / "theirs")
    with pytest.raises(NotPrivate, match="another user"):
        files.read_private(tmp_path / "file")


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_is_written_privately_and_read_back(tmp_path: Path, *, durable: bool) -> None:
    path = tmp_path / "file"
    before = os.umask(0)
    try:
        files.write_private(path, b"one", durable=durable)
        files.write_private(path, b"two", durable=durable)
    finally:
        os.umask(before)
    assert files.read_private(path) == b"two"
    assert mode(path) == 0o600
    assert [found.name for found in tmp_path.iterdir()] == ["file"]


def test_a_durable_file_is_synced_before_it_gets_its_name_and_its_directory_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    path = tmp_path / "file"

    def fsync(descriptor: int) -> None:
        kind = "directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        seen.append((kind, path.exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    files.write_private(path, b"data")
    assert seen == [("file", False), ("directory", True)]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    files.write_private(path, b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.write_private(path, b"new")
    assert path.read_bytes() == b"old"
    assert [found.name for found in tmp_path.iterdir()] == ["file"]


def test_a_link_in_place_of_a_file_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"precious")
    (tmp_path / "file").symlink_to("victim")
    files.write_private(tmp_path / "file", b"data")
    assert (tmp_path / "victim").read_bytes() == b"precious"
    assert not (tmp_path / "file").is_symlink()


def test_what_is_not_a_private_file_is_not_read(tmp_path: Path) -> None:
    files.write_private(tmp_path / "real", b"x")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "open").write_bytes(b"x")
    (tmp_path / "open").chmod(0o644)
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name in ("link", "open", "pipe", "."):
        with pytest.raises(NotPrivate):
            files.read_private(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        files.read_private(tmp_path / "none")
