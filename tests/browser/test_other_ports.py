"""Whoever listens on another port of this machine is not handed the person's sign-in."""

import http.server
import threading
from pathlib import Path

from support_browser import browser_world

from relay_receiver.cli.console import own_address


def test_a_page_that_an_agent_serves_on_this_machine_gets_no_cookie_of_the_console(tmp_path: Path) -> None:
    seen: list[str | None] = []

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("cookie"))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with browser_world(tmp_path) as world, http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as agents:
        threading.Thread(target=agents.serve_forever).start()
        try:
            own = own_address(world.url, "token")
            link = world.do("owner", lambda hub: hub.rest.call("POST", "/console-links", json={}))
            page = world.context().new_page()
            page.goto(own + link["path"])
            page.get_by_role("button", name="Sign in").click()
            page.wait_for_url(f"{own}/")
            for host in ("127.0.0.1", "localhost", "relay.localhost"):
                page.goto(f"http://{host}:{agents.server_port}/page")
            page.goto(own)
            assert page.get_by_role("button", name="Sign out").count() == 1
        finally:
            agents.shutdown()
    assert seen
    assert set(seen) == {None}
