"""Limits in time, through the real thing: stall, ceiling, expiry, cancel by either side, and the three ways to stop."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support_parts import Bench, message
from support_time import ENDLESS
from support_world import World, until, world

from relay_receiver.adapters.base import Refused, Scope
from relay_receiver.client.errors import HubError
from relay_receiver.processes.tree import gone
from relay_receiver.receiver import verbs
from relay_receiver.receiver.target import Target
from relay_receiver.wire.message import iso


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, Target]]:
    """A hub, and bob with his receiver."""
    with world(tmp_path_factory.mktemp("limits")) as w:
        yield w, w.agent("bob")


@pytest.fixture(autouse=True)
def at_home(place: tuple[World, Target], monkeypatch: pytest.MonkeyPatch) -> None:
    """One world for all cases of this file, with its receiver running at the start of each."""
    w, bob = place
    monkeypatch.setenv("RELAY_HOME", str(w.home))
    verbs.start(bob)


def job(bob: Target, asked: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = until(
        lambda: [each for each in verbs.jobs(bob)["jobs"] if each["message"] == asked["id"]], what="the job"
    )[0]
    return found


def held(w: World, bob: Target, name: str) -> dict[str, Any]:
    """A request whose program runs until it is released."""
    asked = w.ask(bob, f"hold={name} task={name}")
    w.until_stage(asked["id"], "running")
    return asked


def test_a_requester_who_takes_back_a_running_request_stops_it(place: tuple[World, Target]) -> None:
    w, bob = place
    asked = held(w, bob, "withdrawn")
    w.do("owner", lambda hub: hub.withdraw(asked["id"]))
    w.until_stage(asked["id"], "cancelled")
    until(lambda: job(bob, asked)["state"] == "cancelled", what="the end")


def test_a_job_cancelled_in_the_queue_is_told_while_another_still_runs(place: tuple[World, Target]) -> None:
    w, bob = place
    running = held(w, bob, "long")
    asked = [w.ask(bob, "task=never"), w.ask(bob, "task=never either")]
    for each in asked:
        verbs.cancel(bob, job(bob, each)["id"])
    for each in asked:
        w.until_stage(each["id"], "cancelled")
    assert w.stage(running["id"]) == "running"
    w.release("long")
    w.until_stage(running["id"], "answered")


def test_a_running_job_is_cancelled_here_and_the_next_one_goes_on(place: tuple[World, Target]) -> None:
    w, bob = place
    asked = held(w, bob, "cancelled")
    following = w.ask(bob, "task=next")
    verbs.cancel(bob, job(bob, asked)["id"])
    w.until_stage(asked["id"], "cancelled")
    w.until_stage(following["id"], "answered")


def test_silence_is_shown_as_a_stall_and_the_ceiling_ends_it(place: tuple[World, Target]) -> None:
    w, bob = place
    verbs.settings(bob, stall=0.2, ceiling=3600.0)
    try:
        asked = held(w, bob, "silent")
        until(lambda: verbs.status(bob)["stalled"], what="the alarm")
        verbs.settings(bob, ceiling=0.5)
        w.until_stage(asked["id"], "failed")
        assert "limit" in w.results(asked["id"])[0]["content"]
    finally:
        verbs.settings(bob, stall=900.0, ceiling=3600.0)


def test_a_program_that_answers_and_does_not_exit_runs_into_its_limit_and_its_answer_is_kept(
    place: tuple[World, Target], tmp_path: Path
) -> None:
    w, bob = place
    verbs.stop(bob)
    argv = ("/bin/sh", "-c", f"""echo '{{"text": "half done"}}'; echo $$ > {tmp_path}/stays; exec sleep {ENDLESS}""")
    before = verbs.status(bob)["argv"]
    w.bind("bob", argv=argv)
    try:
        verbs.start(bob)
        asked = w.ask(bob, "task=any")
        w.until_stage(asked["id"], "running")
        pid = int(until(lambda: (tmp_path / "stays").exists() and (tmp_path / "stays").read_text(), what="the program"))
        verbs.settings(bob, ceiling=0.5)
        w.until_stage(asked["id"], "failed")
        assert "limit" in w.results(asked["id"])[0]["content"]
        assert "half done" in w.results(asked["id"])[0]["content"]
        assert gone(pid)
    finally:
        verbs.settings(bob, ceiling=3600.0)
        verbs.stop(bob, now=True)
        w.bind("bob", argv=tuple(before))


def test_stop_now_ends_the_job_and_tells_it_before_the_process_is_gone(place: tuple[World, Target]) -> None:
    w, bob = place
    asked = held(w, bob, "stopped")
    verbs.stop(bob, now=True)
    assert w.stage(asked["id"]) == "failed"
    assert "stopped" in w.results(asked["id"])[0]["content"]


def test_stop_waits_for_the_job_in_hand_and_a_second_stop_now_does_not(place: tuple[World, Target]) -> None:
    w, bob = place
    ends: list[dict[str, Any]] = []
    asked = held(w, bob, "graceful")
    left = w.ask(bob, "task=left")
    waiting = threading.Thread(target=lambda: ends.append(verbs.stop(bob)))
    waiting.start()
    until(lambda: verbs.status(bob)["state"] == "stopping", what="the stop")
    w.release("graceful")
    waiting.join()
    assert w.stage(asked["id"]) == "answered"
    assert job(bob, left)["state"] == "queued"
    verbs.start(bob)
    w.until_stage(left["id"], "answered")
    asked = held(w, bob, "impatient")
    waiting = threading.Thread(target=lambda: ends.append(verbs.stop(bob)))
    waiting.start()
    until(lambda: verbs.status(bob)["state"] == "stopping", what="the stop")
    verbs.stop(bob, now=True)
    waiting.join()
    assert w.stage(asked["id"]) == "failed"
    assert [each["state"] for each in ends] == ["stopped", "stopped"]


def ask_with_expiry(w: World, bob: Target, text: str) -> dict[str, Any]:
    """A request that expires soon: later where the machine was so slow that it had expired before it arrived."""
    for seconds in (1, 10):
        soon = (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")
        with contextlib.suppress(HubError):
            return w.ask(bob, text, expiresAt=soon.replace("+00:00", "Z"))
    raise AssertionError("no request arrived before its expiry")


def test_a_request_expires_and_is_taken_back_with_no_receiver_alive(place: tuple[World, Target]) -> None:
    w, bob = place
    verbs.stop(bob)
    before = len(w.starts())
    expiring, withdrawn = ask_with_expiry(w, bob, "task=late"), w.ask(bob, "task=withdrawn")
    w.do("owner", lambda hub: hub.withdraw(withdrawn["id"]))
    assert w.stage(withdrawn["id"]) == "withdrawn"
    w.until_stage(expiring["id"], "expired")
    verbs.start(bob)
    after = w.ask(bob, "task=after")
    w.until_stage(after["id"], "answered")
    assert (w.stage(expiring["id"]), w.stage(withdrawn["id"])) == ("expired", "withdrawn")
    assert len(w.starts()) == before + 1


def test_a_job_that_was_to_be_cancelled_is_cancelled_by_the_next_process(place: tuple[World, Target]) -> None:
    w, bob = place
    asked = held(w, bob, "orphan")
    w.kill(bob)
    w.do("owner", lambda hub: hub.withdraw(asked["id"]))
    verbs.start(bob)
    w.until_stage(asked["id"], "cancelled")


def test_a_usage_limit_parks_the_queue_until_its_reset_says_until_when_and_work_resumes_by_itself(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            reset = b.clock + 7200
            b.adapter.answers = [Refused(scope=Scope.BINDING, reason="usage limit", retry_at=reset, code="usage_limit")]
            b.arrive(message(1), message(2))
            await b.until(lambda: b.parts.situation.state(None) == "refused")
            assert b.parts.situation.detail() == f"usage limit; tried again at {iso(reset)}"
            b.clock += 7100
            b.runner.kick()
            await b.runner.ask(lambda: asyncio.sleep(0))
            assert len(b.adapter.works) == 1
            b.clock += 101
            b.runner.kick()
            await b.until(lambda: b.jobs() == {"m1": "done", "m2": "done"})
            assert b.parts.situation.detail() is None

    asyncio.run(scenario())
