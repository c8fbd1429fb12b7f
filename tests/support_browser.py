"""A real Chromium for tests of the console, and a person in it who signs in as people do."""

import contextlib
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from support_time import WITHIN
from support_world import World

T = TypeVar("T")

PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}
AXE = Path(__file__).parent / "browser" / "node_modules" / "axe-core" / "axe.min.js"
BAD = ("serious", "critical")
"""What axe calls its findings that fail a page."""


def aside(call: Callable[[], T]) -> T:
    """Run `call` in a thread of its own: Playwright has the event loop of this one."""
    found: list[T] = []
    wrong: list[BaseException] = []

    def run() -> None:
        try:
            found.append(call())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            wrong.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if wrong:
        raise wrong[0]
    return found[0]


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, without a window."""
    path = shutil.which("chromium")
    if path is None:
        raise RuntimeError("these tests drive the real Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--disable-gpu", "--disable-quic"])
        try:
            yield browser
        finally:
            browser.close()


class BrowserWorld(World):
    """A world whose console is open in a browser."""

    browser: Browser

    def do(self, name: str, call: Callable[[Any], Any]) -> Any:
        return aside(lambda: super(BrowserWorld, self).do(name, call))

    def context(self, **more: Any) -> BrowserContext:
        """A browser of its own: cookies, size, scheme."""
        made = self.browser.new_context(base_url=self.url, **{"viewport": DESK, **more})
        made.set_default_timeout(WITHIN * 1000)
        return made

    def sign_in(self, *, by: str = "owner", **more: Any) -> Page:
        """A page of a new browser that is signed in by a one-time link."""
        link = self.do(by, lambda hub: hub.rest.call("POST", "/console-links", json={}))
        page = self.context(**more).new_page()
        page.goto(link["url"])
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/")
        return page


@contextlib.contextmanager
def browser_world(folder: Path) -> Iterator[BrowserWorld]:
    """A hub, its owner, a channel, and a browser; everything ends with the block."""
    from relay_receiver.testing.trial_place import place

    with place(folder, BrowserWorld) as made, chromium() as browser:
        made.browser = browser
        yield made


def findings(page: Page) -> list[str]:
    """What axe finds on a page that keeps somebody out, one line each."""
    if not AXE.exists():
        raise RuntimeError("these tests look at pages with axe: npm --prefix tests/browser ci")
    page.evaluate(AXE.read_text())
    found = page.evaluate("() => axe.run()")
    return [
        f"{each['impact']}: {each['id']}: {node['html'][:200]}"
        for each in found["violations"]
        if each["impact"] in BAD
        for node in each["nodes"]
    ]
