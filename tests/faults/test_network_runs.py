"""One call of the receiver goes wrong on the way to a real hub: answered once, started once, and never stuck."""

from collections.abc import Iterator
from typing import Any

import pytest
from support_proxy import Answer, Call, Fault, Lost, Proxy
from support_world import World, until, world

from relay_receiver.receiver import verbs
from relay_receiver.receiver.target import Target


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, Proxy, Target]]:
    """A hub, a proxy before it, and bob, whose receiver knows only the proxy."""
    with world(tmp_path_factory.mktemp("network")) as w, Proxy(w.port) as proxy:
        direct, w.url = w.url, proxy.url
        bob = w.agent("bob")
        w.url = direct
        yield w, proxy, bob
        proxy.arm(lambda _: None)


@pytest.fixture(autouse=True)
def at_home(place: tuple[World, Proxy, Target], monkeypatch: pytest.MonkeyPatch) -> None:
    """One world for all cases of this file."""
    monkeypatch.setenv("RELAY_HOME", str(place[0].home))


def starts(w: World, bob: Target, asked: dict[str, Any]) -> int:
    """How often the program was started for a message."""
    (job,) = (each["id"] for each in verbs.jobs(bob)["jobs"] if each["message"] == asked["id"])
    return sum(started.startswith(job) for started in w.starts())


def test_a_begin_whose_answer_was_lost_with_its_process_is_given_back_and_begun_anew(
    place: tuple[World, Proxy, Target],
) -> None:
    w, proxy, bob = place
    tries: list[Call] = []

    def lose_then_wait(call: Call) -> Fault | None:
        if call.name != "POST /receiver/run begin":
            return None
        tries.append(call)
        return Lost() if len(tries) == 1 else Answer(503, (("Retry-After", "3600"),))

    verbs.start(bob)
    proxy.arm(lose_then_wait)
    asked = w.ask(bob, "task=begun")
    until(lambda: len(tries) == 2, what="a begin again")
    w.kill(bob)
    proxy.arm(lambda _: None)
    verbs.start(bob)
    w.until_stage(asked["id"], "answered")
    assert starts(w, bob, asked) == 1
