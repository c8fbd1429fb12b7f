"""People decide what the real Codex asks, at a real hub: the whole way there and back."""

from pathlib import Path

import pytest
from support_approvals import asked, codex_world, job_state, respond, until_state

from relay_receiver.client import profiles
from relay_receiver.receiver import verbs
from relay_receiver.wire.action import action_hash


@pytest.mark.parametrize("decision", ["accept", "decline"])
def test_a_command_runs_outside_the_sandbox_once_a_person_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decision: str
) -> None:
    outside = tmp_path / "outside"
    with codex_world(tmp_path, monkeypatch) as (w, _, ada):
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
        status = verbs.status(ada)
        [need] = status["needsPerson"]
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
        sheet = verbs.job(ada, request["job"])
        [decided] = sheet["approvals"]
        assert decided["state"] == {"accept": "approved", "decline": "declined"}[decision]
        assert decided["decidedBy"].endswith(f"({profiles.load('owner').agent})")
