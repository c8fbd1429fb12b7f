"""`relay console`: the link that signs a person in, as it is made on a command line and used in a browser."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
from support_cli import machine
from support_time import WITHIN


def test_relay_console_gives_a_link_that_signs_in_once(tmp_path: Path) -> None:
    with machine(tmp_path / "home") as here:
        hub = here.ok("hub", "start", "--port", "0")["url"]
        made = here.ok("console")
        assert made["url"].startswith(f"{hub}/sign-in?code=")
        code = parse_qs(urlsplit(made["url"]).query)["code"][0]
        with httpx.Client(base_url=hub, trust_env=False, timeout=WITHIN, headers={"accept": "text/html"}) as browser:
            shown = browser.get(made["url"])
            assert shown.status_code == 200
            assert code in shown.text
            assert browser.get("/").status_code == 401, "looking at the link does not use it"
            answer = browser.post("/sign-in", data={"code": code}, headers={"origin": hub})
            assert answer.status_code == 303
            assert browser.get("/").status_code == 200
        text = here.text("console")
        assert "within 10 minutes" in text
        assert f"{hub}/sign-in?code=" in text
        bob = here.ok("channels", "create", "lab")["invite"]["code"]
        here.ok("connect", f"{hub}#{bob}", "--name", "bob")
        refused = here.relay("--profile", "bob", "console")
        assert (refused.code, refused.err["code"]) == (3, "person_needed")
