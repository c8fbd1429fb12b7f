"""The shell of the console: signing in and out, its headers, its errors as pages."""

from collections.abc import Iterator

import pytest
from support_console import Browser
from support_hub import LiveHub, Member


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    made = LiveHub(tmp_path_factory.mktemp("hub") / "data").start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def owner(hub: LiveHub) -> Member:
    return hub.owner()


def test_a_person_signs_in_sees_the_overview_and_signs_out(hub: LiveHub, owner: Member) -> None:
    channel = hub.channel(owner)
    with Browser(hub) as browser:
        assert browser.get("/").status_code == 401
        page = browser.sign_in(owner).get("/")
        assert page.status_code == 200
        assert f'href="/channels/{channel}"' in page.text
        assert browser.get(f"/channels/{channel}").status_code == 200
        out = browser.follow("/sign-out")
        assert "You are signed out." in out.text
        assert browser.get("/").status_code == 401
