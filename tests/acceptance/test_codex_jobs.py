"""The real Codex under real receivers and a real hub, against the scripted model on loopback."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from support_codex import codex_world
from support_world import until

from relay_receiver.receiver import verbs


def test_two_requests_in_a_row_and_a_stop_between_stay_in_one_thread(tmp_path: Path) -> None:
    with codex_world(tmp_path) as (w, _, ada):
        verbs.start(ada)
        first = w.ask(ada, "model: say one")
        w.until_stage(first["id"], "answered")
        second = w.ask(ada, "model: say two")
        w.until_stage(second["id"], "answered")
        thread = verbs.status(ada)["sessionId"]
        verbs.stop(ada)
        verbs.start(ada)
        third = w.ask(ada, "model: say three")
        w.until_stage(third["id"], "answered")
        assert [w.results(m["id"])[0]["content"] for m in (first, second, third)] == ["one", "two", "three"]
        assert thread
        assert verbs.status(ada)["sessionId"] == thread


def test_killed_in_the_middle_of_a_turn_it_comes_back_to_the_same_turn(tmp_path: Path) -> None:
    with codex_world(tmp_path) as (w, model, ada):
        verbs.start(ada)
        asked = w.ask(ada, "model: hold gate say held answer")
        assert model.wait_for(lambda seen: any(request["verb"] == "hold" for request in seen))
        w.kill(ada)
        verbs.start(ada)
        model.release("gate")
        w.until_stage(asked["id"], "answered")
        [result] = w.results(asked["id"])
        assert result["content"] == "held answer"
        assert sum(request["verb"] == "hold" for request in model.requests) == 1


def test_a_codex_job_gives_work_to_another_agent_and_uses_its_answer(tmp_path: Path) -> None:
    with codex_world(tmp_path) as (w, _, ada):
        bob = w.agent("bob")
        verbs.start(ada)
        verbs.start(bob)
        asked = w.ask(ada, "model: ask bob task=dishes please")
        w.until_stage(asked["id"], "answered")
        [result] = w.results(asked["id"])
        assert "did dishes" in result["content"]
        page = w.do("owner", lambda hub: hub.history(w.channel, limit=200))
        [passed] = [m for m in page["messages"] if m["kind"] == "request" and m["authorId"] != "human"]
        assert passed["chain"] == {"root": asked["id"], "hop": 1}


def test_failures_of_a_turn_are_told_and_a_usage_limit_is_the_reason_for_waiting(tmp_path: Path) -> None:
    with codex_world(tmp_path) as (w, _, ada):
        verbs.start(ada)
        for text in ("cut", "fail context_length_exceeded", "status 400"):
            asked = w.ask(ada, f"model: {text}")
            w.until_stage(asked["id"], "failed")
            [result] = w.results(asked["id"])
            assert result["content"].startswith("Failed: ")
        limited = w.ask(ada, "model: limit 3600")
        told = until(lambda: verbs.status(ada)["refused"], what="the refusal")
        assert "limit" in told["why"]
        assert told["nextTry"]
        assert verbs.jobs(ada)["jobs"][0]["state"] == "queued"
        w.until_stage(limited["id"], "received")

        def shown() -> dict[str, Any]:
            found: dict[str, Any] = w.do("owner", lambda hub: hub.message(limited["id"]))["delivery"]
            return found

        until(lambda: shown()["reason"] == "usage_limit", what="the reason that the requester is shown")
        assert (shown()["detail"], shown()["nextTry"]) == (told["why"], told["nextTry"])


def test_a_large_answer_arrives_whole(tmp_path: Path) -> None:
    with codex_world(tmp_path) as (w, _, ada):
        verbs.start(ada)
        asked = w.ask(ada, "model: big 3000000")
        w.until_stage(asked["id"], "answered")
        [result] = w.results(asked["id"])
        whole = w.do("owner", lambda hub: hub.attachment(result["attachments"][0]["id"]))
        assert whole == b"x" * 3_000_000


@pytest.mark.parametrize("verb", ["accept", "abandon", "retry"])
def test_the_app_server_killed_in_the_middle_is_unknown_and_settled_by_a_person(tmp_path: Path, verb: str) -> None:
    with codex_world(tmp_path) as (w, model, ada):
        verbs.start(ada)
        asked = w.ask(ada, "model: hold gate say held answer")
        assert model.wait_for(lambda seen: any(request["verb"] == "hold" for request in seen))
        until(lambda: verbs.status(ada)["job"]["state"] == "running", what="running")
        _kill_app_server(tmp_path)
        w.until_stage(asked["id"], "unknown")
        assert verbs.status(ada)["needsPerson"]
        model.release("gate")
        job = verbs.status(ada)["job"]["id"]
        verbs.settle(ada, job, verb, text="it was done" if verb == "accept" else None, reason="looked at it")
        end = {"accept": "answered", "abandon": "failed", "retry": "answered"}[verb]
        w.until_stage(asked["id"], end)
        [result] = w.results(asked["id"])
        assert {"accept": "it was done", "abandon": "looked at it", "retry": "held answer"}[verb] in result["content"]
        after = w.ask(ada, "model: say after")
        w.until_stage(after["id"], "answered")


def _kill_app_server(tmp_path: Path) -> None:

    marker = f"CODEX_HOME={tmp_path / 'codex-home'}".encode()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            name = (path / "cmdline").read_bytes()
            if b"app-server" in name and marker in (path / "environ").read_bytes():
                os.kill(int(path.name), signal.SIGKILL)
        except OSError:
            continue
