"""What people decide in the console: answers to requests, and decisions about receivers."""

import re
import time
from typing import Any

import pytest
from support_console import Browser, operation, shown
from support_hub import LiveHub, Member

from relay_receiver.hub import asks
from relay_receiver.wire.message import iso

COMMAND = {"kind": "command", "command": "rm -rf build\u202e", "cwd": "/srv/<b>app</b>", "agentSays": "<i>please</i>"}


def ask(who: Member, channel: str, **more: Any) -> dict[str, Any]:
    body = {
        "channel": channel,
        "kind": "approval",
        "title": "Run a command",
        "action": COMMAND,
        "operationId": operation(),
        "expiresAt": iso(time.time() + 600),
        **more,
    }
    return dict(who.post("/requests", {key: value for key, value in body.items() if value is not None}))


def report(**more: Any) -> dict[str, Any]:
    chain = {"count": 0, "limit": 3, "paused": False, "pause": None}
    return {"wake": "addressed", "adapter": "command", "chain": chain, "queue": {"queued": 1}, "needs": [], **more}


def lease(who: Member, channel: str, state: str, **more: Any) -> None:
    body = {"channel": channel, "holderId": f"h-{who.id}", "sessionId": None, "runtime": "x", "state": state}
    who.post("/receiver", {**body, "report": report(**more)})


# Requests.


def test_what_does_not_fit_on_the_page_is_counted(
    hub: LiveHub, owner: Member, bob: Member, lab: str, browser: Browser
) -> None:
    ann = hub.agent(owner, lab, "ann")
    for number in range(asks.NEEDS_AT_ONCE + 2):
        wish = asks.Wish(channel=lab, kind="input", title=f"Question {number}", operation=operation())
        hub.write(asks.create, hub.actor(ann if number % 2 else bob), wish, at=time.time())
    page = shown(browser.get("/needs").text)
    assert "2 more wait, and appear here as these are answered." in page
    assert page.index("Question 0") < page.index("Question 1")


def test_an_approval_is_shown_whole_with_all_that_hides_made_visible(browser: Browser, bob: Member, lab: str) -> None:
    asked = ask(bob, lab)
    for path in ("/needs", f"/requests/{asked['id']}"):
        page = browser.get(path).text
        assert "rm -rf build⟨U+202E⟩" in page
        assert "\u202e" not in page
        assert "/srv/&lt;b&gt;app&lt;/b&gt;" in page
        assert "&lt;i&gt;please&lt;/i&gt;" in page
        assert "nobody has checked" in page
        assert asked["actionHash"] in page


def test_a_long_patch_is_not_cut(browser: Browser, bob: Member, lab: str) -> None:
    diff = "".join(f"+line {number}\n" for number in range(20_000))
    asked = ask(bob, lab, action={"kind": "patch", "changes": [{"path": "a.py", "kind": "add", "diff": diff}]})
    page = browser.get(f"/requests/{asked['id']}").text
    assert diff.strip() in page


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"kind": "add"}, "a.py (add)"),
        ({"kind": {"type": "update", "move_path": None}}, "a.py (update)"),
        ({"kind": {"type": "update", "move_path": "b.py"}}, "a.py (update, kind.move_path: b.py)"),
        ({"kind": {"type": ["x"]}, "mode\u202e": 7}, 'a.py (kind.type: [ "x" ], mode⟨U+202E⟩: 7)'),
        ({}, "a.py"),
    ],
)
def test_all_that_a_change_says_stands_over_its_lines(
    browser: Browser, bob: Member, lab: str, more: dict[str, Any], said: str
) -> None:
    asked = ask(bob, lab, action={"kind": "patch", "changes": [{"path": "a.py", "diff": "+x", **more}]})
    label = re.search(r'<p class="label">(.*?)</p>', browser.get(f"/requests/{asked['id']}").text, re.DOTALL)
    assert label is not None
    assert " ".join(shown(label[1]).split()) == said


def test_an_answer_is_stored_with_who_gave_it_and_is_gone_from_needs(
    browser: Browser, owner: Member, bob: Member, lab: str
) -> None:
    asked = ask(bob, lab)
    said = {"answer.decision": "accept", "actionHash": asked["actionHash"], "following": "/needs"}
    page = browser.follow(f"/requests/{asked['id']}/respond", said)
    assert "Answered." in page.text
    assert asked["id"] not in page.text
    now = bob.get(f"/requests/{asked['id']}")
    assert (now["state"], now["answer"], now["answeredBy"]["id"]) == ("answered", {"decision": "accept"}, owner.id)


@pytest.mark.parametrize(
    ("change", "status", "sentence"),
    [
        ({"actionHash": "0" * 64}, 409, "not the action"),
        ({"actionHash": ""}, 422, "actionHash"),
        ({"answer.decision": "maybe"}, 422, "must be one of"),
        ({"answer.decision": ""}, 422, "is missing"),
    ],
)
def test_an_answer_that_does_not_fit_is_said_on_the_page_and_changes_nothing(
    browser: Browser, bob: Member, lab: str, change: dict[str, str], status: int, sentence: str
) -> None:
    asked = ask(bob, lab)
    said = {"answer.decision": "accept", "actionHash": asked["actionHash"], **change}
    answer = browser.post(f"/requests/{asked['id']}/respond", said)
    assert answer.status_code == status
    assert sentence in shown(answer.text)
    assert bob.get(f"/requests/{asked['id']}")["state"] == "open"


def test_a_late_and_a_second_answer_say_who_was_first(
    hub: LiveHub, browser: Browser, owner: Member, bob: Member, lab: str
) -> None:
    eve = hub.agent(owner, lab, "eve", person=True)
    asked = ask(bob, lab)
    eve.post(f"/requests/{asked['id']}/respond", {"answer": {"decision": "decline"}, "actionHash": asked["actionHash"]})
    said = {"answer.decision": "accept", "actionHash": asked["actionHash"]}
    answer = browser.post(f"/requests/{asked['id']}/respond", said)
    assert answer.status_code == 409
    assert "eve has answered this request already" in shown(answer.text)
    assert bob.get(f"/requests/{asked['id']}")["answer"] == {"decision": "decline"}


def test_a_form_keeps_what_was_typed_where_it_does_not_fit(browser: Browser, bob: Member, lab: str) -> None:
    schema = {
        "type": "object",
        "properties": {
            "csrf": {"type": "string", "title": "A field that is called as one of the page"},
            "level": {"type": "string", "enum": ["low", "high"]},
            "count": {"type": "integer", "minimum": 1, "maximum": 5},
            "areas": {"type": "array", "items": {"enum": ["api", "cli"]}},
            "sure": {"type": "boolean"},
        },
        "required": ["level", "count"],
    }
    asked = ask(bob, lab, kind="form", action=None, schema=schema)
    said = {"answer.csrf": "<typed>", "answer.level": "high", "answer.count": "9", "answer.areas": ["api", "cli"]}
    answer = browser.post(f"/requests/{asked['id']}/respond", said)
    assert answer.status_code == 422
    assert "`count` must be at most 5" in shown(answer.text)
    assert "&lt;typed&gt;</textarea>" in answer.text
    assert answer.text.count(" checked") == 3
    browser.follow(f"/requests/{asked['id']}/respond", {**said, "answer.count": "5", "answer.sure": "false"})
    expected = {"csrf": "<typed>", "level": "high", "count": 5, "areas": ["api", "cli"], "sure": False}
    assert bob.get(f"/requests/{asked['id']}")["answer"] == expected


def test_a_request_for_others_is_read_and_not_answered(
    hub: LiveHub, browser: Browser, owner: Member, bob: Member, lab: str
) -> None:
    eve = hub.agent(owner, lab, "eve", person=True)
    asked = ask(bob, lab, approvers=[eve.id])
    assert asked["id"] not in browser.get("/needs").text
    page = browser.get(f"/requests/{asked['id']}").text
    assert "for others to answer" in page
    assert "answer.decision" not in page
    said = {"answer.decision": "accept", "actionHash": asked["actionHash"]}
    assert browser.post(f"/requests/{asked['id']}/respond", said).status_code == 403
    assert bob.get(f"/requests/{asked['id']}")["state"] == "open"


def test_a_request_of_a_channel_that_one_is_not_in_is_not_there(hub: LiveHub, owner: Member, bob: Member) -> None:
    other = hub.channel(owner, "other")
    carl = hub.agent(owner, other, "carl")
    eve = hub.agent(owner, str(bob.get("/channels")["channels"][0]["id"]), "eve", person=True)
    asked = ask(carl, other)
    with Browser(hub) as browser:
        browser.sign_in(eve)
        assert browser.get(f"/requests/{asked['id']}").status_code == 404
        said = {"answer.decision": "accept", "actionHash": asked["actionHash"]}
        assert browser.post(f"/requests/{asked['id']}/respond", said).status_code == 404
    assert carl.get(f"/requests/{asked['id']}")["state"] == "open"


# Receivers.

UNKNOWN = {
    "job": "job-1",
    "attempt": 2,
    "message": None,
    "why": "the agent was killed",
    "text": "half <done>",
    "evidence": {"stderr": "one\ntwo", "changed": [{"path": "a<b", "size": 3}]},
}


def test_an_unknown_job_is_settled_from_needs_with_its_evidence(
    browser: Browser, owner: Member, bob: Member, lab: str
) -> None:
    lease(bob, lab, "unknown", unknown=UNKNOWN)
    page = browser.get("/needs").text
    for words in ("the agent was killed", "half &lt;done&gt;", "stderr:", "path a&lt;b, size 3"):
        assert words in page
    said = {
        "action": "settle",
        "job": "job-1",
        "attempt": "2",
        "verb": "abandon",
        "reason": "gone",
        "following": "/needs",
    }
    page = browser.follow(f"/receivers/{lab}/{bob.id}", {**said, "operation": operation()}).text
    assert "owner decided" in shown(page)
    assert "Give it up" not in page
    (made,) = bob.get("/controls", channel=lab)["controls"]
    assert made["arguments"] == {"job": "job-1", "attempt": 2, "verb": "abandon", "reason": "gone"}
    assert made["by"]["id"] == owner.id


def test_a_pause_is_resumed_once_however_often_the_form_is_sent(browser: Browser, bob: Member, lab: str) -> None:
    lease(bob, lab, "paused", chain={"count": 3, "limit": 3, "paused": True, "pause": "p1"})
    assert "Let them go on" in browser.get("/needs").text
    said = {"action": "resume", "operation": operation()}
    for _ in range(2):
        assert browser.post(f"/receivers/{lab}/{bob.id}", said).status_code == 303
    assert len(bob.get("/controls", channel=lab)["controls"]) == 1


def test_a_second_decision_about_the_same_is_refused_on_the_page(browser: Browser, bob: Member, lab: str) -> None:
    lease(bob, lab, "busy", job={"id": "job-1", "attempt": 1, "state": "running"})
    said = {"action": "cancel", "job": "job-1"}
    assert browser.post(f"/receivers/{lab}/{bob.id}", {**said, "operation": operation()}).status_code == 303
    answer = browser.post(f"/receivers/{lab}/{bob.id}", {**said, "operation": operation()})
    assert answer.status_code == 409
    assert "has decided this already" in shown(answer.text)


@pytest.mark.parametrize(
    "wrong",
    [
        {"unknown": "text"},
        {"unknown": {"job": 7}},
        {"unknown": {"job": "j", "attempt": "x", "evidence": [[[{"a": [None, {"b": "\u202e"}]}]]]}},
        {"job": {"id": "j", "startedAt": "yesterday", "attempt": True}},
        {"chain": [], "queue": {"queued": "many"}, "transport": 5, "needs": [1, {"what": 2}, {"what": "fault"}]},
        {"needs": {"what": "x"}, "proves": "?", "lastError": {"a": 1}},
    ],
)
def test_whatever_a_receiver_reports_its_page_is_shown(
    browser: Browser, bob: Member, lab: str, wrong: dict[str, Any]
) -> None:
    lease(bob, lab, "ready", **wrong)
    for path in ("/", "/needs", "/receivers", "/members"):
        page = browser.get(path)
        assert page.status_code == 200, page.text
        assert "\u202e" not in page.text


def test_a_decision_about_what_is_not_there_is_no_decision(
    hub: LiveHub, browser: Browser, owner: Member, bob: Member, lab: str
) -> None:
    other = hub.channel(owner, "other")
    said = {"action": "resume", "operation": operation()}
    for path, status in (
        (f"/receivers/{lab}/{owner.id}", 404),
        (f"/receivers/{other}/{bob.id}", 404),
        (f"/receivers/{lab}/nobody", 404),
        (f"/receivers/{lab}/{bob.id}", 409),
    ):
        assert browser.post(path, said).status_code == status, path
    assert browser.post(f"/receivers/{lab}/{bob.id}", {"action": "explode"}).status_code == 422
    assert bob.get("/controls", channel=lab)["controls"] == []


def test_a_large_report_is_written_only_where_it_is_read(
    hub: LiveHub, browser: Browser, bob: Member, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []

    def visible(text: str) -> str:
        written.append(len(text))
        return text

    sheet = {"job": "j1", "attempt": 1, "text": "x\u202e" * 10_000, "evidence": {"lines": [["y"]] * 2000}}
    lease(bob, lab, "unknown", unknown=sheet, lastError="z" * 1000, needs=[{"what": "fault", "why": "w" * 1000}])
    monkeypatch.setattr("relay_receiver.hub.console.reported.visible", visible)
    assert 'data-needs="1"' in browser.get("/docs").text
    assert written == []
    assert browser.get("/needs/summary").json()["count"] == 1
    assert sum(written) < 5000
    assert browser.get("/needs").status_code == 200
    assert sum(written) > 20_000
