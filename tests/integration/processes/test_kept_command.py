"""Commands under keepers: what is proven about them, whatever dies, and what they leave."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from support_processes import Keepers, resident, run, runs, until
from support_time import ENDLESS, WITHIN

from relay_receiver.processes import files, launch, spool
from relay_receiver.processes.command import KeeperLost, KeptCommand, Lost, NotStarted
from relay_receiver.processes.ending import End
from relay_receiver.processes.identity import identify
from relay_receiver.processes.launch import OUTPUT_BYTES

LOOK = """
import json, os, signal
open_ones = [n for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}")]
ignored = [n for n in (1, 2, 13, 15, 17) if signal.getsignal(n) is signal.SIG_IGN and n != 13]
print(json.dumps({"fds": sorted(map(int, open_ones)), "pid": os.getpid(), "group": os.getpgrp(),
    "session": os.getsid(0), "environment": sorted(os.environ), "directory": os.getcwd(), "ignored": ignored}))
"""
DAEMON = """
import os, sys, time
if os.fork():
    sys.exit(0)
os.setsid()
os.execve("/bin/sh", ["sh", "-c", "trap '' TERM; echo $$ > daemon; exec sleep 6000"], {"PATH": os.defpath})
"""
COUNTING = """
import os, runpy, stat
def fsync(descriptor, real=os.fsync):
    with open({log!r}, "a") as log:
        log.write("directory\\n" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file\\n")
    real(descriptor)
os.fsync = fsync
runpy.run_path({launcher!r}, run_name="__main__")
"""


def test_output_comes_byte_for_byte(tmp_path: Path) -> None:
    said = "a\\0\\377\\342\\200\\250\\n\\303"

    async def case(k: Keepers) -> None:
        end = await (await k.shell(f"printf '{said}'; printf '{said}' >&2")).end()
        assert end.stdout == end.stderr == b"a\0\xff\xe2\x80\xa8\n\xc3"
        assert (end.exit, end.signal, end.overflow, end.leftovers) == (0, None, False, False)

    run(tmp_path, case)


def test_a_child_has_a_group_of_its_own_and_nothing_of_ours(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        kept = await k.command(sys.executable, "-I", "-S", "-c", LOOK)
        found = json.loads((await kept.end()).stdout)
        assert found["fds"] == [0, 1, 2]
        assert found["group"] == found["pid"] == k.child()
        assert found["session"] == k.kept().keeper.pid != os.getsid(0)
        assert set(found["environment"]) - {"LC_CTYPE"} == {"PATH", "RELAY_NONCE"}
        assert found["directory"] == str(tmp_path)
        assert found["ignored"] == []

    run(tmp_path, case)


@pytest.mark.parametrize(
    ("argv", "code"), [(["/no/such"], "ENOENT"), (["/etc/passwd"], "EACCES"), (["x" * 200_000], "ENAMETOOLONG")]
)
def test_a_program_that_cannot_start_gives_its_claim_back(tmp_path: Path, argv: list[str], code: str) -> None:
    async def case(k: Keepers) -> None:
        found = await k.try_command(*argv)
        assert isinstance(found, NotStarted)
        assert found.code == code
        await until(lambda: list(k.spool.iterdir()) == [])
        assert isinstance(await k.recover(), NotStarted)

    run(tmp_path, case)


def test_a_flood_ends_the_program_and_not_the_machine(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        kept = await k.shell("exec yes")
        end = await kept.end()
        assert end.overflow
        assert len(end.stdout) == OUTPUT_BYTES
        assert resident(k.kept().keeper.pid) < 64 * 1024

    run(tmp_path, case)


def test_an_idle_keeper_is_small(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        kept = await k.shell(f"exec sleep {ENDLESS}")
        assert resident(k.kept().keeper.pid) < 14 * 1024
        await kept.kill(1.0)
        await kept.end()

    run(tmp_path, case)


def test_a_grandchild_that_holds_stdout_delays_nothing_and_is_ended(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        kept = await k.shell(f"sleep {ENDLESS} & echo $! > left; echo answer")
        end = await kept.end()
        left = int(await k.file("left"))
        assert (end.exit, end.stdout, end.leftovers) == (0, b"answer\n", True)
        await until(lambda: not runs(left))
        await until(lambda: not runs(k.kept().keeper.pid))

    run(tmp_path, case)


def test_a_grandchild_that_floods_stdout_after_the_end_changes_nothing(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        kept = await k.shell("(while kill -0 $$ 2>/dev/null; do :; done; exec yes) & echo answer")
        end = await kept.end()
        assert (end.exit, end.overflow, end.stdout) == (0, False, b"answer\n")

    run(tmp_path, case)


def test_what_left_group_session_and_environment_is_ended_too(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        kept = await k.command(sys.executable, "-I", "-S", "-c", DAEMON)
        end = await kept.end()
        assert (end.exit, end.leftovers) == (0, True)
        await until(lambda: not runs(k.kept().keeper.pid))
        daemon = tmp_path / "daemon"
        assert not daemon.exists() or not runs(int(daemon.read_text() or -1))

    run(tmp_path, case)


def test_a_kill_is_over_when_nothing_lives_any_more(tmp_path: Path) -> None:
    script = (
        "trap '' TERM; (trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ > far; sleep 6000') & echo $$ > near; wait"
    )

    async def case(k: Keepers) -> None:
        kept = await k.shell(f"{script}; sleep {ENDLESS}")
        near, far = int(await k.file("near")), int(await k.file("far"))
        await kept.kill(0.1)
        end = await kept.end()
        assert end.signal == signal.SIGKILL
        assert not runs(near)
        assert not runs(far)

    run(tmp_path, case)


def test_a_kill_waits_also_for_what_outlives_its_program(tmp_path: Path) -> None:
    far_away = "setsid sh -c 'trap \"\" TERM; echo $$ > far; sleep 6000; sleep 6000' & echo $$ > near; exec sleep 6000"

    async def case(k: Keepers) -> None:
        kept = await k.shell(far_away)
        await k.file("near")
        far = int(await k.file("far"))
        await kept.kill(0.3)
        end = await kept.end()
        assert end.signal == signal.SIGTERM
        assert not runs(far)

    run(tmp_path, case)


def test_a_program_that_ends_on_term_says_so(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        kept = await k.shell("trap 'echo bye; exit 7' TERM; echo $$ > up; while :; do sleep 0.01; done")
        await k.file("up")
        await kept.kill(WITHIN)
        end = await kept.end()
        assert (end.exit, end.signal, end.stdout) == (7, None, b"bye\n")

    run(tmp_path, case)


def test_signals_of_terminal_and_shutdown_do_not_end_a_keeper(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        kept = await k.shell("read line < gate; echo $line")
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            os.kill(k.kept().keeper.pid, number)
        await asyncio.to_thread((tmp_path / "gate").write_text, "on\n")
        assert (await kept.end()).stdout == b"on\n"

    os.mkfifo(tmp_path / "gate")
    run(tmp_path, case)


def test_a_keeper_outlives_receiver_and_launcher(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        kept = await k.shell("read line < gate; echo $line")
        await kept.detach()
        await k.launcher.close()
        found = await k.recover()
        assert isinstance(found, KeptCommand)
        assert json.loads(found.identity)["pid"] == k.kept().keeper.pid
        await asyncio.to_thread((tmp_path / "gate").write_text, "on\n")
        assert (await found.end()).stdout == b"on\n"
        again = await k.recover()
        assert isinstance(again, End)
        assert again.stdout == b"on\n"

    os.mkfifo(tmp_path / "gate")
    run(tmp_path, case)


def test_never_started_is_final_and_can_be_asked_again(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        for _ in range(2):
            assert isinstance(await k.recover(), NotStarted)
        found = await k.try_command("/bin/sh", "-c", "echo ran > ran")
        assert isinstance(found, NotStarted)
        assert found.code == "claimed"
        assert not (tmp_path / "ran").exists()
        spool.sweep(k.spool, k.runtime)
        assert isinstance(await k.try_command("/bin/sh", "-c", "echo ran > ran"), NotStarted)

    run(tmp_path, case)


def test_a_second_keeper_of_one_attempt_starts_nothing_and_finds_the_first(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        first = await k.shell("echo ran >> ran; read line < gate")
        second = await k.try_command("/bin/sh", "-c", "echo ran >> ran")
        assert isinstance(second, KeptCommand)
        await asyncio.to_thread((tmp_path / "gate").write_text, "on\n")
        assert (await first.end()) == (await second.end())
        assert (tmp_path / "ran").read_text() == "ran\n"

    os.mkfifo(tmp_path / "gate")
    run(tmp_path, case)


def test_a_keeper_that_is_killed_leaves_evidence_and_its_program_alone(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        kept = await k.shell(f"exec sleep {ENDLESS}")
        os.kill(k.kept().keeper.pid, signal.SIGKILL)
        with pytest.raises(KeeperLost):
            await kept.end()
        found = await k.recover()
        assert isinstance(found, Lost)
        assert found.alive == [k.child()]
        assert runs(k.child())

    run(tmp_path, case)


def test_a_keeper_that_died_between_claim_and_start_is_unprovable(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        kept = await k.shell("true")
        await kept.end()
        await until(lambda: not runs(k.kept().keeper.pid))
        (k.spool / "j.1.end").unlink()
        record = k.spool / "j.1.keeper"
        record.write_bytes(record.read_bytes().splitlines(keepends=True)[0])
        assert k.kept().child is None
        found = await k.recover()
        assert isinstance(found, Lost)
        assert found.alive == []

    run(tmp_path, case)


def test_a_keeper_that_lives_is_waited_for(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        kept = await k.shell("echo late")
        await kept.end()
        end = (k.spool / "j.1.end").read_bytes()
        (k.spool / "j.1.end").unlink()
        # This process stands for a keeper that has stopped listening and is about to write the end.
        record = k.spool / "j.1.keeper"
        told = json.loads(record.read_bytes().splitlines()[-1])
        me = identify(os.getpid())
        assert me is not None
        record.write_bytes(json.dumps({**told, "pid": me.pid, "started": me.started}).encode() + b"\n")
        asked = asyncio.create_task(k.recover())
        await asyncio.sleep(0.05)
        assert not asked.done()
        files.write_private(k.spool / "j.1.end", end)
        found = await asked
        assert isinstance(found, End)
        assert found.stdout == b"late\n"

    run(tmp_path, case)


@pytest.mark.parametrize("damage", [b"", b"{", b"[]\n", b'{"exit": 0}\n', None])
def test_an_end_that_cannot_be_read_is_put_aside(tmp_path: Path, damage: bytes | None) -> None:
    async def case(k: Keepers) -> None:
        await (await k.shell("echo whole")).end()
        await until(lambda: not runs(k.kept().keeper.pid))
        path = k.spool / "j.1.end"
        path.write_bytes(path.read_bytes()[:-1] if damage is None else damage)
        found = await k.recover()
        assert isinstance(found, Lost)
        (name,) = found.unreadable
        assert name.startswith("j.1.end.unreadable-")
        assert not path.exists()

    run(tmp_path, case)


def test_an_end_waits_for_room_on_the_disk(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        kept = await k.shell("read line < gate; echo $line")
        (k.spool / "j.1.end").mkdir()  # what cannot be replaced stands in for a disk that is full
        before = k.spool.stat().st_mtime_ns
        await asyncio.to_thread((tmp_path / "gate").write_text, "kept\n")
        ended = asyncio.create_task(kept.end())
        await until(lambda: k.spool.stat().st_mtime_ns != before)  # it has tried
        assert not ended.done()
        (k.spool / "j.1.end").rmdir()
        assert (await ended).stdout == b"kept\n"

    os.mkfifo(tmp_path / "gate")
    run(tmp_path, case)


def test_an_attempt_costs_three_fsyncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claim: the directory. End: file and directory."""
    counting = tmp_path / "counting.py"
    counting.write_text(COUNTING.format(launcher=str(launch._PROGRAM), log=str(tmp_path / "synced")))
    monkeypatch.setattr(launch, "_PROGRAM", counting)

    async def case(k: Keepers) -> None:
        await (await k.shell("echo a")).end()
        await until(lambda: not runs(k.kept().keeper.pid))
        assert (tmp_path / "synced").read_text().split() == ["directory", "file", "directory"]

    run(tmp_path, case)
