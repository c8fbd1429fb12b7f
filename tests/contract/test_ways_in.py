"""Ten ways in that must fail, tried on a real hub: on every route that there is, with whatever an attacker has."""

import hashlib
import re
import socket
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from support_console import Browser, link, operation
from support_hub import LiveHub, Member, good

import relay_receiver.hub
from relay_receiver.hub import enrolment, members
from relay_receiver.hub.console import pages
from relay_receiver.wire.message import iso

SCRIPT = '"><script>alert(1)</script><img src=x onerror=alert(1)>'
ESCAPED = "&lt;script&gt;"
ACTION = {"kind": "command", "command": "true", "cwd": "/"}
PERSONS = {
    ("POST", "/invites"): {"channel": "CHANNEL", "person": False},
    ("POST", "/requests/{id}/respond"): {"answer": {"decision": "accept"}, "actionHash": "HASH"},
    ("POST", "/controls"): {"channel": "CHANNEL", "agent": "AGENT", "action": "resume",
                          "arguments": {}, "operationId": "x"},
    ("POST", "/receiver/run"): {
        "channel": "CHANNEL",
        "action": "settle",
        "agent": "AGENT",
        "requestId": "x",
        "outcome": "abandoned",
        "reason": "r",
    },
    ("POST", "/console-links"): {},
}  # fmt: skip
"""Every call that only a person may make, with a body that a person's would be taken with."""
OTHERS = """
GET /state /peers /agent-identity /channels /channels/{id}/members /messages /messages/{id} /attachments/{id} /receiver
GET /requests /requests/{id} /controls /controls/{id} /receivers /docs /docs/{id} /docs/{id}/revisions /tasks
GET /tasks/{id} /search /updates /inbox
POST /enroll /channels /channels/{id}/me/ping /messages /messages/{id}/withdraw /attachments /receiver /requests
POST /requests/{id}/close /controls/{id}/outcome /docs /tasks /subscriptions
PUT /channels/{id}/me/status
PATCH /agent-identity /receiver /docs/{id} /tasks/{id} /subscriptions/{id}
DELETE /channels/{id}/me
"""
"""Every other call: whoever adds one says here, or above, whether agents may make it."""


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    made = LiveHub(tmp_path_factory.mktemp("hub") / "data", rate_factor=1e6).start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def owner(hub: LiveHub) -> Member:
    return hub.owner()


@pytest.fixture
def lab(hub: LiveHub, owner: Member) -> str:
    return hub.channel(owner, f"lab {operation()}")


@pytest.fixture
def bob(hub: LiveHub, owner: Member, lab: str) -> Member:
    return hub.agent(owner, lab, "bob")


@pytest.fixture
def browser(hub: LiveHub, owner: Member, lab: str) -> Iterator[Browser]:
    assert lab
    with Browser(hub) as made:
        yield made.sign_in(owner)


def ask(who: Member, channel: str, **more: Any) -> dict[str, Any]:
    body = {
        "channel": channel,
        "kind": "approval",
        "title": "Run",
        "action": ACTION,
        "operationId": operation(),
        **more,
    }
    return dict(who.post("/requests", body))


def filled(path: str, **values: str) -> str:
    return re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: values.get(found[1], "unknown"), path)


def console_routes(*methods: str) -> list[tuple[str, str]]:
    """The console's routes for which somebody has to be signed in."""
    found = [
        (method, route.path)
        for route in pages.routes
        for method in sorted(route.methods or ())
        if method in methods and route.path not in pages.PUBLIC
    ]
    assert len(found) > 5
    return found


def job_of(bob: Member, lab: str, owner: Member) -> httpx.Client:
    """A client with the credential of a run of bob's."""
    asked = owner.post(
        "/messages", {"channel": lab, "kind": "request", "to": bob.id, "content": "x", "operationId": operation()}
    )
    held = bob.post("/receiver", {"channel": lab, "holderId": "h", "sessionId": None, "runtime": "x", "state": "ready"})
    begin = {"channel": lab, "holderId": "h", "fence": held["fence"], "requestId": "j", "message": asked["id"]}
    begun = bob.post("/receiver/run", {**begin, "action": "begin", "attempt": 1, "claim": operation()})
    return httpx.Client(
        base_url=bob.http.base_url, headers={"authorization": f"Bearer {begun['credential']}"}, trust_env=False
    )


# 1. An agent's token on every person's route.


def test_agents_and_their_jobs_decide_nothing(hub: LiveHub, owner: Member, bob: Member, lab: str) -> None:
    asked, refused = ask(bob, lab), set()
    values = {"CHANNEL": lab, "AGENT": bob.id, "HASH": asked["actionHash"]}
    with job_of(bob, lab, owner) as job:
        for (method, path), body in PERSONS.items():
            said = {name: values.get(value, value) if isinstance(value, str) else value for name, value in body.items()}
            for who in (bob.http, job):
                answer = who.request(method, filled(path, id=asked["id"]), json=said)
                assert answer.status_code == 403, (path, answer.text)
                assert answer.json()["code"] in {"person_needed", "inside_a_job"}, (path, answer.text)
                refused.add(answer.json()["error"])
    code = "".join(each.read_text() for each in sorted(Path(relay_receiver.hub.__file__).parent.rglob("*.py")))
    said = set(re.findall(r"\.need_person\(\"([^\"]+)\"\)", code))
    assert len(re.findall(r"\.need_person\(", code)) >= len(said) > 3
    assert {f"Only a person may {what}." for what in said} <= refused, "one of them is tried on no route"
    assert bob.get(f"/requests/{asked['id']}")["state"] == "open"


def test_every_call_is_known_to_be_for_people_or_for_others_too(hub: LiveHub, bob: Member) -> None:
    known = {(method, route.path) for route in hub.app.routes for method in set(route.methods or ()) - {"HEAD"}}
    others = {(line.split()[0], path) for line in OTHERS.strip().splitlines() for path in line.split()[1:]}
    assert known == set(PERSONS) | others
    assert not set(PERSONS) & others
    for method, path in sorted(others - {("DELETE", "/channels/{id}/me"), ("GET", "/updates")}):
        answer = bob.http.request(method, filled(path), json={} if method != "GET" else None)
        assert answer.status_code < 500
        assert "person_needed" not in answer.text, (method, path)


def test_an_agent_does_not_sign_in_and_no_bearer_opens_a_page(hub: LiveHub, owner: Member, bob: Member) -> None:
    with Browser(hub) as browser:
        assert browser.post("/sign-in", {"token": bob.token}).status_code == 403
        for who in (bob, owner):
            bearer = {"authorization": f"Bearer {who.token}"}
            for _, path in console_routes("GET"):
                assert browser.get(filled(path), **bearer).status_code == 401, path


def test_a_sign_in_in_the_browser_opens_no_call_of_the_api(hub: LiveHub, browser: Browser) -> None:
    for route in hub.app.routes:
        for method in sorted(route.methods or ()):
            if route.path in {"/enroll", "/agent-identity"}:
                continue
            answer = browser.http.request(method, f"/api/v1{filled(route.path)}", headers={"origin": hub.url})
            assert answer.status_code == 401, (method, route.path, answer.text)


# 2. and 3. A cookie without the proof of its page; a page of somebody else.

PROOFS = {
    "no csrf": ({"csrf": None}, {}),
    "another csrf": ({"csrf": "x" * 43}, {}),
    "a foreign origin": ({}, {"origin": "https://evil.example"}),
    "the origin of another port": ({}, {"origin": "http://127.0.0.1:1"}),
    "no origin at all": ({}, {"origin": None}),
    "an origin that is hidden": ({}, {"origin": "null"}),
    "another site, as the browser says": ({}, {"sec-fetch-site": "cross-site"}),
    "another page of the same site": ({}, {"sec-fetch-site": "same-site"}),
}


@pytest.mark.parametrize("proof", PROOFS)
def test_a_cookie_alone_writes_nothing(hub: LiveHub, browser: Browser, lab: str, proof: str) -> None:
    form, headers = PROOFS[proof]
    before = hub.store.read_now(lambda conn: conn.exec_driver_sql("SELECT total_changes()").scalar())
    for method, path in console_routes("POST"):
        said = {
            "csrf": browser.csrf,
            "content": "x",
            "name": f"n{operation()}",
            "channel": lab,
            "kind": "agent",
            **form,
        }
        sent = {"origin": hub.url, **headers}
        answer = browser.http.request(
            method,
            filled(path, id=lab),
            data={name: value for name, value in said.items() if value is not None},
            headers={name: value for name, value in sent.items() if value is not None},
        )
        assert answer.status_code == 403, (path, answer.status_code, answer.text)
    assert before == hub.store.read_now(lambda conn: conn.exec_driver_sql("SELECT total_changes()").scalar())


def test_the_csrf_of_another_sign_in_does_not_count(hub: LiveHub, browser: Browser, owner: Member, lab: str) -> None:
    with Browser(hub) as other:
        other.sign_in(owner)
        assert other.csrf != browser.csrf
        said = {"csrf": other.csrf, "name": f"n{operation()}"}
        assert browser.http.post("/channels", data=said, headers={"origin": hub.url}).status_code == 403


# 4. A host that this hub is not.


@pytest.mark.parametrize(
    "host",
    [
        "evil.localhost.example",
        "a.b.localhost",
        ".localhost",
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
        "[::ffff:127.0.0.1]x",
        "",
    ],
)
def test_under_another_host_nothing_is_answered(hub: LiveHub, browser: Browser, host: str) -> None:
    for path in ("/", "/sign-in", "/static/console.css", "/api/v1/state", "/api/v1/enroll"):
        with socket.create_connection(("127.0.0.1", urlsplit(hub.url).port or 0)) as raw:
            raw.sendall(f"GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode())
            status = raw.makefile("rb").readline().split()[1]
        assert status in {b"403", b"400"}, (path, status)


# 5. A script in a name, a message, a document, the name of a file.


def test_what_members_write_is_text_on_every_page(hub: LiveHub, owner: Member, browser: Browser, lab: str) -> None:
    def join(role: str) -> Member:
        code = hub.write(enrolment.invite, hub.actor(owner), lab, person=role == "human", at=time.time()).code
        return hub.join(code, SCRIPT[:60])

    eve, bot = join("human"), join("agent")
    headers = {"content-type": "text/html", "x-file-name": "x"}
    page = f"<html>{SCRIPT}</html>".encode()
    made = good(bot.http.post("/attachments", params={"name": f"{SCRIPT[:40]}.html"}, content=page, headers=headers))
    said = {"channel": lab, "kind": "message", "content": f"{SCRIPT}\n\n[a](javascript:alert(1)) ![b](http://x/y)"}
    posted = bot.post(
        "/messages",
        {**said, "operationId": operation(), "attachments": [{"id": made["id"], "name": f"{SCRIPT[:40]}.html"}]},
    )
    doc = owner.post("/docs", {"channel": lab, "title": SCRIPT, "content": f"{SCRIPT}\n\n<b onclick=alert(1)>x</b>"})
    task = owner.post("/tasks", {"channel": lab, "title": SCRIPT, "description": SCRIPT, "assignee": bot.id})
    asked = ask(
        bot,
        lab,
        title=SCRIPT,
        description=SCRIPT,
        action={**ACTION, "command": SCRIPT, SCRIPT: SCRIPT, "agentSays": SCRIPT},
    )
    options = [{"id": SCRIPT, "label": SCRIPT, "description": SCRIPT}]
    choice = bot.post(
        "/requests", {"channel": lab, "kind": "choice", "title": SCRIPT, "options": options, "operationId": operation()}
    )
    lease = {
        "channel": lab,
        "holderId": "h",
        "sessionId": None,
        "runtime": SCRIPT,
        "state": "unknown",
        "detail": SCRIPT,
    }
    unknown = {"job": SCRIPT, "why": SCRIPT, "text": SCRIPT, "evidence": {SCRIPT: SCRIPT}}
    bot.post("/receiver", {**lease, "report": {"adapter": SCRIPT, "lastError": SCRIPT, "unknown": unknown}})
    eve.http.put(f"/channels/{lab}/me/status", json={"rev": 0, "mode": "available", "text": SCRIPT})
    paths = [
        "/",
        f"/channels/{lab}",
        f"/m/{posted['id']}",
        "/needs",
        "/receivers",
        "/members",
        "/docs",
        f"/docs/{doc['id']}",
    ]
    paths += [f"/docs/{doc['id']}/edit", f"/docs/{doc['id']}/history", "/tasks", f"/tasks/{task['id']}"]
    paths += [f"/requests/{asked['id']}", f"/requests/{choice['id']}", "/search?q=script"]
    for path in paths:
        answer = browser.get(path)
        assert answer.status_code == 200, (path, answer.text)
        assert _dangers(answer.text) == [], path
        assert ESCAPED in answer.text or path in {"/", "/search?q=script"}, path
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
    sent = browser.get(f"/attachments/{made['id']}")
    assert sent.content == page
    assert sent.headers["content-disposition"].startswith("attachment")
    assert "<" not in sent.headers["content-disposition"]
    assert sent.headers["x-content-type-options"] == "nosniff"
    assert sent.headers["content-type"] != "text/html"


class _Dangers(HTMLParser):
    """What in a page could run: scripts but the hub's own, handlers, links to scripts, pictures of others, styles."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        have = dict(attrs)
        own = re.fullmatch(r"/static/\w+\.js\?v=\w+", have.get("src") or "")
        if (tag == "script" and not own) or tag in {"img", "iframe", "object", "style", "base"}:
            self.found.append(tag)
        self.found += [f"{tag} {name}" for name in have if name.startswith("on") or name == "style"]
        for name in ("href", "action", "formaction", "src"):
            if re.match(r"\s*(javascript|data|vbscript):", have.get(name) or "", re.IGNORECASE):
                self.found.append(f"{tag} {name}")


def _dangers(page: str) -> list[str]:
    parser = _Dangers()
    parser.feed(page)
    return parser.found


# 6. A link that was used.


def test_a_link_signs_in_once_for_ten_minutes_and_says_nothing_else(hub: LiveHub, owner: Member) -> None:
    used, old = link(hub, owner), link(hub, owner, at=time.time() - 601)
    sentences = set()
    with Browser(hub) as browser:
        assert browser.post("/sign-in", {"code": used}).status_code == 303
    for code in (used, old, "x" * 43, ""):
        with Browser(hub) as browser:
            answer = browser.post("/sign-in", {"code": code})
            assert answer.status_code == 403
            assert "set-cookie" not in answer.headers
            assert browser.get("/").status_code == 401
            if code:
                sentences.add(re.findall(r'role="alert">([^<]+)', answer.text)[0])
    assert len(sentences) == 1


def test_a_sign_in_gives_a_new_cookie_and_ends_the_one_before(hub: LiveHub, owner: Member) -> None:
    with Browser(hub) as browser:
        browser.http.cookies.set("relay_session", "x" * 43)
        browser.sign_in(owner)
        first = browser.http.cookies.get("relay_session", domain="127.0.0.1")
        assert first != "x" * 43
        cookie = browser.post("/sign-in", {"code": link(hub, owner)}).headers["set-cookie"].lower()
        assert {"httponly", "samesite=strict", "path=/"} <= {part.strip() for part in cookie.split(";")}
        with Browser(hub) as stolen:
            stolen.http.cookies.set("relay_session", str(first))
            assert stolen.get("/").status_code == 401


def test_guesses_at_the_sign_in_are_slowed_down(tmp_path_factory: pytest.TempPathFactory) -> None:
    slow = LiveHub(tmp_path_factory.mktemp("slow") / "data").start()
    try:
        slow.owner()
        with Browser(slow) as browser:
            answers = [browser.post("/sign-in", {"code": operation()}).status_code for _ in range(40)]
        assert set(answers) == {403, 429}
        assert answers.count(403) < 20
    finally:
        slow.stop()


# 7. and 8. An approval that is over, of another request, of another channel.


def test_a_stale_approval_approves_nothing(
    hub: LiveHub, owner: Member, bob: Member, lab: str, browser: Browser
) -> None:
    shown = ask(bob, lab)
    bob.post(f"/requests/{shown['id']}/close", {"state": "superseded"})
    newer = ask(bob, lab, action={**ACTION, "command": "rm -rf /"})
    says = {"answer.decision": "accept", "actionHash": shown["actionHash"]}
    assert browser.post(f"/requests/{shown['id']}/respond", says).status_code == 409
    assert browser.post(f"/requests/{newer['id']}/respond", says).status_code == 409
    body = {"answer": {"decision": "accept"}, "actionHash": shown["actionHash"]}
    for each in (shown, newer):
        assert owner.http.post(f"/requests/{each['id']}/respond", json=body).status_code == 409
    late = ask(bob, lab, expiresAt=iso(time.time() + 0.2))
    while bob.get(f"/requests/{late['id']}")["state"] == "open":
        pass
    body = {"answer": {"decision": "accept"}, "actionHash": late["actionHash"]}
    assert owner.http.post(f"/requests/{late['id']}/respond", json=body).json()["code"] == "request_expired"
    assert bob.get(f"/requests/{newer['id']}")["state"] == "open"


def test_an_approval_is_not_given_from_another_channel(hub: LiveHub, owner: Member, bob: Member, lab: str) -> None:
    asked = ask(bob, lab)
    eve = hub.agent(owner, hub.channel(owner, f"other {operation()}"), "eve", person=True)
    body = {"answer": {"decision": "accept"}, "actionHash": asked["actionHash"]}
    assert eve.http.post(f"/requests/{asked['id']}/respond", json=body).status_code == 404
    with Browser(hub) as browser:
        browser.sign_in(eve)
        said = {"answer.decision": "accept", "actionHash": asked["actionHash"]}
        assert browser.post(f"/requests/{asked['id']}/respond", said).status_code == 404
    assert bob.get(f"/requests/{asked['id']}")["state"] == "open"


# 9. A path out of the attachments, and of the files of the pages.

PATHS = [
    "../store.sqlite3",
    "..%2f..%2fetc%2fpasswd",
    "%2e%2e/owner.json",
    "....//x",
    "/etc/passwd",
    "a" * 64,
    "A" * 64,
    "",
]


@pytest.mark.parametrize("path", PATHS)
def test_no_path_leads_out(hub: LiveHub, owner: Member, browser: Browser, path: str) -> None:
    port = urlsplit(hub.url).port
    cookie = f"relay_session={browser.http.cookies.get('relay_session', domain='127.0.0.1')}"
    for start, header in (
        ("/api/v1/attachments/", f"authorization: Bearer {owner.token}"),
        ("/attachments/", f"cookie: {cookie}"),
        ("/static/", f"cookie: {cookie}"),
    ):
        words = f"GET {start}{path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n{header}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", port or 0)) as raw:
            raw.sendall(words.encode())
            status = raw.makefile("rb").readline().split()[1]
        assert status in {b"404", b"405", b"400"}, (start, path, status)


def test_bytes_are_attached_and_fetched_only_by_who_may(hub: LiveHub, owner: Member, bob: Member, lab: str) -> None:
    content = operation().encode()
    made = good(bob.http.post("/attachments", params={"name": "a"}, content=content))["id"]
    assert made == hashlib.sha256(content).hexdigest()
    said = {"channel": lab, "kind": "message", "content": "x", "attachments": [{"id": made, "name": "a"}]}
    bob.post("/messages", {**said, "operationId": operation()})
    assert owner.http.get(f"/attachments/{made}").content == content
    eve = hub.agent(owner, hub.channel(owner, f"other {operation()}"), "eve", person=True)
    assert eve.http.get(f"/attachments/{made}").status_code == 404
    body = {
        "channel": eve.get("/channels")["channels"][0]["id"],
        "kind": "message",
        "content": "x",
        "operationId": operation(),
    }
    assert eve.http.post("/messages", json={**body, "attachments": [{"id": made, "name": "a"}]}).status_code in {
        404,
        422,
    }
    with Browser(hub) as browser:
        assert browser.sign_in(eve).get(f"/attachments/{made}").status_code == 404


# 10. A guess of ids across workspaces.


def test_another_workspace_is_not_there(hub: LiveHub, owner: Member, bob: Member, lab: str) -> None:
    asked = ask(bob, lab)
    message = owner.post(
        "/messages", {"channel": lab, "kind": "request", "to": bob.id, "content": "x", "operationId": operation()}
    )
    doc = owner.post("/docs", {"channel": lab, "title": "T", "content": "c"})
    task = owner.post("/tasks", {"channel": lab, "title": "T"})
    lease = {"channel": lab, "holderId": "h", "sessionId": None, "runtime": "x", "state": "paused"}
    bob.post("/receiver", {**lease, "report": {"chain": {"paused": True, "pause": "p1"}}})
    decided = owner.post(
        "/controls", {"channel": lab, "agent": bob.id, "action": "resume", "arguments": {}, "operationId": operation()}
    )
    own = hub.workspace
    space = hub.write(members.make_workspace, f"w{operation()}", at=time.time())
    code = hub.write(enrolment._make, space, role="owner", channel=None, created_by=None, at=time.time()).code
    stranger = hub.join(code, "stranger")
    hub.workspace = own
    ids = {
        "channel": lab,
        "message": message["id"],
        "request": asked["id"],
        "doc": doc["id"],
        "task": task["id"],
        "agent": bob.id,
        "control": decided["id"],
    }
    for route in hub.app.routes:
        for method in sorted(set(route.methods or ()) - {"HEAD", "OPTIONS"}):
            if "{" not in route.path or (method, route.path) == ("DELETE", "/channels/{id}/me"):
                continue  # whoever is not in a channel has left it: the same answer for every id
            for each in ids.values():
                answer = stranger.http.request(
                    method,
                    filled(route.path, id=each),
                    json={
                        "rev": 1,
                        "title": "x",
                        "answer": {},
                        "state": "done",
                        "outcome": "done",
                        "sentence": "x",
                        "mode": "available",
                        "text": "",
                        "cursor": "1",
                    },
                )
                assert answer.status_code in {403, 404, 422}, (method, route.path, each, answer.text)
                assert "x" * 3 not in answer.text
    for name in (
        "/messages",
        "/docs",
        "/tasks",
        "/requests",
        "/controls",
        "/receivers",
        "/search",
        "/updates",
        "/receiver",
    ):
        assert stranger.http.get(name, params={"channel": lab, "q": "x", "wait": 1}).status_code in {403, 404}, name
    with Browser(hub) as browser:
        browser.sign_in(stranger)
        for method, path in console_routes("GET", "POST"):
            if "{" not in path:
                continue
            for each in ids.values():
                address = filled(path, id=each, channel=lab, agent=bob.id)
                answer = (
                    browser.get(address)
                    if method == "GET"
                    else browser.post(
                        address,
                        {"rev": "1", "content": "x", "kind": "message", "operation": operation(), "action": "resume"},
                    )
                )
                assert answer.status_code in {404, 422}, (method, address, answer.status_code)
    assert owner.get(f"/docs/{doc['id']}")["rev"] == 1
    assert owner.get(f"/tasks/{task['id']}")["rev"] == 1
    assert bob.get(f"/requests/{asked['id']}")["state"] == "open"
    assert owner.get(f"/messages/{message['id']}")["delivery"]["stage"] == "stored"
