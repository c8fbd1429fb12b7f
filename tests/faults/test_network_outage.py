"""The network is gone for three times as long as a lease lasts. Here a lease lasts a second instead of thirty."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support_proxy import Proxy
from support_world import World, until, world

from relay_receiver.receiver import verbs
from relay_receiver.receiver.target import Target

SHORT_LEASE = """
import sys
from relay_receiver.wire import limits
limits.LEASE_SECONDS = 1
if "relay_receiver.receiver.main" in sys.orig_argv:
    from relay_receiver.receiver import lease
    lease.RENEW_SECONDS = 0.3
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[World, Proxy, Target]]:
    """A hub, a proxy before it, and bob, whose receiver knows only the proxy."""
    (tmp_path / "short").mkdir()
    (tmp_path / "short" / "sitecustomize.py").write_text(SHORT_LEASE)
    there = [str(tmp_path / "short"), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(there))
    with world(tmp_path) as w, Proxy(w.port.number) as proxy:
        direct, w.url = w.url, proxy.url
        bob = w.agent("bob")
        w.url = direct
        yield w, proxy, bob


def test_an_outage_that_outlasts_the_lease_costs_neither_the_job_in_hand_nor_what_waits(
    place: tuple[World, Proxy, Target],
) -> None:
    w, proxy, bob = place
    verbs.start(bob)
    running, waiting = w.ask(bob, "hold=a task=one"), w.ask(bob, "task=two")
    w.until_stage(running["id"], "running")
    w.until_stage(waiting["id"], "received")
    with proxy.outage():
        until(lambda: verbs.status(bob)["lease"]["state"] == "lapsed", what="the end of the lease here")
        until(lambda: reason(w, waiting["id"]) == "offline", what="the end of the lease at the hub")
        late = w.ask(bob, "task=three")
        w.release("a")
        until(lambda: verbs.status(bob)["job"]["state"] == "output", what="the answer kept")
        assert len(w.starts()) == 1
    for asked in (running, waiting, late):
        w.until_stage(asked["id"], "answered")
        assert len(w.results(asked["id"])) == 1
    assert len(w.starts()) == 3
    assert verbs.status(bob)["needsPerson"] == []


def reason(w: World, message: str) -> str | None:
    found: str | None = w.do("owner", lambda hub: hub.message(message))["delivery"]["reason"]
    return found
