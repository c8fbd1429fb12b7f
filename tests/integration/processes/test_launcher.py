"""The launcher: one keeper ahead, restarted when it dies or does not answer, gone with its receiver."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from support_processes import Keepers, run, runs, until
from support_time import WITHIN

from relay_receiver.processes import launch, spool
from relay_receiver.processes.command import KeeperLost, KeptCommand, NotStarted
from relay_receiver.processes.launch import LauncherLost

RECEIVER = """
import asyncio, os, sys
from relay_receiver.processes.launch import Launcher
async def main():
    launcher = Launcher()
    await launcher.start()
    print(launcher._process.pid, flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


def pid_of(k: Keepers) -> int:
    assert k.launcher._process is not None
    return k.launcher._process.pid


async def waiting(k: Keepers) -> int:
    """The keeper that waits for an order."""
    launcher = psutil.Process(pid_of(k))
    await until(launcher.children)
    return launcher.children()[0].pid


def test_launcher_and_waiting_keeper_end_with_their_receiver(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", RECEIVER], stdout=subprocess.PIPE) as receiver:
        assert receiver.stdout is not None
        launcher = psutil.Process(int(receiver.stdout.readline()))
        asyncio.run(until(launcher.children))
        (keeper,) = launcher.children()
        receiver.kill()
    asyncio.run(until(lambda: not runs(launcher.pid) and not runs(keeper.pid)))


@pytest.mark.parametrize("victim", ["launcher", "keeper", "both"])
def test_whichever_dies_idle_the_next_order_is_carried_out(tmp_path: Path, victim: str) -> None:
    async def case(k: Keepers) -> None:
        launcher, keeper = pid_of(k), await waiting(k)
        for pid in {"launcher": [launcher], "keeper": [keeper], "both": [launcher, keeper]}[victim]:
            os.kill(pid, signal.SIGKILL)
        await until(lambda: not runs(launcher if victim == "launcher" else keeper))
        for attempt in range(1, 4):
            found = await k.try_command("/bin/sh", "-c", "echo ran >> ran", key=f"j.{attempt}")
            if isinstance(found, KeptCommand):
                await found.end()
                break
            assert found.code == "claimed"  # the order was in the hands of the dead: certain that it never starts
        assert (tmp_path / "ran").read_text() == "ran\n"

    run(tmp_path, case)


def test_an_order_that_nobody_answers_is_given_up_and_the_next_one_goes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "ANSWER_SECONDS", 0.2)

    async def case(k: Keepers) -> None:
        launcher, keeper = pid_of(k), await waiting(k)
        os.kill(keeper, signal.SIGSTOP)
        found = await k.try_command("/bin/sh", "-c", "echo never > never")
        assert isinstance(found, NotStarted)
        assert not runs(launcher)
        monkeypatch.setattr(launch, "ANSWER_SECONDS", WITHIN)
        await (await k.shell("echo ran > ran", key="j.2")).end()
        os.kill(keeper, signal.SIGCONT)
        await until(lambda: not runs(keeper))
        assert not (tmp_path / "never").exists()

    run(tmp_path, case)


def test_orders_at_once_are_all_carried_out(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        held = await asyncio.gather(*(k.shell(f"echo {n}", key=f"j.{n}") for n in range(1, 9)))
        ends = await asyncio.gather(*(each.end() for each in held))
        assert [end.stdout for end in ends] == [b"%d\n" % n for n in range(1, 9)]

    run(tmp_path, case)


def test_a_spool_that_others_can_read_starts_nothing(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        await (await k.shell("true")).end()
        k.spool.chmod(0o755)
        with pytest.raises(LauncherLost, match="open to others"):
            await k.shell("echo ran > ran", key="j.2")
        k.spool.chmod(0o700)
        assert isinstance(await k.recover("j.2"), NotStarted)

    run(tmp_path, case)


def test_an_order_that_was_sent_and_cannot_be_looked_at_is_lost_and_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(spool, "give_up", full)
    monkeypatch.setattr(launch, "ANSWER_SECONDS", 0.2)

    async def case(k: Keepers) -> None:
        os.kill(await waiting(k), signal.SIGSTOP)
        with pytest.raises(KeeperLost, match="No space left"):
            await k.shell("echo ran > ran")

    run(tmp_path, case)
