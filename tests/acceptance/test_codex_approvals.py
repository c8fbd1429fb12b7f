"""People decide what the real Codex asks, at a real hub: the whole way there and back."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from support_approvals import asked, job_state, requests, respond, state_of, until_state
from support_codex import codex_world
from support_world import World, until

from relay_receiver.client import enrol, profiles
from relay_receiver.client.errors import HubError
from relay_receiver.processes import keeper_faults
from relay_receiver.processes.kept import Kept
from relay_receiver.receiver import verbs
from relay_receiver.receiver.target import SPOOL, Target
from relay_receiver.testing.trial_faults import Faults
from relay_receiver.wire.action import action_hash


@pytest.mark.parametrize("decision", ["accept", "decline"])
def test_a_command_runs_outside_the_sandbox_once_a_person_says_so(tmp_path: Path, decision: str) -> None:
    outside = tmp_path / "outside"
    with codex_world(tmp_path, tools=False) as (w, _, ada):
        verbs.start(ada)
        sent = w.ask(ada, f"model: escalate touch {outside}")
        [request] = asked(w)
        assert request["kind"] == "approval"
        assert request["action"]["command"].endswith(f"-lc 'touch {outside}'")
        assert request["action"]["cwd"] == str(verbs.status(ada)["directory"])
        assert request["action"]["agentSays"] == "May it run outside?"
        assert request["actionHash"] == action_hash(request["action"])
        assert request["author"]["id"] == profiles.load(ada.profile).agent
        w.until_stage(sent["id"], "waiting")
        assert job_state(ada) == "waiting"
        [need] = verbs.status(ada)["needsPerson"]
        assert (need["what"], need["request"]) == ("approval", request["id"])
        assert need["next"] == f"relay requests show {request['id']}"
        assert not outside.exists()
        respond(w, request, decision)
        w.until_stage(sent["id"], "answered")
        [result] = w.results(sent["id"])
        assert outside.exists() is (decision == "accept")
        assert ("rejected by user" in result["content"]) is (decision == "decline")
        until_state(w, request, "applied")
        assert verbs.status(ada)["needsPerson"] == []
        [decided] = verbs.job(ada, request["job"])["approvals"]
        assert decided["state"] == {"accept": "approved", "decline": "declined"}[decision]
        assert decided["decidedBy"].endswith(f"({profiles.load('owner').agent})")


def test_two_requests_at_once_are_decided_each_for_itself(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    with codex_world(tmp_path, tools=False) as (w, _, ada):
        verbs.start(ada)
        sent = w.ask(ada, f"model: escalates touch {one};;touch {two}")
        found = {each["action"]["command"].split()[-1].strip("'"): each for each in asked(w, 2)}
        respond(w, found[str(two)], "accept")
        until_state(w, found[str(two)], "applied")
        assert job_state(ada) == "waiting"
        assert state_of(w, found[str(one)]) == "open"
        respond(w, found[str(one)], "decline")
        w.until_stage(sent["id"], "answered")
        assert (one.exists(), two.exists()) == (False, True)


def test_a_patch_outside_the_directory_is_decided_by_all_of_its_lines(tmp_path: Path) -> None:
    # The sandbox may write below /tmp, where the tests are: somewhere else is outside.
    outside = Path("/var/tmp") / f"relay-{tmp_path.parent.name}-{tmp_path.name}"
    line = "x" * 30_000
    try:
        with codex_world(tmp_path, tools=False) as (w, _, ada):
            verbs.start(ada)
            sent = w.ask(ada, f"model: patch {outside} {line}")
            [request] = asked(w)
            whole = w.do("owner", lambda hub: hub.request(request["id"]))
            [change] = whole["action"]["changes"]
            assert (change["path"], change["diff"]) == (str(outside), f"{line}\n")
            respond(w, whole, "accept")
            w.until_stage(sent["id"], "answered")
            assert outside.read_text() == f"{line}\n"
    finally:
        outside.unlink(missing_ok=True)


def test_nobody_answers_in_time_and_that_declines(tmp_path: Path) -> None:
    with codex_world(tmp_path, tools=False, approval_time=6.0) as (w, _, ada):
        verbs.start(ada)
        sent = w.ask(ada, "model: escalate touch outside-ran")
        w.until_stage(sent["id"], "answered")
        [request] = requests(w, "ended")
        assert request["state"] == "expired"
        [decided] = verbs.job(ada, request["job"])["approvals"]
        assert (decided["state"], decided["decidedBy"]) == ("expired", "hub")
        assert "rejected by user" in w.results(sent["id"])[0]["content"]
        with pytest.raises(HubError) as late:
            respond(w, request, "accept")
        assert late.value.code == "request_expired"
        assert not (w.project / "outside-ran").exists()


@pytest.mark.parametrize("who", ["receiver", "requester"])
def test_a_cancel_while_it_waits_closes_the_request(tmp_path: Path, who: str) -> None:
    with codex_world(tmp_path, tools=False) as (w, _, ada):
        verbs.start(ada)
        sent = w.ask(ada, "model: escalate touch outside-ran")
        [request] = asked(w)
        if who == "receiver":
            verbs.cancel(ada, request["job"])
        else:
            w.do("owner", lambda hub: hub.withdraw(sent["id"]))
        w.until_stage(sent["id"], "cancelled")
        until_state(w, request, "superseded")
        with pytest.raises(HubError) as late:
            respond(w, request, "accept")
        assert late.value.code == "request_superseded"
        after = w.ask(ada, "model: say after")
        w.until_stage(after["id"], "answered")
        assert not (w.project / "outside-ran").exists()


def test_an_agent_that_dies_while_it_waits_takes_its_request_along(tmp_path: Path) -> None:
    with codex_world(tmp_path, tools=False) as (w, _, ada):
        verbs.start(ada)
        sent = w.ask(ada, "model: escalate touch outside-ran")
        [request] = asked(w)
        kept = Kept.read(ada.folder / SPOOL, "agent")
        assert kept is not None
        assert kept.child is not None
        os.killpg(kept.child.pid, signal.SIGKILL)
        w.until_stage(sent["id"], "unknown")
        until_state(w, request, "superseded")
        verbs.settle(ada, request["job"], "retry")
        [again] = asked(w)
        assert again["id"] != request["id"]
        respond(w, again, "decline")
        w.until_stage(sent["id"], "answered")
        assert not (w.project / "outside-ran").exists()


def test_only_who_may_approve_is_heard(tmp_path: Path) -> None:
    with codex_world(tmp_path, tools=False) as (w, _, ada):
        owner = profiles.load("owner")
        verbs.configure(
            profiles.load(ada.profile), channel=w.channel, channel_name="lab", approvers=(owner.agent_name,)
        )
        assert verbs.status(ada)["approvers"] == [owner.agent]
        invite = w.do("owner", lambda hub: hub.invite(w.channel, person=True))
        asyncio.run(enrol.enrol(w.url, invite["code"], name="bo", profile="bo"))
        verbs.start(ada)
        sent = w.ask(ada, "model: escalate touch outside-ran")
        [request] = asked(w)
        with pytest.raises(HubError) as refused:
            respond(w, request, "accept", by="bo")
        assert refused.value.code == "not_approver"
        respond(w, request, "accept")
        w.until_stage(sent["id"], "answered")
        assert (w.project / "outside-ran").exists()


def test_a_receiver_that_asks_nobody_declines_at_once(tmp_path: Path) -> None:
    with codex_world(tmp_path, tools=False, approvals="decline") as (w, _, ada):
        verbs.start(ada)
        sent = w.ask(ada, "model: escalate touch outside-ran")
        w.until_stage(sent["id"], "answered")
        assert "rejected by user" in w.results(sent["id"])[0]["content"]
        assert requests(w, "all") == []


def test_an_answer_that_comes_while_no_receiver_runs_reaches_the_same_call(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    with codex_world(tmp_path, tools=False) as (w, model, ada):
        verbs.start(ada)
        sent = w.ask(ada, f"model: escalate echo once >> {ran}")
        [request] = asked(w)
        w.kill(ada)
        assert [need["request"] for need in verbs.status(ada)["needsPerson"]] == [request["id"]]
        respond(w, request, "accept")
        assert not ran.exists()
        verbs.start(ada)
        w.until_stage(sent["id"], "answered")
        until_state(w, request, "applied")
        assert ran.read_text() == "once\n"
        assert sum(each["verb"] == "escalate" and not each["outputs"] for each in model.requests) == 1


def test_a_hub_that_is_away_is_asked_once_it_is_back(tmp_path: Path) -> None:
    with codex_world(tmp_path, tools=False) as (w, model, ada):
        verbs.start(ada)
        sent = w.ask(ada, "model: hold gate escalate touch outside-ran")
        assert model.wait_for(lambda seen: any(each["verb"] == "hold" for each in seen))
        w.kill_hub()
        model.release("gate")
        until(lambda: job_state(ada) == "waiting", what="waiting")
        [need] = verbs.status(ada)["needsPerson"]
        assert need["request"] is None
        w.start_hub()
        [request] = asked(w)
        respond(w, request, "accept")
        w.until_stage(sent["id"], "answered")
        assert (w.project / "outside-ran").exists()


@pytest.mark.parametrize(
    "point",
    [
        "journal.ask.before",
        "journal.ask.after",
        "call.post-requests-approval.before",
        "call.post-requests-approval.after",
        "journal.take.after",
        "journal.store.after",
        "adapter.answer.before",
        "adapter.answer.after",
        "journal.over.before",
        "journal.over.after",
        "call.post-requests.before",
        "journal.settle.before",
    ],
)
def test_killed_at_each_point_of_the_way_it_goes_on_with_the_same_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """The command runs exactly once, and the person is asked exactly once."""
    ran = tmp_path / "ran"
    faults = Faults(tmp_path / "faults")
    with codex_world(tmp_path, tools=False) as (w, _, ada):
        monkeypatch.setenv(keeper_faults.VARIABLE, str(faults.folder))
        verbs.start(ada)
        before = len(faults.hits())
        sent = w.ask(ada, f"model: escalate echo once >> {ran}")
        if point == "journal.store.after":
            asked(w)
        faults.plan(point)
        _revive(w, ada, faults, before, lambda: bool(requests(w)))
        [request] = requests(w) or requests(w, "ended")
        if state_of(w, request) == "open":
            respond(w, request, "accept")
        _revive(w, ada, faults, before, lambda: w.stage(sent["id"]) == "answered")
        assert faults.hits(), f"{point} was not come to"
        until_state(w, request, "applied")
        assert ran.read_text() == "once\n"
        assert len(requests(w, "all")) == 1
        assert len(w.results(sent["id"])) == 1
        [kept] = verbs.job(ada, request["job"])["approvals"]
        assert (kept["state"], kept["told"]) == ("approved", True)


def _revive(w: World, target: Target, faults: Faults, before: int, done: Any) -> None:
    """Start the receiver again whenever it was killed, until it is done."""

    def step() -> bool:
        if done():
            return True
        if len(faults.hits()) > before:
            verbs.start(target)
        return False

    until(step, what="the end of the way")
