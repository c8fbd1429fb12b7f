"""The command adapter with real programs: what every adapter keeps, and what a program may say."""

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from contract.adapter_suite import AdapterSuite, Place, work
from support_time import ENDLESS, WITHIN

from relay_receiver.adapters.base import (
    Adapter,
    AdapterUnusable,
    Binding,
    Finished,
    NeverStarted,
    Recovery,
    Refused,
    Result,
    Scope,
    StillRunning,
    Unprovable,
    Work,
)
from relay_receiver.adapters.command import CommandAdapter
from relay_receiver.processes.identity import Life, life
from relay_receiver.processes.kept import Kept
from relay_receiver.processes.launch import Launcher

AGENT = """\
import json, os, sys
raw = sys.stdin.read()
job = json.loads(raw)
with open("starts", "a") as starts:
    starts.write(job["requestId"] + "\\n")
word, _, rest = job["prompt"].partition(" ")
if word == "answer":
    print(json.dumps({"text": rest}))
elif word == "run":
    with open("gate") as gate:
        print(json.dumps({"text": gate.readline().strip()}))
elif word == "fail":
    print("half an answer")
    print("what went wrong", file=sys.stderr)
    sys.exit(3)
elif word == "say":
    sys.stdout.write(rest)
elif word == "look":
    fds = sorted(os.path.realpath(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd"))
    found = {"raw": raw, "environment": dict(os.environ), "directory": os.getcwd(), "descriptors": fds}
    found["group"] = os.getpgid(0) == os.getpid()
    print(json.dumps({"text": json.dumps(found)}))
elif word == "die":
    os.kill(os.getpid(), int(rest))
"""

HOLDER = """\
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from contract.adapter_suite import work
from contract.test_adapter_command import Commands

async def main():
    place = Commands(Path({root!r}), Path({runtime!r}))
    async with place.receiver() as receiver:
        answer = await receiver.submit(work({job!r}, {prompt!r}, attempt={attempt}))
        print(answer.execution, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


class Commands(Place):
    """A program in Python that does as its prompt says."""

    def __init__(self, root: Path, runtime: Path) -> None:
        self.root = root
        self.directory = root / "work"
        self.spool = root / "spool"
        self.runtime = runtime
        self.argv = [sys.executable, "-I", "-S", str(root / "agent.py")]
        self.directory.mkdir(exist_ok=True)
        if not (self.directory / "gate").exists():
            (root / "agent.py").write_text(AGENT)
            os.mkfifo(self.directory / "gate")
        self._gate = os.open(self.directory / "gate", os.O_RDWR)

    def binding(self, *argv: str) -> Binding:
        return Binding(
            settings={"argv": list(argv) or self.argv},
            directory=self.directory,
            environment={"PATH": os.defpath, "LANG": "C.UTF-8"},
            spool=self.spool,
            runtime=self.runtime,
        )

    @asynccontextmanager
    async def adapter(self, *argv: str) -> AsyncIterator[Adapter]:
        launcher = Launcher()
        await launcher.start()
        try:
            yield CommandAdapter(self.binding(*argv), launcher)
        finally:
            await launcher.close()

    def broken(self) -> AbstractAsyncContextManager[Adapter]:
        return self.adapter(str(self.root / "no such program"))

    def answers(self, text: str) -> str:
        return f"answer {text}"

    def fails(self) -> str:
        return "fail"

    def runs(self) -> str:
        return "run"

    def release(self, text: str) -> None:
        os.write(self._gate, text.encode() + b"\n")

    async def killed(self, job: Work) -> tuple[str | None, str]:
        program = HOLDER.format(
            tests=str(Path(__file__).parents[1]),
            root=str(self.root),
            runtime=str(self.runtime),
            job=job.job,
            prompt=job.prompt,
            attempt=job.attempt,
        )
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as holder:  # noqa: ASYNC220 - the test has nothing else to do meanwhile
            assert holder.stdout is not None
            execution = holder.stdout.readline().strip()
            holder.kill()
        assert execution
        return None, execution

    def starts(self) -> list[str]:
        with suppress(FileNotFoundError):
            return (self.directory / "starts").read_text().split()
        return []

    async def idle(self) -> None:
        async with asyncio.timeout(WITHIN):
            while any(life(kept.keeper) is not Life.GONE for kept in self.kept()):
                await asyncio.sleep(0.005)

    def kept(self) -> list[Kept]:
        """Keepers and their children, as far as they were written down."""
        found = [Kept.read(self.spool, path.name.removesuffix(".keeper")) for path in self.spool.glob("*.keeper")]
        return [kept for kept in found if kept is not None]

    def end(self) -> None:
        """End what a failed test left."""
        for kept in self.kept():
            if kept.child is not None and life(kept.child) is Life.ALIVE:
                os.killpg(kept.child.pid, signal.SIGKILL)
        os.close(self._gate)


@asynccontextmanager
async def commands(tmp_path: Path) -> AsyncIterator[Commands]:
    with TemporaryDirectory(prefix="rc") as runtime:
        place = Commands(tmp_path, Path(runtime))
        try:
            yield place
        finally:
            place.end()


def run(tmp_path: Path, job: Work, *argv: str) -> Finished:
    """One job of a fresh receiver."""

    async def case() -> Finished:
        async with commands(tmp_path) as place, place.adapter(*argv) as adapter:
            await adapter.open(None)
            await adapter.submit(job)
            try:
                async with asyncio.timeout(WITHIN):
                    async for event in adapter.events():
                        if isinstance(event, Finished):
                            return event
                raise AssertionError("it never ended")
            finally:
                await adapter.close()

    return asyncio.run(case())


def shell(script: str) -> tuple[str, str, str]:
    return "/bin/sh", "-c", script


class TestCommand(AdapterSuite):
    def place(self, tmp_path: Path) -> AbstractAsyncContextManager[Place]:
        return commands(tmp_path)


# What a program is given.


def test_a_program_is_given_its_job_and_nothing_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SECRET", "s3cret")
    with (tmp_path / "ours").open("w") as ours:
        os.set_inheritable(ours.fileno(), True)
        found = json.loads(run(tmp_path, work("j", "look closely")).text)
    assert json.loads(found["raw"]) == {"threadId": None, "requestId": "j.1", "prompt": "look closely"}
    nonce = found["environment"].pop("RELAY_NONCE")
    assert len(nonce) == 32
    assert found["environment"] == {"PATH": os.defpath, "LANG": "C.UTF-8"}
    assert found["directory"] == str(tmp_path / "work")
    assert found["group"]
    assert not [each for each in found["descriptors"] if not each.startswith(("/proc/", "pipe:"))], found["descriptors"]
    pipes = [each for each in found["descriptors"] if "pipe:" in each]
    assert len(pipes) == 3


def test_a_job_credential_is_named_in_its_environment_and_a_session_in_its_input(tmp_path: Path) -> None:
    async def case() -> dict[str, Any]:
        async with commands(tmp_path) as place, place.receiver("the session") as receiver:
            end = await receiver.run(work("j", "look closely", credential=tmp_path / "job"))
            found: dict[str, Any] = json.loads(end.text)
            return found

    found = asyncio.run(case())
    assert found["environment"]["RELAY_JOB"] == str(tmp_path / "job")
    assert json.loads(found["raw"])["threadId"] == "the session"


def test_a_large_prompt_reaches_a_program_that_reads_late(tmp_path: Path) -> None:
    script = """echo '{"text": "'$(wc -c)'"}'"""
    end = run(tmp_path, work("j", "x" * 3_000_000), *shell(script))
    assert int(end.text.strip()) > 3_000_000


def test_a_program_that_does_not_read_its_prompt_answers_all_the_same(tmp_path: Path) -> None:
    end = run(tmp_path, work("j", "x" * 3_000_000), *shell("""echo '{"text": "unread"}'"""))
    assert (end.result, end.text) == (Result.COMPLETED, "unread")


# What a program says.


def test_usage_is_kept(tmp_path: Path) -> None:
    end = run(tmp_path, work("j", """say {"text": "a", "usage": {"input": 3, "output": 4, "model": "x"}}"""))
    assert end.usage == {"input": 3, "output": 4}


def test_quiet_is_an_empty_answer(tmp_path: Path) -> None:
    end = run(tmp_path, work("j", """say {"quiet": true}"""))
    assert (end.result, end.text) == (Result.COMPLETED, "")


def test_a_program_says_itself_that_it_failed(tmp_path: Path) -> None:
    end = run(tmp_path, work("j", """say {"outcome": "failed", "text": "no such branch"}"""))
    assert (end.result, end.text, end.reason) == (Result.FAILED, "no such branch", "no such branch")


FAILURES = {
    "exit status": ("fail", "exit status 3"),
    "signal": ("die 9", "SIGKILL"),
    "empty": ("say  ", "without an answer"),
    "no JSON": ("say plain words", "not JSON"),
    "no object": ("say [1]", "no JSON object"),
    "no text": ('say {"answer": 1}', "no text"),
    "no such outcome": ('say {"text": "a", "outcome": "splendid"}', "outcome"),
}


@pytest.mark.parametrize(("prompt", "words"), FAILURES.values(), ids=FAILURES.keys())
def test_each_way_to_fail_has_a_sentence_of_its_own(tmp_path: Path, prompt: str, words: str) -> None:
    end = run(tmp_path, work("j", prompt))
    assert end.result is Result.FAILED
    assert words in end.reason
    others = {other for _, other in FAILURES.values()} - {words}
    assert not [other for other in others if other in end.reason]


def test_a_failure_keeps_text_and_log(tmp_path: Path) -> None:
    end = run(tmp_path, work("j", "fail"))
    assert end.text == "half an answer"
    assert end.evidence["exit"] == 3
    assert end.evidence["stderr"] == "what went wrong\n"


def test_output_past_its_bound_ends_the_program(tmp_path: Path) -> None:
    end = run(tmp_path, work("j"), *shell("exec cat /dev/zero"))
    assert end.result is Result.FAILED
    assert "20 MiB" in end.reason
    assert sum(path.stat().st_size for path in (tmp_path / "spool").iterdir()) < 50 * 1024 * 1024


def test_of_a_long_log_the_last_is_kept(tmp_path: Path) -> None:
    script = """head -c 3000000 /dev/zero | tr '\\0' x >&2; echo the end >&2; echo '{"text": "a"}'"""
    end = run(tmp_path, work("j"), *shell(script))
    assert end.text == "a"
    assert end.evidence["stderr"].endswith("x\nthe end\n") or end.evidence["stderr"].endswith("xthe end\n")
    assert len(end.evidence["stderr"]) <= 64 * 1024


def test_characters_split_between_chunks_stay_whole(tmp_path: Path) -> None:
    script = """import fcntl, os, termios
whole = '{"text": "' .encode() + "🌍é".encode() * 50 + b'"}'
for at in range(0, len(whole), 7):
    os.write(1, whole[at:at + 7])
    while fcntl.ioctl(1, termios.FIONREAD, bytes(4)) != bytes(4):
        pass  # until it was taken, so that the next is another chunk"""
    end = run(tmp_path, work("j"), sys.executable, "-I", "-S", "-c", script)
    assert end.text == "🌍é" * 50


def test_bytes_that_are_no_text_are_no_crash(tmp_path: Path) -> None:
    end = run(tmp_path, work("j"), *shell("""printf '{"text": "\\377\\376"}'"""))
    assert (end.result, end.text) == (Result.COMPLETED, "\ufffd\ufffd")


# What a program leaves.


LEFT = {
    "that holds its output": f"sleep {ENDLESS} &",
    "in a session of its own": f"setsid sleep {ENDLESS} >/dev/null 2>&1 </dev/null &",
    "that ignores TERM": "(trap '' TERM; while :; do sleep 1; done) >/dev/null 2>&1 &",
}


@pytest.mark.parametrize("left", LEFT.values(), ids=LEFT.keys())
def test_what_a_program_leaves_delays_nothing_and_is_ended(tmp_path: Path, left: str) -> None:
    async def case() -> None:
        script = f"""{left} echo $! > left; echo '{{"text": "done"}}'"""
        async with commands(tmp_path) as place, place.adapter(*shell(script)) as adapter:
            await adapter.open(None)
            await adapter.submit(work("j"))
            async with asyncio.timeout(WITHIN):
                end = await anext(event async for event in adapter.events() if isinstance(event, Finished))
            assert end.text == "done"
            assert "leftovers" in end.evidence
            await place.idle()
            assert not _alive(int((place.directory / "left").read_text()))
            await adapter.close()

    asyncio.run(case())


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in {"Z", "X"}
    except OSError:
        return False


def test_an_interrupt_ends_also_what_ignores_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relay_receiver.adapters.command.INTERRUPT_SECONDS", 0.3)

    async def case() -> None:
        script = "trap '' TERM; echo $$ > main; while :; do sleep 1; done"
        async with commands(tmp_path) as place, place.adapter(*shell(script)) as adapter:
            await adapter.open(None)
            answer = await adapter.submit(work("j"))
            assert not isinstance(answer, Refused)
            async with asyncio.timeout(WITHIN):
                while not (place.directory / "main").exists() or not (place.directory / "main").read_text().strip():
                    await asyncio.sleep(0.005)
            assert await adapter.interrupt(answer.execution)
            assert not _alive(int((place.directory / "main").read_text()))
            end = await anext(event async for event in adapter.events() if isinstance(event, Finished))
            assert end.result is Result.CANCELLED
            await place.idle()
            await adapter.close()

    asyncio.run(case())


# What does not start.


def _not_executable(tmp_path: Path) -> list[str]:
    (tmp_path / "plain").write_text("text")
    return [str(tmp_path / "plain")]


def _bad_interpreter(tmp_path: Path) -> list[str]:
    (tmp_path / "script").write_text("#!/no/such/interpreter\n")
    (tmp_path / "script").chmod(0o700)
    return [str(tmp_path / "script")]


def _no_format(tmp_path: Path) -> list[str]:
    (tmp_path / "format").write_bytes(b"\x00\x01\x02")
    (tmp_path / "format").chmod(0o700)
    return [str(tmp_path / "format")]


NO_START: dict[str, Callable[[Path], list[str]]] = {
    "a missing program": lambda tmp_path: [str(tmp_path / "none")],
    "a program that may not be run": _not_executable,
    "a missing interpreter": _bad_interpreter,
    "a file that is no program": _no_format,
    "an argument list that is too long": lambda _: ["/bin/echo", "x" * 3_000_000],
    "a NUL in an argument": lambda _: ["/bin/echo", "a\0b"],
}


@pytest.mark.parametrize("argv", NO_START.values(), ids=NO_START.keys())
def test_what_does_not_start_is_refused_for_certain(tmp_path: Path, argv: Callable[[Path], list[str]]) -> None:
    async def case() -> None:
        async with commands(tmp_path) as place, place.adapter(*argv(tmp_path)) as adapter:
            await adapter.open(None)
            answer = await adapter.submit(work("j"))
            assert isinstance(answer, Refused), answer
            assert answer.reason
            assert isinstance(await adapter.recover(None, work("j")), NeverStarted)
            await adapter.close()

    asyncio.run(case())


def test_a_missing_directory_is_a_refusal_of_the_binding(tmp_path: Path) -> None:
    async def case() -> None:
        async with commands(tmp_path) as place, place.adapter() as adapter:
            (place.directory).rename(tmp_path / "elsewhere")
            answer = await adapter.submit(work("j", "answer a"))
            assert isinstance(answer, Refused)
            assert answer.scope is Scope.BINDING
            (tmp_path / "elsewhere").rename(place.directory)
            await adapter.close()

    asyncio.run(case())


# What is certain after a death.


def test_of_keeper_and_recovering_receiver_only_one_decides_whether_an_attempt_starts(tmp_path: Path) -> None:
    async def case() -> None:
        async with commands(tmp_path) as place, place.receiver() as first, place.receiver() as second:
            for number in range(20):
                job = work(f"j{number}", "answer a")
                answer, found = await asyncio.gather(
                    first.adapter.submit(job), _later(number % 5, second.adapter.recover(None, job))
                )
                if isinstance(answer, Refused):
                    assert isinstance(found, NeverStarted)
                else:
                    assert isinstance(found, (StillRunning, Finished))
                    await first.end(job.key)
                assert place.starts().count(job.key) == (0 if isinstance(answer, Refused) else 1)

    asyncio.run(case())


async def _later(milliseconds: int, awaited: Coroutine[Any, Any, Recovery]) -> Recovery:
    await asyncio.sleep(milliseconds / 1000)
    return await awaited


def test_an_attempt_that_was_given_up_does_not_start_later(tmp_path: Path) -> None:
    async def case() -> None:
        async with commands(tmp_path) as place, place.receiver() as receiver:
            assert isinstance(await receiver.adapter.recover(None, work("j")), NeverStarted)
            assert isinstance(await receiver.adapter.submit(work("j", "answer a")), Refused)
            assert place.starts() == []

    asyncio.run(case())


def test_a_keeper_that_dies_with_its_job_leaves_it_unknown_with_what_still_lives(tmp_path: Path) -> None:
    async def case() -> None:
        async with commands(tmp_path) as place:
            _, execution = await place.killed(work("j", "run"))
            (kept,) = place.kept()
            assert kept.child is not None
            os.kill(kept.keeper.pid, signal.SIGKILL)
            await place.idle()
            async with place.receiver() as receiver:
                found = await receiver.adapter.recover(execution, work("j"))
                assert isinstance(found, Unprovable)
                assert found.evidence["alive"] == [kept.child.pid]
            assert _alive(kept.child.pid)

    asyncio.run(case())


def test_a_keeper_that_dies_under_its_receiver_is_told_as_unknown(tmp_path: Path) -> None:
    async def case() -> None:
        async with commands(tmp_path) as place, place.receiver() as receiver:
            await receiver.submit(work("j", "run"))
            (kept,) = place.kept()
            os.kill(kept.keeper.pid, signal.SIGKILL)
            assert (await receiver.end("j.1")).result is Result.UNKNOWN

    asyncio.run(case())


def test_signals_of_a_terminal_end_no_job(tmp_path: Path) -> None:
    async def case() -> None:
        async with commands(tmp_path) as place:
            _, execution = await place.killed(work("j", "run"))
            (kept,) = place.kept()
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
                os.kill(kept.keeper.pid, number)
            async with place.receiver() as receiver:
                assert isinstance(await receiver.adapter.recover(execution, work("j")), StillRunning)
                place.release("still here")
                assert (await receiver.end("j.1")).text == "still here"

    asyncio.run(case())


def test_an_end_that_cannot_be_read_is_unknown_and_put_aside(tmp_path: Path) -> None:
    async def case() -> None:
        async with commands(tmp_path) as place:
            _, execution = await place.killed(work("j", "run"))
            place.release("lost")
            await place.idle()
            end = place.spool / "j.1.end"
            end.write_bytes(end.read_bytes()[:20])
            async with place.receiver() as receiver:
                assert isinstance(await receiver.adapter.recover(execution, work("j")), Unprovable)
                assert not end.exists()
                assert (await receiver.run(work("k", "answer next"))).text == "next"

    asyncio.run(case())


def test_a_launcher_that_died_is_started_again(tmp_path: Path) -> None:
    async def case() -> None:
        async with commands(tmp_path) as place:
            launcher = Launcher()
            await launcher.start()
            adapter = CommandAdapter(place.binding(), launcher)
            for job in ("j", "k"):
                answer = await adapter.submit(work(job, "answer a"))
                if isinstance(answer, Refused):  # its death was not known yet: certain all the same
                    answer = await adapter.submit(work(job, "answer a", attempt=2))
                assert not isinstance(answer, Refused)
                await anext(event async for event in adapter.events() if isinstance(event, Finished))
                assert launcher._process is not None
                launcher._process.kill()
            await adapter.close()
            await launcher.close()

    asyncio.run(case())


# What is checked before.


def test_a_check_makes_the_program_absolute(tmp_path: Path) -> None:
    place = Binding(
        settings={"argv": ["sh", "-c", "true"], "network": False},
        directory=tmp_path,
        environment={"PATH": os.defpath},
        spool=tmp_path,
        runtime=tmp_path,
    )
    found = CommandAdapter.check(place)
    assert Path(found["argv"][0]).is_absolute()
    assert found["argv"][1:] == ["-c", "true"]
    assert found["network"] is False


@pytest.mark.parametrize("line", ["", "no-such-program-anywhere", "/etc/passwd", "/no/such/file"])
def test_a_check_refuses_what_cannot_be_run(tmp_path: Path, line: str) -> None:
    place = Binding(
        settings={"argv": shlex.split(line)},
        directory=tmp_path,
        environment={"PATH": os.defpath},
        spool=tmp_path,
        runtime=tmp_path,
    )
    with pytest.raises(AdapterUnusable):
        CommandAdapter.check(place)
