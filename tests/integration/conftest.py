"""Who is there in most tests of a real hub. A file that needs another hub has its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support_console import Browser
from support_hub import LiveHub, Member


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LiveHub]:
    live = LiveHub(tmp_path / "hub").start()
    yield live
    live.stop()


@pytest.fixture
def owner(hub: LiveHub) -> Member:
    return hub.owner()


@pytest.fixture
def lab(hub: LiveHub, owner: Member) -> str:
    """A channel."""
    return hub.channel(owner)


@pytest.fixture
def bob(hub: LiveHub, owner: Member, lab: str) -> Member:
    """An agent in the channel."""
    return hub.agent(owner, lab, "bob")


@pytest.fixture
def browser(hub: LiveHub, owner: Member, lab: str) -> Iterator[Browser]:
    """The owner's, signed in."""
    assert lab
    with Browser(hub) as made:
        yield made.sign_in(owner)
