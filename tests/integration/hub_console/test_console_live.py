"""What an open page shows is kept true by its script: all that can change stands in an element that is taken anew."""

import secrets
import time
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest
from support_console import Browser
from support_hub import LiveHub, good
from support_scene import REPORT, Scene, scene

from relay_receiver.wire.message import iso

SNAPSHOTS = ("search", "document-change", "document-new")
"""Pages that show what was found, or what somebody types over, as it was when they were opened."""
VOID = frozenset({"area", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"})


class _Fixed(HTMLParser):
    """The text of a page that no script takes anew."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self._within = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID and (self._within or _kept_true(tag, dict(attrs))):
            self._within += 1

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID and self._within:
            self._within -= 1

    def handle_data(self, data: str) -> None:
        if not self._within and data.strip():
            self.said.append(" ".join(data.split()))


def _kept_true(tag: str, of: dict[str, str | None]) -> bool:
    """By live.js, by its count of what waits, by channel.js; what a form offers to choose from stays as it was."""
    return "data-live" in of or "data-needs" in of or of.get("id") == "messages" or tag in {"select", "title"}


def fixed(page: str) -> list[str]:
    reader = _Fixed()
    reader.feed(page)
    return reader.said


@pytest.fixture
def seen(hub: LiveHub) -> Scene:
    return scene(hub)


@pytest.fixture
def browser(hub: LiveHub, seen: Scene) -> Iterator[Browser]:
    with Browser(hub) as made:
        yield made.sign_in(seen.owner)


def change_everything(hub: LiveHub, seen: Scene) -> None:
    """One of each event that the hub has."""
    owner, bob, ann, lab = seen.owner, seen.bob, seen.ann, seen.lab

    def named(path: str) -> str:
        return seen.pages[path].rpartition("/")[2]

    hub.agent(owner, hub.channel(owner, "newer"), "fred")
    hub.agent(owner, lab, "gina")
    for to in (bob.id, None):
        body = {"channel": lab, "kind": "request" if to else "message", "content": "More.", "operationId": f"more-{to}"}
        owner.post("/messages", {**body, "to": to} if to else {**body, "replyTo": named("message")})
    good(bob.http.put(f"/channels/{lab}/me/status", json={"mode": "paused", "text": "away"}))
    ask = {"channel": lab, "kind": "input", "title": "And more?", "expiresAt": iso(time.time() + 600)}
    bob.post("/requests", {**ask, "operationId": "more"})
    owner.post(f"/requests/{named('request-question')}/respond", {"answer": {"text": "Autumn"}})
    lease = {"channel": lab, "sessionId": None, "runtime": "relay", "detail": None}
    report = {**REPORT, "queue": {"queued": 7, "received": 1}}
    bob.post("/receiver", {**lease, "holderId": f"h-{bob.id}", "state": "ready", "report": report})
    resume = {"channel": lab, "agent": ann.id, "action": "resume", "arguments": {}, "operationId": secrets.token_hex(8)}
    decided = owner.post("/controls", resume)
    ann.post(f"/controls/{decided['id']}/outcome", {"outcome": "done", "sentence": "Agents' jobs go on."})
    owner.patch(seen.pages["document"], {"rev": 2, "title": "Other handbook", "content": "Anew."})
    owner.patch(seen.pages["task"], {"rev": 1, "title": "Another title", "description": "Anew.", "state": "done"})


def test_nothing_that_changes_stands_where_no_script_takes_it_anew(hub: LiveHub, seen: Scene, browser: Browser) -> None:
    before = {name: browser.get(path).text for name, path in seen.pages.items()}
    change_everything(hub, seen)
    stale = {}
    for name, path in seen.pages.items():
        after = browser.get(path).text
        if name in SNAPSHOTS:
            continue
        assert after != before[name], f"{name}: nothing changed, so nothing was tried"
        if fixed(after) != fixed(before[name]):
            stale[name] = set(fixed(after)) ^ set(fixed(before[name]))
    assert stale == {}


def test_a_decision_is_listed_and_its_outcome_too(seen: Scene, browser: Browser, hub: LiveHub) -> None:
    empty = browser.get("/receivers").text
    assert '<section id="decisions" aria-labelledby="decisions-title" data-live="receiver" hidden>' in empty
    change_everything(hub, seen)
    page = browser.get("/receivers").text
    assert '<section id="decisions" aria-labelledby="decisions-title" data-live="receiver">' in page
    assert "Agents&#39; jobs go on." in page
