"""What people do in the console, in a real Chromium, with a real hub, real receivers and the real Codex behind it."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from support_browser import PHONE, BrowserWorld, aside, browser_world
from support_codex import codex_home, codex_wishes
from support_time import WITHIN
from support_world import until

from relay_receiver.client import profiles
from relay_receiver.processes.tree import children
from relay_receiver.receiver import verbs
from relay_receiver.receiver.target import Target


@pytest.fixture(autouse=True)
def _patience() -> None:
    expect.set_options(timeout=WITHIN * 1000)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[BrowserWorld]:
    with browser_world(tmp_path) as made:
        yield made


def open_channel(page: Page, place: BrowserWorld) -> None:
    page.goto(f"/channels/{place.channel}")


def send(page: Page, text: str, *, to: str, mention: str | None = None) -> None:
    """Give a member work, by what the page offers."""
    page.get_by_role("radio", name="Request").check()
    page.get_by_label("To", exact=True).select_option(label=to)
    if mention is not None:
        page.get_by_text("Mention, attach").click()
        page.get_by_label(mention, exact=True).check()
    page.get_by_label("Text", exact=True).fill(text)
    page.get_by_role("button", name="Send").click()


def test_a_request_with_a_mention_is_sent_and_its_receipt_moves_by_itself(place: BrowserWorld) -> None:
    bob = aside(lambda: place.agent("bob"))
    aside(lambda: place.agent("ann"))
    verbs.start(bob)
    page = place.sign_in()
    open_channel(page, place)
    page.evaluate("window.stays = true")
    send(page, "please hold=gate and tell @ann", to="bob", mention="ann")
    receipt = page.get_by_role("group", name="Receipt")
    expect(receipt).to_contain_text("Running")
    place.release("gate")
    expect(receipt).to_contain_text("Answered")
    expect(page.get_by_role("region", name="Messages")).to_contain_text("did it")
    sent = place.do("owner", lambda hub: hub.history(place.channel, limit=10))["messages"][0]
    assert sent["to"] == profiles.load("bob").agent
    assert profiles.load("ann").agent in sent["mentions"]
    assert page.evaluate("window.stays"), "the page was loaded anew"


@contextmanager
def codex(place: BrowserWorld, folder: Path) -> Iterator[Target]:
    """An agent that is a Codex, at work."""
    with codex_home(folder):
        ada = aside(lambda: place.agent("ada", **codex_wishes()))
        verbs.start(ada)
        yield ada


def test_a_codex_command_is_approved_on_a_phone_and_another_declined(place: BrowserWorld, tmp_path: Path) -> None:
    made, never = tmp_path / "made", tmp_path / "never"
    with codex(place, tmp_path) as ada:
        page = place.sign_in(viewport=PHONE, has_touch=True, is_mobile=True)
        first = place.ask(ada, f"model: escalate touch {made}")
        page.goto("/needs")
        asked = page.get_by_role("article").filter(has_text=f"touch {made}")
        asked.get_by_role("button", name="Accept").tap()
        expect(page.get_by_text("Answered.")).to_be_visible()
        place.until_stage(first["id"], "answered", seconds=WITHIN)
        assert made.exists()
        second = place.ask(ada, f"model: escalate touch {never}")
        page.goto("/needs")
        asked = page.get_by_role("article").filter(has_text=f"touch {never}")
        expect(asked).to_contain_text("nobody has checked")
        asked.get_by_role("button", name="Decline").tap()
        expect(page.get_by_text("Answered.")).to_be_visible()
        place.until_stage(second["id"], "answered", seconds=WITHIN)
        assert not never.exists()


def test_of_two_browsers_the_first_decides_and_the_other_is_told(place: BrowserWorld, tmp_path: Path) -> None:
    made = tmp_path / "made"
    with codex(place, tmp_path) as ada:
        mine, watching = place.sign_in(), place.sign_in()
        # Without a script a page stays as it was loaded: its button can be pressed too late.
        late = place.sign_in(java_script_enabled=False)
        asked = place.ask(ada, f"model: escalate touch {made}")
        until(lambda: place.do("owner", lambda hub: hub.requests(place.channel)), what="the approval")
        for page in (mine, watching, late):
            page.goto("/needs")
            page.get_by_role("link", name="Run outside").click()
            expect(page.get_by_role("button", name="Accept")).to_be_visible()
        mine.get_by_role("button", name="Decline").click()
        expect(mine.get_by_text("Answered.")).to_be_visible()
        expect(watching.get_by_role("main")).to_contain_text("answered: declined")
        expect(watching.get_by_role("main")).not_to_contain_text("waits for an answer")
        late.get_by_role("button", name="Accept").click()
        expect(late.get_by_role("alert")).to_contain_text("has answered this request already")
        place.until_stage(asked["id"], "answered", seconds=WITHIN)
        assert not made.exists()


def test_an_unknown_job_is_settled_with_its_evidence_in_view(place: BrowserWorld) -> None:
    bob = aside(lambda: place.agent("bob"))
    verbs.start(bob)
    asked = place.ask(bob, "please hold=gate")
    place.until_stage(asked["id"], "running")
    kill_keeper(bob)
    place.until_stage(asked["id"], "unknown", seconds=WITHIN)
    page = place.sign_in()
    page.goto("/needs")
    expect(page.get_by_text("Nobody can know what became of")).to_be_visible()
    expect(page.get_by_label("The evidence")).to_contain_text("history")
    page.get_by_text("It is over: tell the requester").click()
    page.get_by_label("Why").fill("the machine was pulled")
    page.get_by_role("button", name="Give it up").click()
    expect(page.get_by_text("Decided; its receiver is told.")).to_be_visible()
    place.until_stage(asked["id"], "failed", seconds=WITHIN)
    page.goto("/receivers")
    expect(page.get_by_role("row").filter(has_text="settle (abandon)")).to_contain_text("done")
    [result] = place.results(asked["id"])
    assert "the machine was pulled" in result["content"]
    place.release("gate")


def kill_keeper(target: Target) -> None:
    """SIGKILL the keeper of the job in hand, and its program with it."""
    (launcher,) = children(int(verbs.status(target)["pid"]))
    keepers = until(lambda: children(launcher), what="a keeper")
    for each in keepers:
        below = children(each)
        os.kill(each, signal.SIGKILL)
        for program in below:
            os.kill(program, signal.SIGKILL)


def test_a_paused_chain_is_let_go_on(place: BrowserWorld) -> None:
    bob = aside(lambda: place.agent("bob", chain_limit=1))
    aside(lambda: place.agent("ann"))
    verbs.start(bob)
    place.ask(bob, "please task=first", by="ann")
    asked = place.ask(bob, "please task=second", by="ann")
    until(lambda: verbs.status(bob)["chain"]["paused"], what="the pause")
    page = place.sign_in()
    page.goto("/needs")
    page.get_by_role("button", name="Let them go on").click()
    expect(page.get_by_text("Decided; its receiver is told.")).to_be_visible()
    place.until_stage(asked["id"], "answered", seconds=WITHIN)


def test_the_job_in_hand_is_stopped(place: BrowserWorld) -> None:
    bob = aside(lambda: place.agent("bob"))
    verbs.start(bob)
    asked = place.ask(bob, "please hold=gate")
    place.until_stage(asked["id"], "running")
    page = place.sign_in()
    page.goto("/receivers")
    page.get_by_role("button", name="Stop this job").click()
    place.until_stage(asked["id"], "cancelled", seconds=WITHIN)


def test_what_needs_somebody_appears_and_goes_by_itself_and_takes_no_typed_word_along(place: BrowserWorld) -> None:
    aside(lambda: place.agent("bob"))
    page = place.sign_in()
    page.goto("/needs")
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()

    def ask(title: str) -> None:
        body = {"channel": place.channel, "kind": "input", "title": title, "operationId": title}
        place.do("bob", lambda hub: hub.create_request(body))

    ask("First?")
    first = page.get_by_role("article").filter(has_text="First?")
    first.get_by_label("Your answer").fill("half an ans")
    ask("Second?")
    expect(page.get_by_role("article").filter(has_text="Second?")).to_be_visible()
    expect(first.get_by_label("Your answer")).to_have_value("half an ans")
    expect(page.get_by_role("navigation").get_by_role("link", name="Needs you")).to_contain_text("2")


UNDER_THE_FINGER = """button => {
    const { left, top, width, height } = button.getBoundingClientRect();
    const there = () => document.elementFromPoint(left + width / 2, top + height / 2)?.closest("button") !== null;
    return new Promise(done => {
        const seen = new MutationObserver(() => { seen.disconnect(); done(there()); });
        seen.observe(document.getElementById("needs"), { childList: true });
        window.before = there();
    });
}"""
"""Whether a press where the button stands would still meet a button, the moment the list has changed."""


def test_no_press_counts_that_was_meant_for_what_stood_there_before(place: BrowserWorld) -> None:
    aside(lambda: place.agent("bob"))

    def ask(title: str) -> str:
        action = {"kind": "command", "command": title, "cwd": "/"}
        body = {"channel": place.channel, "kind": "approval", "title": title, "action": action, "operationId": title}
        return str(place.do("bob", lambda hub: hub.create_request(body))["id"])

    first, second = ask("First"), ask("Second")
    page = place.sign_in()
    page.goto("/needs")
    articles = page.get_by_role("article")
    expect(articles.nth(0)).to_contain_text("First")
    button = articles.nth(0).get_by_role("button", name="Accept").element_handle()
    met = page.evaluate_handle(f"button => ({{ after: ({UNDER_THE_FINGER})(button) }})", button)
    assert page.evaluate("window.before")
    place.do("bob", lambda hub: hub.close_request(first, "superseded"))
    assert met.evaluate("async met => await met.after") is False, "what came up there could be pressed at once"
    ask("Third")
    articles.filter(has_text="Second").get_by_role("button", name="Accept").click()
    expect(page.get_by_text("Answered.")).to_be_visible()
    assert place.do("owner", lambda hub: hub.request(second))["state"] == "answered"
    expect(articles).to_have_count(1)
    expect(articles.filter(has_text="Third")).to_be_visible()
