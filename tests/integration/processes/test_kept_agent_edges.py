"""Agents on stdio at the edges: odd lines, agents that do not listen, numbers that were given anew."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from support_processes import Keepers, run, runs, take, until
from support_time import ENDLESS, WITHIN

from relay_receiver.processes.agent import AgentEnded, KeptAgent, gone

ECHO = "import sys\nfor line in sys.stdin.buffer:\n    sys.stdout.buffer.write(line)\n    sys.stdout.flush()"
DEAF = "import signal; print('hello', flush=True); signal.pause()"


async def end(agent: KeptAgent, grace: float = WITHIN) -> AgentEnded:
    await agent.end(grace)
    with pytest.raises(AgentEnded) as ended:
        async for _ in agent.lines():
            pass
    return ended.value


async def say(agent: KeptAgent, *lines: bytes) -> list[bytes]:
    """Send lines, and hear as many back."""
    for line in lines:
        await agent._line.say(op="send", line=line.decode("utf-8", "surrogateescape"), id=0)  # type: ignore[union-attr]  # it is attached
    return [line.data for line in await take(agent, 2 * len(lines)) if line.direction == "out"]


def test_any_bytes_but_newlines_pass_both_ways(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        agent = await k.agent(ECHO)
        for odd in (bytes(set(range(256)) - {10}), "🌍".encode(), b"", b" ", b"1 in x", b"{"):
            assert await say(agent, odd) == [odd]
        assert (await end(agent)).exit == 0

    run(tmp_path, case)


def test_what_is_more_than_one_line_is_not_sent(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        agent = await k.agent(ECHO)
        with pytest.raises(ValueError, match="one line"):
            await agent.send(b"one\ntwo")
        assert await say(agent, b"three") == [b"three"]
        await end(agent)

    run(tmp_path, case)


def test_an_agent_that_reads_nothing_holds_up_neither_keeper_nor_its_own_lines(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        agent = await k.agent(DEAF)
        for _ in range(20):
            await agent._line.say(op="send", line="y" * 100_000, id=0)  # type: ignore[union-attr]  # it is attached
        assert b"hello" in [line.data for line in await take(agent, 21)]
        assert (await end(agent, grace=0.05)).signal == signal.SIGTERM

    run(tmp_path, case)


def test_an_agent_speaks_on_while_nobody_is_attached(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        agent = await k.agent("print('x' * 5_000_000, flush=True); open('done', 'w').close(); input()")
        await agent.detach()
        await until((tmp_path / "done").exists)  # it has written more than any pipe holds
        again = await k.attach()
        assert again is not None
        assert [len(line.data) for line in await take(again, 1)] == [5_000_000]
        await end(again)

    run(tmp_path, case)


def test_under_a_living_keeper_nothing_is_ended_from_outside(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        agent = await k.agent(ECHO)
        assert not await gone("a", spool=k.spool, grace=0.05)
        assert runs(k.child("a"))
        await end(agent)
        assert await k.kept("a").ends(within=WITHIN)
        assert await gone("a", spool=k.spool, grace=0.05)

    run(tmp_path, case)


def test_a_process_that_only_has_the_number_is_never_ended(tmp_path: Path) -> None:
    async def case(k: Keepers) -> None:
        agent = await k.agent(ECHO)
        os.kill(k.kept("a").keeper.pid, signal.SIGKILL)
        assert await k.kept("a").ends(within=WITHIN)
        child = k.child("a")
        os.killpg(child, signal.SIGKILL)
        await until(lambda: not runs(child))
        with subprocess.Popen(["sleep", str(ENDLESS)], process_group=0) as stranger:  # noqa: ASYNC220 - about a millisecond
            record = k.spool / "a.keeper"
            first, second = record.read_bytes().splitlines()
            told = json.loads(second)
            told |= {"child": stranger.pid, "childStarted": told["childStarted"] - 1.0}
            record.write_bytes(first + b"\n" + json.dumps(told).encode() + b"\n")
            assert k.child("a") == stranger.pid
            assert await gone("a", spool=k.spool, grace=0.05)
            assert runs(stranger.pid)
            stranger.kill()
        await agent.detach()

    run(tmp_path, case)
