"""The main job with real processes: hub, receivers, keepers, and a program as the agent."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from support_world import until, world

from relay_receiver.client import profiles
from relay_receiver.processes import identity
from relay_receiver.receiver import verbs
from relay_receiver.receiver.target import Target


def test_a_request_comes_back_as_one_result(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        bob = w.agent("bob")
        assert verbs.start(bob)["state"] == "ready"
        asked = w.ask(bob, "task=dishes please")
        w.until_stage(asked["id"], "answered")
        [result] = w.results(asked["id"])
        assert result["content"] == "did dishes"
        assert result["operationId"].startswith("receiver:")
        assert len(w.starts()) == 1
        assert verbs.stop(bob)["state"] == "stopped"
        assert verbs.status(bob)["state"] == "stopped"


def test_killed_in_the_middle_of_a_job_it_is_run_once_and_answered_once(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        bob = w.agent("bob")
        verbs.start(bob)
        asked = w.ask(bob, "task=cook hold=a")
        until(w.starts, what="the start of the job")
        w.kill(bob)
        w.release("a")
        verbs.start(bob)
        w.until_stage(asked["id"], "answered")
        assert len(w.results(asked["id"])) == 1
        assert len(w.starts()) == 1


def test_two_starts_at_once_make_one_process(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        bob = w.agent("bob")
        for _ in range(20):
            with ThreadPoolExecutor(2) as pool:
                answers = list(pool.map(lambda _: verbs.start(bob), range(2)))
            assert sorted(a["state"] for a in answers) == ["already_running", "ready"]
            assert len({a["pid"] for a in answers}) == 1
            verbs.stop(bob)


def test_time_zone_columns_path_and_a_recycled_pid_make_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with world(tmp_path) as w:
        bob = w.agent("bob")
        stranger = identity.identify(os.getppid())
        assert stranger is not None
        recycled = replace(stranger, started=stranger.started - 1000.0)
        (bob.folder / "lock").write_text(recycled.to_json())
        monkeypatch.setenv("TZ", "Pacific/Kiritimati")
        pid = verbs.start(bob)["pid"]
        monkeypatch.setenv("TZ", "America/Adak")
        monkeypatch.setenv("COLUMNS", "7")
        monkeypatch.setenv("PATH", str(tmp_path))
        time.tzset()
        assert verbs.start(bob) == {"state": "already_running", "pid": pid}
        assert verbs.status(bob)["pid"] == pid
        assert verbs.stop(bob)["state"] == "stopped"
        assert identity.life(stranger) is identity.Life.ALIVE


def test_a_failing_program_ends_the_request_with_its_reason(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        bob = w.agent("bob")
        verbs.start(bob)
        asked = w.ask(bob, "exit=3")
        w.until_stage(asked["id"], "failed")
        [result] = w.results(asked["id"])
        assert "3" in result["content"]
        until(lambda: verbs.status(bob)["state"] == "ready", what="a receiver at rest")


def test_a_result_over_the_limit_arrives_whole_as_an_attachment(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        bob = w.agent("bob")
        verbs.start(bob)
        asked = w.ask(bob, "big=300000")
        w.until_stage(asked["id"], "answered")
        [result] = w.results(asked["id"])
        [attachment] = result["attachments"]
        whole = w.do("owner", lambda hub: hub.attachment(attachment["id"]))
        assert whole == b"x" * 300_000


def test_agents_pause_after_the_limit_and_a_person_goes_first_and_resumes(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        bob = w.agent("bob", chain_limit=2)
        carol = w.agent("carol")
        me = profiles.load("bob").agent
        verbs.start(bob)
        asked = [w.ask(bob, f"task=n{n}", by=carol.profile) for n in range(4)]
        for message in asked[:2]:
            w.until_stage(message["id"], "answered")
        until(lambda: verbs.status(bob)["chain"]["paused"], what="the pause")
        assert len(w.starts()) == 2
        person = w.say("task=mine", mentions=[me])
        for message in asked[2:]:
            w.until_stage(message["id"], "answered")
        assert w.starts()[2].startswith(_job(bob, person["id"]))
        assert len(w.starts()) == 5


def test_cancelled_withdrawn_and_quiet_end_visibly(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        bob = w.agent("bob")
        verbs.start(bob)
        running = w.ask(bob, "hold=never")
        queued = w.ask(bob, "task=queued")
        until(w.starts, what="the start of the job")
        w.do("owner", lambda hub: hub.withdraw(queued["id"]))
        assert w.stage(queued["id"]) == "withdrawn"
        verbs.cancel(bob, _job(bob, running["id"]))
        w.until_stage(running["id"], "cancelled")
        silent = w.ask(bob, "say-nothing")
        w.until_stage(silent["id"], "quiet")
        assert len(w.starts()) == 2


def _job(target: Target, message: str) -> str:
    return next(
        job["id"] for job in until(lambda: verbs.jobs(target)["jobs"], what="jobs") if job["message"] == message
    )


def test_the_requester_sees_why_a_request_waits(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        bob = w.agent("bob", chain_limit=1)
        w.agent("carol")

        def reason(message: dict[str, str]) -> str | None:
            return w.do("owner", lambda hub: hub.message(message["id"]))["delivery"]["reason"]

        first = w.ask(bob, "hold=a", by="carol")
        assert reason(first) == "offline"
        verbs.start(bob)
        second = w.ask(bob, "task=second", by="carol")
        w.until_stage(first["id"], "running")
        w.until_stage(second["id"], "received")
        assert reason(second) == "busy"
        w.release("a")
        until(lambda: reason(second) == "paused", what="the reason")
        assert w.do("owner", lambda hub: hub.message(second["id"]))["delivery"]["position"] == 0
