"""The single-instance lock, with real processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from relay_receiver.processes.identity import Life, life
from relay_receiver.processes.lock import InstanceLock

HOLD = """\
import sys
from pathlib import Path
from relay_receiver.processes.lock import InstanceLock
lock = InstanceLock(Path(sys.argv[1]))
print(lock.acquire(), flush=True)
lock.announce()
print("announced", flush=True)
sys.stdin.read()
"""


def hold(path: Path) -> "subprocess.Popen[str]":
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert [child.stdout.readline(), child.stdout.readline()] == ["True\n", "announced\n"]
    return child


def test_one_process_has_it_and_says_who_it_is(tmp_path: Path) -> None:
    with hold(tmp_path / "state" / "lock") as child:
        lock = InstanceLock(tmp_path / "state" / "lock")
        assert not lock.acquire()
        holder = lock.holder()
        assert holder is not None
        assert holder.pid == child.pid
        child.kill()


def test_it_is_gone_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "state" / "lock"
    with hold(path) as child:
        lock = InstanceLock(path)
        holder = lock.holder()
        assert holder is not None
        child.kill()
        child.wait()
        assert life(holder) is Life.GONE
        assert lock.holder() is None
        assert lock.acquire()
        lock.release()


def test_one_that_holds_it_for_a_moment_announces_nobody(tmp_path: Path) -> None:
    path = tmp_path / "state" / "lock"
    lock = InstanceLock(path)
    assert lock.acquire()
    assert InstanceLock(path).holder() is None
    lock.announce()
    holder = InstanceLock(path).holder()
    assert holder is not None
    assert holder.pid == os.getpid()
    lock.release()
    assert InstanceLock(path).holder() is None
    assert InstanceLock(path).acquire()


def test_a_child_does_not_inherit_it(tmp_path: Path) -> None:
    path = tmp_path / "state" / "lock"
    lock = InstanceLock(path)
    assert lock.acquire()
    with subprocess.Popen(["sleep", "6000"], close_fds=False) as child:
        lock.release()
        assert InstanceLock(path).acquire()
        child.kill()


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "state" / "lock").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic"):
        InstanceLock(tmp_path / "state" / "lock").acquire()
    assert (tmp_path / "victim").read_text() == "precious"


@pytest.mark.parametrize("content", [b"", b"{", b"\xff" * 300, b"[1, 2]", b'{"pid": 1}'])
def test_what_cannot_be_read_names_nobody(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state" / "lock"
    path.parent.mkdir(mode=0o700)
    path.write_bytes(content)
    assert InstanceLock(path).holder() is None
    assert InstanceLock(path).acquire()
