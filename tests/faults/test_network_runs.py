"""One call of the receiver goes wrong on the way to a real hub: answered once, started once, and never stuck."""

import email.utils
from collections.abc import Iterator
from typing import Any

import pytest
from support_proxy import (
    Answer,
    Call,
    CutSocket,
    Fault,
    Lost,
    Proxy,
    Reset,
    Silent,
    Slow,
    Stale,
    first,
    one_by_one,
    together,
)
from support_world import World, until, world

from relay_receiver.receiver import verbs
from relay_receiver.receiver.target import Target


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, Proxy, Target]]:
    """A hub, a proxy before it, and bob, whose receiver knows only the proxy."""
    with world(tmp_path_factory.mktemp("network")) as w, Proxy(w.port.number) as proxy:
        direct, w.url = w.url, proxy.url
        bob = w.agent("bob")
        w.url = direct
        yield w, proxy, bob
        proxy.arm(lambda _: None)


@pytest.fixture(autouse=True)
def at_home(place: tuple[World, Proxy, Target], monkeypatch: pytest.MonkeyPatch) -> None:
    """One world for all cases of this file."""
    monkeypatch.setenv("RELAY_HOME", str(place[0].home))


def job(bob: Target, asked: dict[str, Any]) -> dict[str, Any]:
    """The job of a message."""
    (found,) = (each for each in verbs.jobs(bob)["jobs"] if each["message"] == asked["id"])
    return dict(found)


def starts(w: World, bob: Target, asked: dict[str, Any]) -> int:
    """How often the program was started for a message."""
    name = job(bob, asked)["id"]
    return sum(started.startswith(name) for started in w.starts())


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


ON_THE_WAY = [
    Answer(500),
    Answer(502, body=b"<html>bad gateway</html>"),
    Answer(503, (("Retry-After", "1"),)),
    Answer(504, body=b""),
    Answer(429, (("Retry-After", "1"),)),
    Answer(429, (("Retry-After", email.utils.formatdate(0)),)),
    Reset(),
    Lost(),
]


@pytest.mark.parametrize("name", ["POST /receiver/run begin", "POST /messages"])
def test_each_fault_at_a_call_of_a_job_leaves_one_start_and_one_answer(
    place: tuple[World, Proxy, Target], name: str
) -> None:
    w, proxy, bob = place
    verbs.start(bob)
    spread = [fault for each in ON_THE_WAY for fault in (each, None)]
    proxy.arm(together(one_by_one(name, spread), one_by_one("POST /receiver/run stage", ON_THE_WAY)))
    asked = [w.ask(bob, f"task={number}") for number in range(len(ON_THE_WAY))]
    answered_once(w, bob, asked)
    assert len([call for call in proxy.hit if call.name == name]) == len(ON_THE_WAY)


def test_each_fault_at_lease_feed_and_acknowledgement_leaves_one_start_and_one_answer(
    place: tuple[World, Proxy, Target],
) -> None:
    w, proxy, bob = place
    verbs.stop(bob)
    proxy.arm(
        together(
            one_by_one("POST /receiver", [Answer(500), Lost(), Reset()]),
            one_by_one("GET /ws", [Answer(502), Reset(), Answer(404)]),
            one_by_one("GET /updates", [Answer(500), None, Lost(), Reset(), None, Stale(), Slow()]),
            lambda call: Lost() if call.method == "PATCH" and len(proxy.hit) < 8 else None,
        )
    )
    asked = [w.ask(bob, "task=before")]
    verbs.start(bob)
    for number in range(2):
        answered_once(w, bob, asked)
        asked.append(w.ask(bob, f"task={number}"))
    answered_once(w, bob, asked)
    assert {"POST /receiver", "GET /ws", "GET /updates"} <= {call.name for call in proxy.hit}


def test_answers_that_come_in_pieces_are_read_whole(place: tuple[World, Proxy, Target]) -> None:
    w, proxy, bob = place
    verbs.stop(bob)
    proxy.arm(lambda call: Answer(404) if call.name == "GET /ws" else Slow())
    verbs.start(bob)
    answered_once(w, bob, [w.ask(bob, "task=one"), w.ask(bob, "task=two")])
    assert {"POST /receiver", "GET /updates", "POST /receiver/run begin", "POST /messages"} <= {
        call.name for call in proxy.hit
    }


@pytest.mark.parametrize("frame", ["event", "cursor"])
def test_a_socket_cut_in_the_middle_of_a_batch_loses_nothing(place: tuple[World, Proxy, Target], frame: str) -> None:
    w, proxy, bob = place
    verbs.stop(bob)
    seen = []

    def later(said: dict[str, Any]) -> bool:
        seen.append(said)
        return said["t"] == frame and any(each["t"] == "event" for each in seen)

    proxy.arm(first("GET /ws", CutSocket(later)))
    verbs.start(bob)
    until(lambda: verbs.status(bob)["transport"]["name"] == "websocket", what="the socket")
    answered_once(w, bob, [w.ask(bob, "task=one"), w.ask(bob, "task=two")])
    assert any(said["t"] == "event" for said in seen)


def test_a_call_that_nobody_answers_stands_in_the_way_of_neither_status_nor_stop(
    place: tuple[World, Proxy, Target],
) -> None:
    w, proxy, bob = place
    verbs.start(bob)
    proxy.arm(first("POST /receiver/run begin", Silent()))
    asked = w.ask(bob, "task=silence")
    until(lambda: proxy.hit, what="the call")
    assert verbs.status(bob)["state"] == "ready"
    verbs.stop(bob)
    verbs.start(bob)
    answered_once(w, bob, [asked])


def test_an_outage_in_the_middle_of_a_job_is_shown_and_over_when_it_is_over(place: tuple[World, Proxy, Target]) -> None:
    w, proxy, bob = place
    verbs.start(bob)
    proxy.arm(lambda _: None)
    running, queued = w.ask(bob, "hold=outage task=one"), w.ask(bob, "task=two")
    w.until_stage(running["id"], "running")
    with proxy.outage():
        late = w.ask(bob, "task=three")
        w.release("outage")
        until(lambda: verbs.status(bob)["job"]["state"] == "output", what="the answer kept")
        until(lambda: _offline(bob), what="a word of it")
        assert verbs.jobs(bob)["jobs"]
    answered_once(w, bob, [running, queued, late])


def _offline(bob: Target) -> bool:
    """Told in the end as what it is; the call that the outage cuts off comes first, and says so."""
    told = verbs.status(bob)["transport"]
    return told["name"] == "offline" and "cannot be reached" in told["why"]


def answered_once(w: World, bob: Target, asked: list[dict[str, Any]]) -> None:
    for each in asked:
        w.until_stage(each["id"], "answered")
        # The hub may have it from a post whose answer was lost: only now is nothing posted any more.
        until(lambda each=each: job(bob, each)["state"] == "done", what="the end of its job")
        assert len(w.results(each["id"])) == 1
        assert starts(w, bob, each) == 1
    assert verbs.status(bob)["needsPerson"] == []
