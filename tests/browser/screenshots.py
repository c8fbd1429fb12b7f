"""`make screenshots`: take a picture of every page of the console, at phone and desk width, in light and dark."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))

from support_browser import DESK, PHONE, chromium
from support_console import link
from support_hub import LiveHub
from support_scene import Scene, scene

TARGET = Path(__file__).parents[2] / "docs" / "console"


def main() -> int:
    TARGET.mkdir(exist_ok=True)
    for old in TARGET.glob("*.png"):
        old.unlink()
    with TemporaryDirectory() as folder:
        hub = LiveHub(Path(folder) / "hub").start()
        try:
            _take(hub, scene(hub))
        finally:
            hub.stop()
    return 0


def _take(hub: LiveHub, seen: Scene) -> None:
    with chromium() as browser:
        for scheme in ("light", "dark"):
            for size, viewport in (("phone", PHONE), ("desk", DESK)):
                context = browser.new_context(base_url=hub.url, viewport=viewport, color_scheme=scheme)
                page = context.new_page()
                page.goto("/sign-in")
                page.screenshot(path=TARGET / f"sign-in-{size}-{scheme}.png")
                page.goto(f"/sign-in?code={link(hub, seen.owner)}")
                page.get_by_role("button", name="Sign in").click()
                page.wait_for_url("**/")
                for name, path in seen.pages.items():
                    page.goto(path)
                    page.screenshot(path=TARGET / f"{name}-{size}-{scheme}.png", full_page=size == "phone")
                context.close()


if __name__ == "__main__":
    sys.exit(main())
