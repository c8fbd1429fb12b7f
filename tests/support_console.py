"""A browser without a window: cookies and forms of the console of a real hub, as a person's browser sends them."""

import html
import re
import secrets
import time
from collections.abc import Mapping
from typing import Any, Self

import httpx
from support_hub import LiveHub, Member
from support_time import WITHIN

from relay_receiver.hub.console import login

HTML = "text/html,application/xhtml+xml"
_CSRF = re.compile(r'name="csrf" value="([^"]+)"')


class Browser:
    """One browser. `origin` and `accept` are what it sends unless a call says otherwise."""

    def __init__(self, hub: LiveHub) -> None:
        self.hub = hub
        self.csrf = ""
        self.http = httpx.Client(
            base_url=hub.url, headers={"accept": HTML}, trust_env=False, timeout=WITHIN, follow_redirects=False
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def sign_in(self, person: Member) -> "Browser":
        """With the person's token, as the form does it."""
        answer = self.post("/sign-in", {"token": person.token})
        assert answer.status_code == 303, answer.text
        page = self.get(answer.headers["location"])
        found = _CSRF.search(page.text)
        assert found is not None
        self.csrf = found[1]
        return self

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.http.get(path, headers=headers)

    def post(self, path: str, data: Mapping[str, Any] | None = None, **more: Any) -> httpx.Response:
        """A form of a page of this hub; with `csrf` once signed in."""
        headers = {"origin": self.hub.url, **more.pop("headers", {})}
        said = {"csrf": self.csrf, **(data or {})} if self.csrf else dict(data or {})
        return self.http.post(path, data=said, headers=headers, **more)

    def follow(self, path: str, data: Mapping[str, Any] | None = None, **more: Any) -> httpx.Response:
        """The page that a form leads to."""
        answer = self.post(path, data, **more)
        assert answer.status_code == 303, (answer.status_code, answer.text)
        page = self.get(answer.headers["location"].partition("#")[0])
        assert page.status_code == 200, page.text
        return page


def link(hub: LiveHub, person: Member, *, at: float | None = None) -> str:
    """The code of a one-time link."""
    made = hub.write(login.make_link, hub.actor(person), at=time.time() if at is None else at)
    return str(made.code)


def operation() -> str:
    """A fresh operation id, as each form has one."""
    return secrets.token_hex(8)


def shown(page: str) -> str:
    """What a page says, without its markup."""
    return html.unescape(re.sub(r"<[^>]+>", "", page))
