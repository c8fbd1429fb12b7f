"""What people are told of receivers: the words, the exit code, the line to type, and whether waking works."""

from pathlib import Path
from typing import Any

import pytest

from relay_receiver.cli import told
from relay_receiver.cli.doctor import protection, wake
from relay_receiver.cli.logs import tail

READY: dict[str, Any] = {
    "state": "ready",
    "detail": None,
    "pid": 12,
    "channelName": "lab",
    "adapter": "codex",
    "directory": "/p",
    "network": False,
    "sessionId": "s1",
    "wake": "addressed",
    "chain": {"count": 1, "limit": 3, "paused": False},
    "queue": {"queued": 2, "received": 0},
    "job": None,
    "needsPerson": [],
    "transport": {"name": "websocket", "why": "connected"},
    "lease": {"state": "held", "fence": "f"},
    "refused": None,
    "lastError": None,
}


def test_only_an_agent_with_a_sandbox_has_a_closed_network() -> None:
    assert told.status({**READY, "adapter": "command"})[1] == "agent: command in /p, session s1"


def test_only_what_was_begun_here_is_stopped_by_ctrl_c() -> None:
    assert told.began({"state": "ready"}) == "The receiver is ready. Ctrl-C stops it."
    assert "Ctrl-C" not in told.began({"state": "already_running", "pid": 7})


def test_a_start_says_what_keeps_it_from_working() -> None:
    ready, again = {"state": "ready", "pid": 7}, {"state": "already_running", "pid": 7}
    away = {"state": "offline", "detail": "The hub at http://h cannot be reached."}
    assert told.started(ready, {"state": "ready"}) == ["The receiver is ready, process 7."]
    assert told.started(again, {"state": "busy"}) == ["The receiver runs already, process 7."]
    assert told.started(ready, away) == [
        "The receiver runs, process 7.",
        "It is offline: The hub at http://h cannot be reached.",
    ]
    assert told.started(ready, {"state": "offline"})[1] == "It is offline: it has not reached its hub yet"
    assert told.started(ready, {"state": "paused"})[1] == "It is paused."


def test_evidence_that_is_not_there_is_not_told() -> None:
    evidence = {"exit": 0, "signal": None, "alive": [], "stderr": ""}
    assert told.job({"id": "j", "state": "failed", "attempt": 1, "evidence": evidence})[1:] == ["evidence: exit: 0"]


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        ("accept", "It counts as done; its result goes to the requester."),
        ("abandon", "It is given up; the requester is told."),
        ("retry", "It is run again, as attempt 3."),
    ],
)
def test_whoever_settles_is_told_what_it_comes_to(verb: str, said: str) -> None:
    assert told.settled({"id": "j", "state": "queued", "attempt": 2}, verb) == said


def test_a_ready_receiver_in_words() -> None:
    assert told.status(READY) == [
        "ready (channel lab, process 12)",
        "agent: codex in /p, network closed, session s1",
        "wake: addressed; chain 1 of 3",
        "queue: 2 queued, 0 received",
        "hub: websocket (connected); lease held",
    ]
    assert told.status_code(READY) == 0
    assert told.next_step(READY) == "relay receiver jobs"


def test_what_needs_a_person_comes_first_and_exits_with_4() -> None:
    needs = [{"what": "unknown", "job": "j1", "next": "relay receiver job j1"}]
    now = {**READY, "state": "unknown", "needsPerson": needs}
    assert told.status(now)[1] == "needs you: unknown j1"
    assert told.status_code(now) == 4
    assert told.next_step(now) == "relay receiver job j1"


def test_nothing_configured_exits_with_1() -> None:
    now = {"state": "not_configured"}
    assert (told.status_code(now), told.next_step(now)) == (1, "relay receiver start")


@pytest.mark.parametrize(
    ("change", "word", "line"),
    [
        ({"wake": "manual"}, "manual", "relay receiver settings --wake addressed"),
        ({"state": "stopped"}, "does not run", "relay receiver start"),
        ({"state": "unknown"}, "unknown", "relay receiver jobs"),
        ({"state": "unauthorized"}, "credential", "relay connect"),
        ({"state": "standby"}, "lease", "relay receiver stop"),
        ({"state": "paused", "chain": {"paused": True}}, "paused", "relay receiver resume"),
        ({"state": "offline", "detail": "the hub is away"}, "the hub is away", "relay receiver logs"),
        ({"state": "refused", "adapterError": "codex is not there"}, "codex is not there", "relay receiver configure"),
        ({"state": "refused", "lastError": "no codex"}, "no codex", "relay receiver logs"),
    ],
)
def test_the_doctor_says_that_waking_does_not_work(change: dict[str, Any], word: str, line: str) -> None:
    check = wake("receiver", {**READY, **change})
    assert not check.ok
    assert word in check.detail
    assert (check.mend or "").startswith(line)


@pytest.mark.parametrize("state", ["ready", "busy"])
def test_the_doctor_says_that_waking_works(state: str) -> None:
    check = wake("receiver", {**READY, "state": state})
    assert check.ok
    assert "automatic wake works" in check.detail


def test_the_doctor_says_which_protection_there_is() -> None:
    assert "network is closed" in protection(READY)
    assert "everything that you may" in protection({"adapter": "command"})


def test_the_end_of_a_log(tmp_path: Path) -> None:
    path = tmp_path / "log"
    assert tail(path, 3) == []
    path.write_text("".join(f"{n} {'x' * 100}\n" for n in range(3000)))
    assert [line.split()[0] for line in tail(path, 3)] == ["2997", "2998", "2999"]
    assert len(tail(path, 5000)) == 3000


def test_what_an_agent_asked_is_told_with_who_decided_it() -> None:
    asked = {
        "askedAt": "2026-01-01T00:00:00.000Z",
        "title": "Run outside the sandbox: ls",
        "state": "declined",
        "decidedBy": "Ann (p_1)",
        "reason": None,
        "request": "req_1",
    }
    lines = told.job({"id": "j", "state": "done", "attempt": 1, "approvals": [asked]})
    assert "  asked at 2026-01-01T00:00:00.000Z: Run outside the sandbox: ls -> declined by Ann (p_1) (req_1)" in lines
    need = {"what": "approval", "title": "Run outside the sandbox: ls", "request": None, "next": "relay receiver job j"}
    assert "needs you: Run outside the sandbox: ls (the hub has not been told yet)" in told.status(
        {"needsPerson": [need]}
    )


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"approvals": "decline"}, "approvals: what the agent asks is declined"),
        (
            {"approvals": "ask", "approvers": [], "approvalSeconds": 86400.0},
            "approvals: any person of the channel, within 24h; unanswered is declined",
        ),
    ],
)
def test_who_approves_is_told_with_the_settings(settings: dict[str, object], line: str) -> None:
    assert line in told.limits(settings)
