"""Power cuts of a keeper's spool: whatever of it came to the disk, nothing that started is ever run again."""

import asyncio
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from support_faults import CrashWorld, crash_world
from support_world import until

from relay_receiver.processes import command, identity, spool
from relay_receiver.processes.command import KeptCommand, Lost, NotStarted
from relay_receiver.processes.ending import End
from relay_receiver.receiver.target import SPOOL

POINTS = (
    *("keeper.claim.before", "keeper.claim.linked", "keeper.spawn.before", "keeper.spawn.after"),
    *("keeper.started.before", "keeper.end.before", "keeper.end.after"),
)
DURABLE_CLAIM = POINTS[2:]
"""From here on the claim has been synced: it is there after any power cut."""
DURABLE_END = ("keeper.end.after",)


def cuts(folder: Path, key: str, point: str) -> Iterator[tuple[str, dict[str, bytes]]]:
    """What may be left of an attempt's files: all, or without what was not synced yet, or that in part."""
    whole = {path.name: path.read_bytes() for path in folder.iterdir() if path.name.startswith(f"{key}.")}
    claim, end, kept = f"{key}.claim", f"{key}.end", f"{key}.keeper"
    synced = {*((claim,) if point in DURABLE_CLAIM else ()), *((end,) if point in DURABLE_END else ())}
    yield "all of it", whole
    yield "only what was synced", {name: data for name, data in whole.items() if name in synced}
    for name in (claim, kept):
        if name in whole:
            # Its entry is there, and its bytes, which nobody synced, are not.
            yield f"{name} empty", {**whole, name: b""}
            yield f"{name} in part", {**whole, name: whole[name][: len(whole[name]) // 2]}
    if end in whole and end not in synced:
        yield "a torn end", {**whole, end: whole[end][:-1]}


def found_after(folder: Path, key: str, left: dict[str, bytes]) -> End | KeptCommand | NotStarted | Lost:
    """What a receiver finds that is started after the machine was."""
    folder.mkdir(mode=0o700)
    for name, data in left.items():
        (folder / name).write_bytes(data)
        (folder / name).chmod(0o600)
    try:
        return asyncio.run(command.recover(key, spool=folder, runtime=folder.parent / "no-sockets"))
    finally:
        shutil.rmtree(folder)


def freeze(c: CrashWorld, point: str) -> tuple[str, int]:
    """A request whose keeper stands still at a point; its message, and the process."""
    plan = c.faults.plan(point, "stop")
    message = c.ask("please task=cut")
    pid = int(until(lambda: c.faults.hit(plan), what=point)[1])
    until(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED, what="a process that stands still")
    return message, pid


def test_what_is_left_of_a_spool_never_proves_a_start_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with crash_world(tmp_path / "w") as c:
        tried = 0
        for point in POINTS:
            message, pid = freeze(c, point)
            try:
                key = f"{c.job(message)}.1"
                started = key in c.place.starts()
                for what, left in cuts(c.target.folder / SPOOL, key, point):
                    with monkeypatch.context() as patch:  # the machine was booted anew
                        patch.setattr(identity, "boot_id", lambda: "another")
                        patch.setattr(spool, "boot_id", lambda: "another")
                        found = found_after(tmp_path / "cut", key, left)
                    where = f"{point}, {what}: {found}"
                    if started or f"{key}.claim" in left:
                        assert not isinstance(found, NotStarted), where
                    if isinstance(found, End):
                        assert started, where
                        assert found.exit == 0, where
                        assert b"did cut" in found.stdout, where
                    if point in DURABLE_END:
                        assert isinstance(found, End), where
                    tried += 1
            finally:
                psutil.Process(pid).send_signal(signal.SIGCONT)
            assert c.end(message) == "answered"
        assert tried >= 3 * len(POINTS)
        assert c.faults_found() == []
