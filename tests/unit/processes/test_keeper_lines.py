"""The numbered lines of an agent: read from anywhere, cut, and waiting for room."""

import os
from pathlib import Path

import pytest

from relay_receiver.processes.keeper_lines import CHUNK, Lines


def filled(tmp_path: Path, *lines: bytes) -> Lines:
    made = Lines(str(tmp_path / "a.lines"))
    for line in lines:
        made.append("out", line)
    assert made.write()
    return made


def everything(lines: Lines, after: int = 0) -> list[bytes]:
    found, offset = b"", 0
    while True:
        records, offset, after = lines.read(offset, after)
        if not records:
            return found.splitlines()
        found += records


def test_they_are_read_whole_and_in_order_however_long(tmp_path: Path) -> None:
    sizes = [0, 1, CHUNK - 10, CHUNK, 3 * CHUNK, 5]
    lines = filled(tmp_path, *(b"x" * size for size in sizes))
    assert [len(record) - len(b"1 out ") for record in everything(lines)] == sizes


@pytest.mark.parametrize("after", [0, 1, 500, 999, 1000, 5000])
def test_they_are_read_from_any_number_on(tmp_path: Path, after: int) -> None:
    lines = filled(tmp_path, *(b"y" * 1000 for _ in range(1000)))
    numbers = [int(record.split()[0]) for record in everything(lines, after)]
    assert numbers == list(range(after + 1, 1001))


def test_what_is_half_written_is_not_read_yet(tmp_path: Path) -> None:
    lines = filled(tmp_path, b"one")
    lines.append("out", b"two")
    whole, lines.unwritten = lines.unwritten, bytearray(b"2 out t")
    assert lines.write()
    records, offset, after = lines.read(0, 0)
    assert records == b"1 out one\n"
    assert lines.read(offset, after) == (b"", offset, 1)
    lines.unwritten = whole[len(b"2 out t") :]
    assert lines.write()
    assert lines.read(offset, after)[0] == b"2 out two\n"


def test_a_full_disk_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    lines = filled(tmp_path, b"one")
    good, lines._file = lines._file, os.open("/dev/full", os.O_RDWR)
    lines.append("in", b"two")
    assert not lines.write()
    assert not lines.write()
    os.close(lines._file)
    lines._file = good
    lines.append("out", b"three")
    assert lines.write()
    assert everything(lines) == [b"1 out one", b"2 in two", b"3 out three"]


@pytest.mark.parametrize("through", [0, 1, 2, 3, 9])
def test_a_cut_keeps_what_comes_after_it(tmp_path: Path, through: int) -> None:
    lines = filled(tmp_path, b"a", b"b", b"c")
    assert lines.cut(through)
    assert everything(lines) == [b"1 out a", b"2 out b", b"3 out c"][through:]
    assert lines.size == (tmp_path / "a.lines").stat().st_size
    assert lines.append("out", b"d") == 4
    assert lines.write()
    assert everything(lines)[-1] == b"4 out d"


def test_a_cut_that_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    lines = filled(tmp_path, b"a", b"b")
    (tmp_path / "a.lines.new").mkdir()
    assert not lines.cut(1)
    assert everything(lines) == [b"1 out a", b"2 out b"]
    (tmp_path / "a.lines.new").rmdir()
    assert lines.cut(1)
    assert everything(lines) == [b"2 out b"]
