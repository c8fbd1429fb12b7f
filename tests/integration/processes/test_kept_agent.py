"""Agents under keepers: numbered lines both ways, and receivers that come, go, stop reading and come back."""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest
from support_processes import Keepers, resident, run, runs, take, until
from support_time import WITHIN

from relay_receiver.processes import agent
from relay_receiver.processes.agent import AgentEnded, AgentRefused, Displaced, KeptAgent
from relay_receiver.processes.command import KeeperLost

ECHO = "import sys\nfor line in sys.stdin.buffer: sys.stdout.buffer.write(b'got ' + line); sys.stdout.buffer.flush()"
DEAF = "import signal, time\nsignal.signal(15, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(6000)"
FLOOD = "import sys\nfor n in range({count}): print('x' * {size})\nsys.stdout.flush()\nsys.stdin.read()"


async def ended(held: KeptAgent) -> tuple[list[bytes], AgentEnded]:
    """The rest of its lines, and its end."""
    rest: list[bytes] = []

    async def read() -> None:
        async for line in held.lines():
            rest.append(line.data)  # noqa: PERF401 - what came before the end is kept

    with pytest.raises(AgentEnded) as end:
        await read()
    return rest, end.value


def test_lines_of_both_directions_are_numbered_in_order(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        held = await k.agent(ECHO)
        lines = asyncio.create_task(take(held, 4))
        odd = "a\u2028b\x85\xff".encode() + b"\xff\x00"
        assert await held.send(b"one") == 1
        number = await held.send(odd)
        found = await lines
        assert [line.number for line in found] == [1, 2, 3, 4]
        assert {line.data for line in found if line.direction == "out"} == {b"got one", b"got " + odd}
        assert found[number - 1].data == odd
        assert held.position == 4

    run(tmp_path, case)


def test_a_receiver_that_comes_back_reads_on_from_its_number(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        first = await k.agent(ECHO)
        reading = asyncio.create_task(take(first, 4))
        await first.send(b"a")
        await first.send(b"b")
        await reading
        await first.detach()
        second = await k.attach(after=2)
        assert second is not None
        assert json.loads(second.identity)["pid"] == k.kept("a").keeper.pid
        assert second.position == 4
        assert [line.number for line in await take(second, 2)] == [3, 4]

    run(tmp_path, case)


def test_a_newer_receiver_displaces_the_older_one_and_loses_nothing(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        first = await k.agent(ECHO)
        await take_after_sending(first, b"a")
        reading = asyncio.create_task(take(first, 100))
        second = await k.attach()
        assert second is not None
        with pytest.raises(Displaced):
            await reading
        with pytest.raises(ConnectionError):
            await first.send(b"late")
        assert [line.data for line in await take(second, 2)] == [b"a", b"got a"]

    run(tmp_path, case)


async def take_after_sending(held: KeptAgent, line: bytes) -> None:
    reading = asyncio.create_task(take(held, 2))
    await held.send(line)
    await reading


def test_a_receiver_that_does_not_read_costs_no_memory_and_the_next_one_gets_everything(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        await k.agent(FLOOD.format(count=100, size=100_000))
        spool = k.spool / "a.lines"
        await until(lambda: spool.stat().st_size > 10_000_000)
        assert resident(k.kept("a").keeper.pid) < 20 * 1024
        second = await k.attach(after=50)
        assert second is not None
        found = await take(second, 50)
        assert [line.number for line in found] == list(range(51, 101))
        assert {len(line.data) for line in found} == {100_000}

    run(tmp_path, case)


def test_a_line_of_almost_the_bound_arrives_whole(tmp_path: Path) -> None:
    size = 19 * 1024 * 1024

    async def case(k: Keepers) -> None:
        held = await k.agent(f"import sys\nsys.stdout.buffer.write(b'\\x00' * {size} + b'\\n')\nsys.stdout.flush()")
        rest, end = await ended(held)
        assert [len(line) for line in rest] == [size]
        assert end.exit == 0

    run(tmp_path, case)


@pytest.mark.parametrize(
    "program",
    [
        FLOOD.format(count=300, size=100_000),
        "print('x' * 30_000_000, end='', flush=True)\nimport signal; signal.pause()",
    ],
)
def test_more_than_the_bound_since_the_last_cut_ends_the_agent(tmp_path: Path, program: str) -> None:
    async def case(k: Keepers) -> None:
        _, end = await ended(await k.agent(program))
        assert end.overflow

    run(tmp_path, case)


def test_what_is_cut_is_gone_and_what_comes_after_is_not(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        held = await k.agent(ECHO)
        reading = asyncio.create_task(take(held, 6))
        for line in (b"a", b"b", b"c"):
            await held.send(line)
        await reading
        await held.cut(4)
        await until(lambda: not (k.spool / "a.lines").read_bytes().startswith(b"1 "))
        second = await k.attach()
        assert second is not None
        assert [line.number for line in await take(second, 2)] == [5, 6]
        await second.detach()
        third = await k.attach(after=6)
        assert third is not None
        reading = asyncio.create_task(take(third, 2))
        assert await third.send(b"d") == 7
        assert [line.data for line in await reading] == [b"d", b"got d"]

    run(tmp_path, case)


def test_eof_ends_an_agent_and_its_last_line_needs_no_newline(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        held = await k.agent(
            "import sys\nsys.stdin.read()\nprint('log', file=sys.stderr)\nprint('last', end='')\nsys.exit(3)"
        )
        await held.end(WITHIN)
        rest, end = await ended(held)
        assert rest == [b"last"]
        assert (end.exit, end.signal, end.stderr_tail, end.overflow) == (3, None, "log\n", False)
        await until(lambda: not runs(k.kept("a").keeper.pid))
        later = await k.attach()
        assert later is not None
        assert (await ended(later))[0] == [b"last"]
        assert await agent.gone("a", spool=k.spool, grace=1.0)

    run(tmp_path, case)


def test_an_agent_that_ignores_everything_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def case(k: Keepers) -> None:
        held = await k.agent(DEAF)
        await take(held, 1)
        child = k.child("a")
        held = await _again(k)
        await held.end(0.0)
        _, end = await ended(held)
        assert end.signal == signal.SIGKILL
        assert not runs(child)

    run(tmp_path, case)


async def _again(k: Keepers) -> KeptAgent:
    found = await k.attach()
    assert found is not None
    return found


def test_an_agent_that_died_alone_is_read_to_its_end(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        held = await k.agent(ECHO)
        await take_after_sending(held, b"a")
        await held.detach()
        os.kill(k.child("a"), signal.SIGKILL)
        rest, end = await ended(await _again(k))
        assert rest == [b"a", b"got a"]
        assert end.signal == signal.SIGKILL

    run(tmp_path, case)


def test_a_killed_keeper_is_lost_and_its_agent_is_ended_by_identity(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        held = await k.agent(DEAF)
        await take(held, 1)
        held = await _again(k)
        assert not await agent.gone("a", spool=k.spool, grace=1.0)
        os.kill(k.kept("a").keeper.pid, signal.SIGKILL)
        with pytest.raises(KeeperLost):
            async for _ in held.lines():
                pass
        assert await k.attach() is None
        child = k.child("a")
        assert runs(child)
        assert await agent.gone("a", spool=k.spool, grace=0.1)
        assert not runs(child)

    run(tmp_path, case)


def test_none_is_started_beside_one_that_lives(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        held = await k.agent(ECHO)
        with pytest.raises(AgentRefused) as refused:
            await k.agent(ECHO)
        assert refused.value.code == "EBUSY"
        await take_after_sending(held, b"still here")

    run(tmp_path, case)


def test_a_next_one_may_start_as_soon_as_the_end_is_told(tmp_path: Path) -> None:
    """The keeper of before, which still ends what its agent left, does not take the socket of the next one away."""

    async def case(k: Keepers) -> None:
        leaves = "import subprocess\nsubprocess.Popen(['sh', '-c', 'trap \"\" TERM; sleep 6000'], stdin=-3, stdout=-3)"
        _, end = await ended(await k.agent(leaves))
        assert end.exit == 0
        before = k.kept("a").keeper.pid
        await k.agent(ECHO)
        await until(lambda: not runs(before))
        assert await k.attach() is not None

    run(tmp_path, case)


def test_a_program_that_is_not_there_is_refused(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        with pytest.raises(AgentRefused) as refused:
            await KeptAgent.start(
                k.launcher,
                key="a",
                argv=["/no/such"],
                environment={},
                directory=tmp_path,
                spool=k.spool,
                runtime=k.runtime,
            )
        assert refused.value.code == "ENOENT"
        assert await k.attach() is None

    run(tmp_path, case)


def test_half_a_line_in_the_spool_is_none_and_rubbish_is_put_aside(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        held = await k.agent("print('one'); print('two')")
        await ended(held)
        await until(lambda: not runs(k.kept("a").keeper.pid))
        spool = k.spool / "a.lines"
        spool.write_bytes(spool.read_bytes()[:-2])
        assert (await ended(await _again(k)))[0] == [b"one"]
        spool.write_bytes(b"1 out one\nrubbish\n")
        assert (await ended(await _again(k)))[0] == [b"one"]
        assert not spool.exists()
        assert list(k.spool.glob("a.lines.unreadable-*"))

    run(tmp_path, case)
