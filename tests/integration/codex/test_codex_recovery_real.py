"""Receivers and app-servers that die at every place of a turn, with the real Codex."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support_codex import World, adapter, other_writer, until, work, world

from relay_receiver.adapters import codex, codex_thread
from relay_receiver.adapters.base import (
    Accepted,
    AdapterUnusable,
    Finished,
    HandoverLost,
    NeverStarted,
    Progress,
    Recovery,
    Refused,
    Result,
    Started,
    StillRunning,
    Unprovable,
)
from relay_receiver.adapters.codex_ledger import Ledger
from relay_receiver.processes.kept import Kept

HOLDER = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from support_codex import World, adapter, work

async def main():
    place = World.__new__(World)
    root = Path({root!r})
    place.directory, place.home, place.spool = root / "work", root / "codex-home", root / "spool"
    place.runtime = Path({runtime!r})
    async with adapter(place.binding()) as (made, heard):
        session = await made.open(None)
        answer = await made.submit(work("j", {prompt!r}))
        print(session, answer.execution, sep="\\n", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""

ONE_LONG_LINE = """
import json, os, sys
sandbox = {"type": "workspaceWrite", "networkAccess": False}
loaded = {"sandbox": sandbox, "approvalPolicy": "on-request", "approvalsReviewer": "user", "cwd": os.getcwd()}
answers = {"thread/start": {"thread": {"id": "T"}, **loaded}, "turn/start": {"turn": {"id": "U"}}}
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({"id": asked.get("id"), "result": answers.get(asked["method"], {})}), flush=True)
    if asked["method"] == "turn/start":
        print(json.dumps({"method": "warning", "params": {"message": "x" * 21_000_000}}), flush=True)
"""


def kill_app_server(place: World) -> None:
    kept = Kept.read(place.spool, "agent")
    assert kept is not None
    assert kept.child is not None
    os.killpg(kept.child.pid, signal.SIGKILL)


def kill_keeper(place: World) -> None:
    kept = Kept.read(place.spool, "agent")
    assert kept is not None
    os.kill(kept.keeper.pid, signal.SIGKILL)


def hold(place: World, root: Path, prompt: str) -> tuple[str, str]:
    """Submit in another process, kill it with SIGKILL once the turn runs; session and execution."""
    program = HOLDER.format(
        tests=str(Path(__file__).parents[2]), root=str(root), runtime=str(place.runtime), prompt=prompt
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        session, execution = holder.stdout.readline().strip(), holder.stdout.readline().strip()
        assert place.model.wait_for(lambda requests: len(requests) > 0)
        holder.kill()
    return session, execution


def test_a_receiver_killed_in_the_middle_comes_back_to_the_same_turn(tmp_path: Path) -> None:
    async def back(place: World, session: str, execution: str) -> None:
        async with adapter(place.binding()) as (made, heard):
            assert await made.open(session) == session
            found = await made.recover(execution, work("j", ""))
            assert isinstance(found, StillRunning)
            assert found.execution == execution
            place.model.release("g")
            end = await heard.end("j.1")
            assert (end.result, end.text) == (Result.COMPLETED, "begun g")
            await made.recorded("j.1")
            assert isinstance(await made.submit(work("k", "model: say more")), Accepted)
            assert (await heard.end("k.1")).text == "more"
        assert [request["verb"] for request in place.model.requests] == ["begin", "say"]

    with world(tmp_path) as place:
        session, execution = hold(place, tmp_path, "model: begin g")
        asyncio.run(back(place, session, execution))


def test_a_turn_that_ended_while_no_receiver_was_there_is_found_finished(tmp_path: Path) -> None:
    async def first(place: World) -> tuple[str | None, str]:
        async with adapter(place.binding(), detach=True) as (made, _):
            session = await made.open(None)
            answer = await made.submit(work("j", "model: hold g"))
            assert isinstance(answer, Accepted)
            return session, answer.execution

    async def second(place: World, session: str | None, execution: str | None) -> None:
        async with adapter(place.binding()) as (made, heard):
            await made.open(session)
            found = await made.recover(execution, work("j", ""))
            end = found if isinstance(found, Finished) else await heard.end("j.1")
            assert end.text == "held g"

    with world(tmp_path) as place:
        session, _ = asyncio.run(first(place))
        place.model.release("g")
        asyncio.run(second(place, session, None))


def test_the_lines_of_a_long_turn_are_cut_while_it_runs_and_it_is_still_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codex, "CUT_BYTES", 1)

    async def first(place: World) -> str | None:
        async with adapter(place.binding(), detach=True) as (made, heard):
            session = await made.open(None)
            assert isinstance(await made.submit(work("j", "model: begin g")), Accepted)
            await heard.until(lambda event: isinstance(event, Started))
            assert await asyncio.to_thread(until, lambda: b"turn/start" not in lines(place))
            return session

    async def second(place: World, session: str | None) -> None:
        async with adapter(place.binding()) as (made, heard):
            await made.open(session)
            assert isinstance(await made.recover(None, work("j", "")), StillRunning)
            assert Started(key="j.1") == await heard.until(lambda event: isinstance(event, Started))
            place.model.release("g")
            assert (await heard.end("j.1")).text == "begun g"

    def lines(place: World) -> bytes:
        return (place.spool / "agent.lines").read_bytes()

    with world(tmp_path) as place:
        asyncio.run(second(place, asyncio.run(first(place))))


def test_a_line_over_the_bound_fails_the_job_with_the_reason(tmp_path: Path) -> None:
    endless = tmp_path / "endless"
    endless.write_text(f"#!{sys.executable}\n{ONE_LONG_LINE}")
    endless.chmod(0o755)

    async def check(place: World) -> None:
        async with adapter(place.binding(argv=[str(endless)])) as (made, heard):
            await made.open(None)
            assert isinstance(await made.submit(work("j", "anything")), Accepted)
            end = await heard.end("j.1")
            assert end.result is Result.FAILED
            assert "20 MiB" in end.reason

    with world(tmp_path) as place:
        asyncio.run(check(place))


def test_an_approval_asked_while_no_receiver_was_there_is_declined_on_return(tmp_path: Path) -> None:
    async def first(place: World) -> str | None:
        async with adapter(place.binding(), detach=True) as (made, _):
            session = await made.open(None)
            assert isinstance(await made.submit(work("j", "model: hold g escalate touch outside")), Accepted)
            return session

    async def second(place: World, session: str | None) -> None:
        async with adapter(place.binding()) as (made, heard):
            await made.open(session)
            assert isinstance(await made.recover(None, work("j", "")), StillRunning)
            end = await heard.end("j.1")
            assert "rejected by user" in end.text

    with world(tmp_path) as place:
        session = asyncio.run(first(place))
        lines = place.spool / "agent.lines"
        place.model.release("g")
        assert until(lambda: b"requestApproval" in lines.read_bytes())
        asyncio.run(second(place, session))


def kill_everything(place: World) -> None:
    kept = Kept.read(place.spool, "agent")
    assert kept is not None
    assert kept.child is not None
    os.kill(kept.keeper.pid, signal.SIGSTOP)
    os.killpg(kept.child.pid, signal.SIGKILL)
    os.kill(kept.keeper.pid, signal.SIGKILL)


def test_a_turn_that_completed_before_everything_died_is_finished_by_codex_own_record(tmp_path: Path) -> None:
    async def second(place: World, session: str) -> None:
        async with adapter(place.binding()) as (made, _):
            await made.open(session)
            found = await made.recover(None, work("j", ""))
            assert isinstance(found, Finished)
            assert (found.result, found.text) == (Result.COMPLETED, "held g")

    with world(tmp_path) as place:
        session, _ = hold(place, tmp_path, "model: hold g")
        place.model.release("g")
        assert until(lambda: b"turn/completed" in (place.spool / "agent.lines").read_bytes())
        kill_everything(place)
        asyncio.run(second(place, session))


def test_a_turn_in_the_middle_of_which_everything_died_is_unknown(tmp_path: Path) -> None:
    async def second(place: World, session: str, execution: str) -> None:
        async with adapter(place.binding()) as (made, heard):
            assert await made.open(session) == session
            found = await made.recover(execution, work("j", ""))
            assert isinstance(found, Unprovable)
            assert found.evidence["brokenOff"] == "Codex died"
            assert isinstance(await made.submit(work("j", "model: say retried", attempt=2)), Accepted)
            assert (await heard.end("j.2")).text == "retried"

    with world(tmp_path) as place:
        session, execution = hold(place, tmp_path, "model: begin g")
        kill_everything(place)
        asyncio.run(second(place, session, execution))


def test_a_message_that_codex_took_into_a_running_turn_is_never_accepted(tmp_path: Path) -> None:
    async def check(place: World) -> None:
        async with adapter(place.binding()) as (made, _):
            session = await made.open(None)
            assert made._server is not None
            params = {"threadId": session, "input": [{"type": "text", "text": "model: hold g"}]}
            await made._server.call("turn/start", params)
            assert await asyncio.to_thread(place.model.wait_for, lambda requests: len(requests) == 1)
            made._thread.running = None
            with pytest.raises(HandoverLost, match="already ran"):
                await made.submit(work("j", "model: say mine"))
            place.model.release("g")
            assert await asyncio.to_thread(
                until, lambda: b"turn/completed" in (place.spool / "agent.lines").read_bytes()
            )
            assert isinstance(await made.recover(None, work("j", "")), Unprovable)

    with world(tmp_path) as place:
        asyncio.run(check(place))


@pytest.mark.parametrize("kill", [kill_app_server, kill_keeper])
def test_an_app_server_that_dies_in_the_middle_leaves_it_unknown_with_evidence_and_serves_on(
    tmp_path: Path, kill: object
) -> None:
    async def check(place: World) -> None:
        async with adapter(place.binding()) as (made, heard):
            session = await made.open(None)
            assert isinstance(await made.submit(work("a", "model: say first")), Accepted)
            await heard.end("a.1")
            await made.recorded("a.1")
            assert isinstance(await made.submit(work("j", "model: run mkfifo gate; cat gate")), Accepted)
            await heard.until(lambda event: isinstance(event, Progress) and event.note.startswith("runs "))
            assert callable(kill)
            kill(place)
            end = await heard.end("j.1")
            assert end.result is Result.UNKNOWN
            assert end.text == "running it"
            assert "died" in end.evidence["ended"] or "signal 9" in end.evidence["ended"]
            found = await made.recover(None, work("j", ""))
            assert isinstance(found, Unprovable)
            assert found.suggestion == "running it"
            await made.recorded("j.1")
            assert isinstance(await made.submit(work("k", "model: say again")), Accepted)
            assert (await heard.end("k.1")).text == "again"
            assert await made.open(session) == session

    with world(tmp_path) as place:
        asyncio.run(check(place))


@pytest.mark.parametrize("first_turn", [True, False])
def test_a_hand_over_that_left_no_trace_never_started(tmp_path: Path, first_turn: bool) -> None:  # noqa: FBT001 - a case
    """The line is written down and the app-server dies before it reads it: the one place that proves nothing began."""

    async def check(place: World) -> None:
        async with adapter(place.binding()) as (made, heard):
            session = await made.open(None)
            if not first_turn:
                assert isinstance(await made.submit(work("a", "model: say first")), Accepted)
                await heard.end("a.1")
                await made.recorded("a.1")
            kept = Kept.read(place.spool, "agent")
            assert kept is not None
            assert kept.child is not None
            os.kill(kept.child.pid, signal.SIGSTOP)
            handing = asyncio.create_task(made.submit(work("j", "model: say never")))
            lines = place.spool / "agent.lines"
            assert await asyncio.to_thread(until, lambda: b'"j.1"' in lines.read_bytes())
            os.killpg(kept.child.pid, signal.SIGKILL)
            answer = await handing
            assert isinstance(answer, Refused)
            assert "before it began" in answer.reason
            await made.recorded("j.1")
            assert isinstance(await made.submit(work("k", "model: say now")), Accepted)
            assert (await heard.end("k.1")).text == "now"
            assert (await made.open(session) == session) is not first_turn
        assert [request["rest"] for request in place.model.requests] == ([] if first_turn else ["first"]) + ["now"]

    with world(tmp_path) as place:
        asyncio.run(check(place))


@pytest.mark.parametrize("fault", ["boot", "home", "record"])
def test_without_each_condition_the_same_is_unprovable(tmp_path: Path, fault: str) -> None:
    async def first(place: World) -> str | None:
        async with adapter(place.binding()) as (made, heard):
            session = await made.open(None)
            assert isinstance(await made.submit(work("a", "model: say first")), Accepted)
            await heard.end("a.1")
            await made.recorded("a.1")
            return session

    async def second(place: World, session: str | None) -> None:
        async with adapter(place.binding()) as (made, _):
            await made.open(session)
            found = await made.recover(None, work("j", ""))
            assert isinstance(found, Unprovable)

    with world(tmp_path) as place:
        session = asyncio.run(first(place))
        ledger = Ledger.load(place.spool)
        ledger.key, ledger.turn, ledger.keeper = "j.1", {}, "gone"
        if fault == "boot":
            ledger.boot = "another"
        elif fault == "home":
            ledger.home = [1, 2]
        ledger.save()
        if fault == "record":
            ledger.path.write_text("{")
        asyncio.run(second(place, session))


def test_an_attempt_that_was_never_written_down_never_started(tmp_path: Path) -> None:
    async def life(place: World, session: str | None) -> tuple[str | None, Recovery]:
        async with adapter(place.binding()) as (made, _):
            return await made.open(session), await made.recover(None, work("j", ""))

    with world(tmp_path) as place:
        session, found = asyncio.run(life(place, None))
        assert isinstance(found, Unprovable)
        assert isinstance(asyncio.run(life(place, session))[1], NeverStarted)
        ledger = Ledger.load(place.spool)
        ledger.boot = "another"
        ledger.save()
        assert isinstance(asyncio.run(life(place, session))[1], Unprovable)


def test_a_thread_that_someone_else_drives_is_not_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codex_thread, "WRITER_TRIES", 2)

    async def first(place: World) -> str | None:
        async with adapter(place.binding()) as (made, heard):
            session = await made.open(None)
            assert isinstance(await made.submit(work("a", "model: say first")), Accepted)
            await heard.end("a.1")
            return session

    async def second(place: World, session: str | None) -> None:
        async with adapter(place.binding()) as (made, _):
            with pytest.raises(AdapterUnusable, match="Another program drives") as refused:
                await made.open(session)
            assert refused.value.code == "busy"

    with world(tmp_path) as place:
        session = asyncio.run(first(place))
        assert session is not None
        with other_writer(place, session):
            asyncio.run(second(place, session))


def test_a_session_that_is_lost_is_for_a_person_to_decide(tmp_path: Path) -> None:
    async def first(place: World) -> str | None:
        async with adapter(place.binding()) as (made, heard):
            session = await made.open(None)
            assert isinstance(await made.submit(work("a", "model: say first")), Accepted)
            await heard.end("a.1")
            await made.recorded("a.1")
            return session

    async def second(place: World, session: str | None) -> None:
        async with adapter(place.binding()) as (made, _):
            with pytest.raises(AdapterUnusable, match="--new-session") as refused:
                await made.open(session)
            assert refused.value.code == "session_lost"
            assert await made.open(None) != session

    with world(tmp_path) as place:
        session = asyncio.run(first(place))
        for name in ("sessions", "thread_history_1.sqlite", "state_5.sqlite"):
            for found in place.home.glob(f"{name}*"):
                found.rename(tmp_path / f"away-{found.name}")
        asyncio.run(second(place, session))
