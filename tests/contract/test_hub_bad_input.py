"""Whatever is sent, on whatever route: a 4xx with one clear sentence, and the hub goes on."""

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support_hub import LiveHub, Member, good

READS = {"GET", "HEAD"}
ATTACHMENTS = "/attachments"

BODIES: dict[str, tuple[bytes, set[int]]] = {
    "no JSON": (b'{"channel":', {400}),
    "no JSON at all": (b"\x80\x81", {400}),
    "not an object": (b"[1,2,3]", {400}),
    "depth 1,000": (b'{"content":' + b"[" * 1000 + b"]" * 1000 + b"}", {400}),
    "depth 33": (b'{"content":' + b"[" * 33 + b"]" * 33 + b"}", {400}),
    "depth 100,000": (b"[" * 100_000, {400}),
    "objects of depth 100,000": (b'{"a":' * 100_000, {400}),
    "NUL": (rb'{"content":"a\u0000b","channel":"c","name":"n"}', {400}),
    "NUL in a name": (rb'{"a\u0000b":1}', {400}),
    "raw NUL": (b'{"content":"a\x00b"}', {400}),
    "lone surrogate": (rb'{"content":"a\ud800b","channel":"c","name":"n"}', {400}),
    "raw lone surrogate": (b'{"content":"\xed\xa0\x80"}', {400}),
    "deep surrogate": (rb'{"a":[{"b":["\udfff"]}]}', {400}),
    "huge integer": (b'{"rev":' + b"9" * 5000 + b"}", {400}),
    "integer over 64 bits": (b'{"rev":9223372036854775808}', {400}),
    "huge float": (b'{"rev":1e999}', {400}),
    "NaN": (b'{"rev":NaN}', {400}),
    "a name twice": (b'{"channel":"a","channel":"b"}', {400}),
    "2 MiB": (b'{"content":"' + b"x" * 2 * 1024 * 1024 + b'"}', {413}),
}

WRONG: list[Any] = [-1, 2**62, True, [[7]], {"a": {"b": []}}, "x" * 3000, None]
FIELDS = (
    "action", "actionHash", "agent", "answer", "approvers", "attachments", "attempt", "avatarUrl", "channel", "claim",
    "clientSecret", "content", "cursor", "description", "detail", "expiresAt", "fence", "holderId", "identitySecret",
    "invite", "job", "kind", "mentions", "message", "mode", "name", "notice", "operationId", "options", "outcome",
    "person", "reason", "replyTo", "requestId", "rev", "run", "runtime", "schema", "sessionId", "signature", "state",
    "subscription", "text", "title", "to", "type",
)  # fmt: skip
QUERIES = {"cursor", "channel", "after", "before", "limit", "wait", "types", "name", "state"}


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LiveHub]:
    live = LiveHub(tmp_path / "hub", rate_factor=1e6).start()
    try:
        yield live
    finally:
        live.stop()


@pytest.fixture
def routes(hub: LiveHub) -> list[tuple[str, str]]:
    """Every method of every route, with ids that nobody has."""
    found = [
        (method, re.sub(r"\{\w+\}", "unknown-id", route.path))
        for route in hub.app.routes
        for method in sorted(route.methods or ())
    ]
    assert len(found) > 25
    return found


def check(answer: httpx.Response, what: object, *, among: set[int] | None = None) -> None:
    """One JSON object with one sentence and a stable code; never a 5xx."""
    assert 400 <= answer.status_code < 500, (what, answer.status_code, answer.text)
    if among is not None:
        assert answer.status_code in among, (what, answer.status_code, answer.text)
    if answer.request.method == "HEAD":
        return
    told = answer.json()
    assert re.fullmatch(r"[a-z][a-z0-9_]*", told["code"]), (what, told)
    assert told["error"].endswith("."), (what, told)
    assert 10 < len(told["error"]) < 300, (what, told)
    assert "\n" not in told["error"], (what, told)


def answers(member: Member, method: str, path: str, **more: Any) -> httpx.Response:
    return member.http.request(method, path, **more)


@pytest.mark.parametrize("what", BODIES)
def test_a_body_that_cannot_be_read_is_refused_alike_on_every_route(
    hub: LiveHub, routes: list[tuple[str, str]], what: str
) -> None:
    owner = hub.owner()
    raw, among = BODIES[what]
    seen = set()
    for method, path in routes:
        if method in READS or path == ATTACHMENTS:
            continue
        bearer = owner.identity if path == "/agent-identity" else owner.token
        answer = answers(owner, method, path, content=raw, headers={"authorization": f"Bearer {bearer}"})
        check(answer, (what, method, path), among=among)
        seen.add((answer.status_code, answer.json()["code"]))
    assert len(seen) == 1, seen
    assert owner.get("/state")["protocol"] == 1


def test_wrong_types_in_every_field_of_every_route(
    hub: LiveHub, routes: list[tuple[str, str]], caplog: pytest.LogCaptureFixture
) -> None:
    owner = hub.owner()
    lab = hub.channel(owner)
    bob = hub.agent(owner, lab, "bob")
    right = {
        "channel": lab, "content": "x", "operationId": "op", "holderId": "h", "requestId": "r", "name": "n",
        "action": "begin", "mode": "available", "type": "message.created", "invite": "i" * 26,
        "clientSecret": "s" * 43, "identitySecret": "t" * 43, "state": "ready",
    }  # fmt: skip
    with caplog.at_level(logging.ERROR):
        for method, path in routes:
            if method in READS or path == ATTACHMENTS:
                continue
            who = bob if path.startswith("/receiver") else owner
            for field in FIELDS:
                for wrong in WRONG:
                    answer = answers(who, method, path, json={**right, field: wrong})
                    if answer.status_code >= 300:
                        check(answer, (method, path, field, wrong))
    assert not [record for record in caplog.records if record.exc_info], caplog.text
    assert owner.get("/state")["protocol"] == 1


@pytest.mark.parametrize(
    "value",
    ["9" * 400, "-1", "1e9", "\N{SUPERSCRIPT TWO}", "nonsense", "%00", "%ED%A0%80", "%FF", "x" * 3000, "true", "[]"],
)
def test_wrong_values_in_every_query(hub: LiveHub, routes: list[tuple[str, str]], value: str) -> None:
    owner = hub.owner()
    hub.channel(owner)
    for method, path in routes:
        if method != "GET":
            continue
        for name in sorted(QUERIES - {"after", "before", "limit", "name"} if path == "/updates" else QUERIES):
            wait = "" if name == "wait" else "&wait=1"
            answer = answers(owner, method, f"{path}?{name}={value}{wait}")
            if answer.status_code >= 300:
                check(answer, (path, name, value))
            else:
                assert "%" not in value, (path, name)
    assert owner.get("/state")["protocol"] == 1


def test_ids_that_nobody_has_are_not_found_and_say_nothing(hub: LiveHub, routes: list[tuple[str, str]]) -> None:
    owner = hub.owner()
    hub.channel(owner)
    for method, path in routes:
        if "unknown-id" not in path or method == "DELETE":  # leaving what one is not in is done already
            continue
        for other in ("unknown-id", "..", "%00", "%ED%A0%80", "x" * 2000, "'; DROP TABLE message; --"):
            answer = answers(owner, method, path.replace("unknown-id", other), json={"cursor": "1", "mode": "paused"})
            check(answer, (method, path, other), among={400, 403, 404, 405, 422})
    assert owner.get("/state")["protocol"] == 1


def test_every_route_wants_a_credential_that_counts(hub: LiveHub, routes: list[tuple[str, str]]) -> None:
    owner = hub.owner()
    for method, path in routes:
        if path == "/enroll":
            continue
        for header in (None, "Bearer", "Bearer wrong", f"Basic {owner.token}", "Bearer " + "x" * 5000):
            with httpx.Client(base_url=hub.url + "/api/v1", trust_env=False) as client:
                headers = {} if header is None else {"authorization": header}
                check(client.request(method, path, headers=headers), (method, path, header), among={401})
    in_url = httpx.get(f"{hub.url}/api/v1/state?token={owner.token}&access_token={owner.token}", trust_env=False)
    check(in_url, "a token in the URL", among={401})


def test_somebody_elses_things_are_not_there(hub: LiveHub) -> None:
    owner = hub.owner()
    lab, other = hub.channel(owner), hub.channel(owner, "other")
    bob, eve = hub.agent(owner, lab, "bob"), hub.agent(owner, other, "eve")
    asked = owner.post(
        "/messages", {"channel": lab, "kind": "request", "to": bob.id, "content": "x", "operationId": "a"}
    )
    subscription = bob.post("/subscriptions", {"type": "message.created"})["id"]
    for method, path, body in (
        ("GET", f"/messages/{asked['id']}", None),
        ("GET", f"/messages?channel={lab}", None),
        ("GET", f"/channels/{lab}/members", None),
        ("GET", f"/updates?wait=1&channel={lab}", None),
        ("POST", f"/messages/{asked['id']}/withdraw", {}),
        ("POST", "/messages", {"channel": lab, "content": "x", "operationId": "b"}),
        ("PATCH", f"/subscriptions/{subscription}", {"cursor": "1"}),
        ("POST", "/subscriptions", {"type": "message.created", "channel": lab}),
        ("PUT", f"/channels/{lab}/me/status", {"mode": "paused", "text": ""}),
        ("POST", f"/channels/{lab}/me/ping", {}),
    ):
        check(answers(eve, method, path, json=body), (method, path), among={403, 404})
    check(answers(eve, "POST", "/invites", json={"channel": other}), "an agent invites", among={403})


def test_unknown_addresses_and_methods(hub: LiveHub) -> None:
    owner = hub.owner()
    check(answers(owner, "GET", "/nothing"), "unknown", among={404})
    check(answers(owner, "GET", "/ws"), "no upgrade", among={404})
    check(httpx.get(hub.url + "/nowhere", trust_env=False), "no page", among={404})
    check(httpx.get(hub.url + "/", trust_env=False), "a page for nobody", among={401})
    wrong = answers(owner, "PUT", "/messages", json={})
    check(wrong, "method", among={405})
    assert wrong.headers["allow"] == wrong.json()["allow"] == "GET, HEAD, POST, OPTIONS"
    options = answers(owner, "OPTIONS", "/messages")
    assert (options.status_code, options.headers["allow"]) == (204, "GET, HEAD, POST, OPTIONS")
    assert answers(owner, "HEAD", "/state").status_code == 200


def test_an_attachment_over_its_limit_is_refused_while_it_arrives(hub: LiveHub) -> None:
    owner = hub.owner()
    lab = hub.channel(owner)
    piece = b"x" * (1024 * 1024)

    def pieces() -> Iterator[bytes]:
        for _ in range(26):
            yield piece

    check(owner.http.post(f"/attachments?channel={lab}", content=pieces()), "streamed", among={413})
    announced = owner.http.post(f"/attachments?channel={lab}", content=piece * 26)
    check(announced, "announced", among={413})
    assert good(owner.http.post(f"/attachments?channel={lab}&name=n", content=piece))["size"] == len(piece)


def test_hosts_and_origins_must_be_known(hub: LiveHub) -> None:
    owner = hub.owner()
    host = hub.url.removeprefix("http://")
    port = host.rpartition(":")[2]
    for good_host in (host, f"localhost:{port}", "LOCALHOST", f"[::1]:{port}", "127.0.0.1"):
        assert answers(owner, "GET", "/state", headers={"host": good_host}).status_code == 200, good_host
    for bad_host in ("evil.example", f"127.0.0.1.evil.example:{port}", "", "127.0.0.1:x", "[", "localhost@evil"):
        check(answers(owner, "GET", "/state", headers={"host": bad_host}), bad_host, among={400, 403})
    assert answers(owner, "GET", "/state", headers={"origin": hub.url}).status_code == 200
    for origin in ("http://evil.example", "null", "http://localhost:1", "http://[", "file://", f"ftp://{host}"):
        check(answers(owner, "GET", "/state", headers={"origin": origin}), origin, among={403})
