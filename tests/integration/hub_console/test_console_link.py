"""`relay console`: the link that signs a person in, as it is made on a command line and used in a browser."""

import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
from support_cli import machine
from support_time import WITHIN

from relay_receiver.cli.console import own_address


def test_relay_console_gives_a_link_that_signs_in_once(tmp_path: Path) -> None:
    with machine(tmp_path / "home") as here:
        hub = here.ok("hub", "start", "--port", "0")["url"]
        made = here.ok("console")
        assert made["otherwise"].startswith(f"{hub}/sign-in?code=")
        own = urlsplit(made["url"])
        assert re.fullmatch(r"relay-[0-9a-f]{20}\.localhost", own.hostname or "")
        assert own.netloc == urlsplit(here.ok("console")["url"]).netloc, "what a browser keeps for it is found again"
        hub_by_own_name = f"http://{own.netloc}"
        code = parse_qs(own.query)["code"][0]
        # Browsers know where such a name leads; whatever resolves names here may not.
        headers = {"accept": "text/html", "host": own.netloc}
        with httpx.Client(base_url=hub, trust_env=False, timeout=WITHIN, headers=headers) as browser:
            shown = browser.get(f"/sign-in?{own.query}")
            assert shown.status_code == 200
            assert code in shown.text
            assert browser.get("/").status_code == 401, "looking at the link does not use it"
            answer = browser.post("/sign-in", data={"code": code}, headers={"origin": hub})
            assert answer.status_code == 403, "a page under another name of this machine is another page"
            answer = browser.post("/sign-in", data={"code": code}, headers={"origin": hub_by_own_name})
            assert answer.status_code == 303
            assert browser.get("/").status_code == 200
        text = here.text("console")
        assert "within 10 minutes" in text
        assert f"{hub}/sign-in?code=" in text
        assert f"{hub_by_own_name}/sign-in?code=" in text
        bob = here.ok("channels", "create", "lab")["invite"]["code"]
        here.ok("connect", f"{hub}#{bob}", "--name", "bob")
        refused = here.relay("--profile", "bob", "console")
        assert (refused.code, refused.err["code"]) == (3, "person_needed")


def test_only_a_hub_on_this_machine_gets_a_name_of_the_persons_own() -> None:
    for url in ("https://127.0.0.1:7423", "http://10.0.0.5:7423", "https://hub.example"):
        assert own_address(url, "t") == url
    names = {own_address(url, token) for url in ("http://127.0.0.1:7423", "http://localhost:7423") for token in "ab"}
    assert len(names) == 2
    assert own_address("http://[::1]", "a") == own_address("http://127.0.0.1", "a")
