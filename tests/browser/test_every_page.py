"""Every page of the console in a real Chromium: nobody is kept out, at any width, in light and dark."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page
from support_browser import DESK, PHONE, chromium, findings
from support_console import link
from support_hub import LiveHub
from support_scene import Scene, scene

NARROW = {"width": 320, "height": 640}


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    made = LiveHub(tmp_path_factory.mktemp("hub") / "data").start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def seen(hub: LiveHub) -> Scene:
    return scene(hub)


def signed_in(context: BrowserContext, hub: LiveHub, who: Scene) -> Page:
    page = context.new_page()
    page.goto(f"/sign-in?code={link(hub, who.owner)}")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/")
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_nothing_keeps_anybody_out(hub: LiveHub, seen: Scene, size: dict[str, int], scheme: str) -> None:
    with chromium() as browser:
        context = browser.new_context(base_url=hub.url, viewport=size, color_scheme=scheme)  # type: ignore[arg-type]  # its own literal types
        wrong: list[str] = []
        page = context.new_page()
        page.goto("/sign-in")
        wrong += [f"/sign-in: {each}" for each in findings(page)]
        page = signed_in(context, hub, seen)
        page.on("pageerror", lambda error: wrong.append(f"{page.url}: {error}"))
        page.on("console", lambda line: wrong.append(f"{page.url}: {line.text}") if line.type == "error" else None)
        for name, path in seen.pages.items():
            page.goto(path)
            wrong += [f"{name}: {each}" for each in findings(page)]
        assert wrong == []


def test_nothing_is_wider_than_the_narrowest_phone(hub: LiveHub, seen: Scene) -> None:
    with chromium() as browser:
        page = signed_in(browser.new_context(base_url=hub.url, viewport=NARROW), hub, seen)  # type: ignore[arg-type]  # as above
        wide = {}
        for name, path in seen.pages.items():
            page.goto(path)
            width = page.evaluate("document.documentElement.scrollWidth")
            if width > NARROW["width"]:
                wide[name] = width
        assert wide == {}


def test_without_javascript_everything_is_read_and_decided(hub: LiveHub, seen: Scene) -> None:
    with chromium() as browser:
        context = browser.new_context(base_url=hub.url, viewport=PHONE, java_script_enabled=False)  # type: ignore[arg-type]  # as above
        page = signed_in(context, hub, seen)
        for name, path in seen.pages.items():
            answer = page.goto(path)
            assert answer is not None
            assert answer.status == 200, name
            assert page.get_by_role("heading", level=1).is_visible(), name
        page.goto(seen.pages["request-choice"])
        page.get_by_label("PostgreSQL").check()
        page.get_by_role("button", name="Answer").click()
        assert page.get_by_text("Answered.").is_visible()
        page.goto("/needs")
        page.get_by_role("button", name="Let them go on").click()
        page.get_by_text("Decided; its receiver is told.").wait_for()
        page.goto(seen.pages["channel"])
        page.get_by_label("Text", exact=True).fill("Written without a script.")
        page.get_by_role("button", name="Send").click()
        page.get_by_text("Written without a script.").wait_for()


def test_the_keyboard_reaches_the_content_and_a_decision(hub: LiveHub, seen: Scene) -> None:
    with chromium() as browser:
        page = signed_in(browser.new_context(base_url=hub.url, viewport=DESK), hub, seen)  # type: ignore[arg-type]  # as above
        page.goto(seen.pages["request-question"])
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        page.keyboard.press("Enter")
        while page.evaluate("document.activeElement.tagName") != "TEXTAREA":
            page.keyboard.press("Tab")
        page.keyboard.type("Autumn")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.get_by_text("Answered.").wait_for()
        assert seen.ann.get(seen.pages["request-question"])["answer"] == {"text": "Autumn"}
