import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support_hub import LiveHub, Member, Talk
from support_time import ENDLESS, WITHIN
from websockets.exceptions import InvalidStatus

from relay_receiver.hub import channels

PATIENT = {"close_seconds": WITHIN, "hello_seconds": WITHIN, "cursor_seconds": ENDLESS}
"""No time of the hub runs out in a test, however slow the machine is."""


@pytest.fixture
def hub(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[LiveHub]:
    """Its parameter are times of the hub that do run out in that test."""
    live = LiveHub(tmp_path / "hub", queue_events=50, **{**PATIENT, **getattr(request, "param", {})}).start()
    try:
        yield live
    finally:
        live.stop()


def closed(talk: Talk) -> int:
    """Read to the end; the close code."""
    return talk.rest()[1]


def test_a_socket_is_greeted_and_told_each_event_once_with_a_cursor(hub: LiveHub, owner: Member, lab: str) -> None:
    with hub.socket(owner, channel=lab) as talk:
        ready = talk.frame()
        assert ready["t"] == "ready"
        number = hub.event(lab, "hello")
        events, cursor = talk.batch()
    assert [(each["id"], each["type"], each["data"]["message"]["content"]) for each in events] == [
        (number, "message.created", "hello")
    ]
    assert cursor.split(".")[0] == str(number)
    assert events[0]["at"].endswith("Z")


def test_a_resumed_socket_goes_on_where_it_was_cut_without_loss_or_duplicate(
    hub: LiveHub, owner: Member, lab: str
) -> None:
    numbers = [hub.event(lab, f"{n}") for n in range(3)]
    with hub.socket(owner, channel=lab, resume="0") as talk:
        assert talk.frame() == {"t": "ready", "cursor": "0"}
        seen, cursor = talk.batch()
    numbers += [hub.event(lab, f"{n}") for n in range(450)]
    with hub.socket(owner, channel=lab, resume=cursor) as talk:
        assert talk.frame() == {"t": "ready", "cursor": cursor}
        while seen[-1]["id"] < numbers[-1]:
            more, cursor = talk.batch()
            seen += more
        last = hub.event(lab, "after")
        more, cursor = talk.batch()
    assert [each["id"] for each in [*seen, *more] if each["type"] == "message.created"] == [*numbers, last]


def test_a_restarted_hub_resumes_the_same_cursor(hub: LiveHub, owner: Member, lab: str) -> None:
    with hub.socket(owner, channel=lab) as talk:
        cursor = talk.frame()["cursor"]
    number = hub.event(lab, "while away")
    hub.stop()
    hub.start()
    again = hub.member(owner.id, owner.token, owner.identity)
    with hub.socket(again, channel=lab, resume=cursor) as talk:
        assert talk.frame() == {"t": "ready", "cursor": cursor}
        events, _ = talk.batch()
    assert [each["id"] for each in events] == [number]


def test_events_arrive_in_commit_order_under_32_posters(hub: LiveHub, owner: Member, lab: str) -> None:
    with hub.socket(owner, channel=lab) as talk, ThreadPoolExecutor(32) as pool:
        talk.frame()
        posted = pool.map(lambda n: hub.event(lab, str(n)), range(320))
        seen: list[int] = []
        while len(seen) < 320:
            seen += [each["id"] for each in talk.batch()[0]]
        assert seen == sorted(posted)


def test_a_reader_sees_its_channels_and_nothing_of_others(hub: LiveHub, owner: Member, lab: str) -> None:
    other = hub.channel(owner, "other")
    bob = hub.agent(owner, lab, "bob")
    with hub.socket(bob) as talk:
        talk.frame()
        hub.event(other, "secret")
        shared = hub.event(None, "for all", kind="member.updated")
        mine = hub.event(lab, "mine")
        seen: list[int] = []
        while mine not in seen:
            seen += [each["id"] for each in talk.batch()[0]]
    assert seen == [shared, mine]
    with hub.socket(bob, channel=other) as talk:
        assert talk.frame()["code"] == "not_found"
        assert closed(talk) == 4002


@pytest.mark.parametrize("hub", [{"cursor_seconds": 0.2}], indirect=True)
def test_only_the_asked_types_arrive_and_the_idle_cursor_moves_on(hub: LiveHub, owner: Member, lab: str) -> None:
    with hub.socket(owner, channel=lab, types=["message.created"]) as talk:
        talk.frame()
        other = hub.event(lab, "", kind="message.stage")
        while not (frame := talk.frame())["cursor"].startswith(f"{other}."):
            assert frame["t"] == "cursor"
    assert frame["t"] == "cursor"


def test_a_reader_joins_a_channel_while_it_listens(hub: LiveHub, owner: Member, lab: str) -> None:
    bob = hub.agent(owner, lab, "bob")
    other = hub.channel(owner, "other")
    with hub.socket(bob, types=["message.created"]) as talk:
        talk.frame()
        hub.write(channels.join, hub.workspace, other, bob.id, at=time.time())
        number = hub.event(other, "now mine")
        while not (events := talk.batch()[0]):
            pass
    assert [each["id"] for each in events] == [number]


def test_a_slow_reader_is_cut_and_resumes_without_loss(hub: LiveHub, owner: Member, lab: str) -> None:
    with hub.raw_socket(owner, max_queue=1) as talk:
        talk.say(t="hello", resume=None, channel=lab)
        cursor = talk.frame()["cursor"]
        numbers = [hub.event(lab, "big", size=50_000) for _ in range(300)]
        frames, code = talk.rest()
    seen: list[int] = []
    batch: list[int] = []
    for frame in frames:
        if frame["t"] == "event":
            batch.append(frame["event"]["id"])
        else:
            seen, batch, cursor = seen + batch, [], frame["cursor"]
    assert code == 4004
    assert len(seen) < 300
    with hub.socket(owner, channel=lab, resume=cursor) as talk:
        talk.frame()
        while not seen or seen[-1] < numbers[-1]:
            seen += [each["id"] for each in talk.batch()[0]]
    assert seen == numbers


def test_a_newer_connection_of_the_same_holder_displaces_the_older(hub: LiveHub, owner: Member, lab: str) -> None:
    with hub.socket(owner, channel=lab, holder="h1", fence="f") as older:
        older.frame()
        with hub.socket(owner, channel=lab, holder="h2", fence="f") as other:
            other.frame()
            with hub.socket(owner, channel=lab, holder="h1", fence="f") as newer:
                newer.frame()
                assert closed(older) == 4000
                number = hub.event(lab, "to the new one")
                assert newer.batch()[0][0]["id"] == number
                assert other.batch()[0][0]["id"] == number


def test_a_fifth_socket_of_a_member_and_channel_is_refused(hub: LiveHub, owner: Member, lab: str) -> None:
    open_ = [hub.socket(owner, channel=lab) for _ in range(4)]
    for each in open_:
        each.__enter__().frame()
    with hub.socket(owner, channel=lab) as fifth:
        assert fifth.frame()["code"] == "too_many_sockets"
        assert closed(fifth) == 1013
    with hub.socket(owner) as another_scope:
        assert another_scope.frame()["t"] == "ready"
    open_[0].__exit__(None, None, None)
    while len(hub.app.sockets._open[owner.id, lab]) == 4:
        assert hub._thread.is_alive()
    with hub.socket(owner, channel=lab) as freed:
        assert freed.frame()["t"] == "ready"
    for each in open_[1:]:
        each.__exit__(None, None, None)


@pytest.mark.parametrize(
    "said",
    ['{"t":"hullo"}', "[1]", "{", '{"t":"hello","resume":"never"}', '{"t":"hello","types":7}', "[" * 100_000],
)
def test_broken_framing_is_told_then_closed(hub: LiveHub, owner: Member, said: str) -> None:
    with hub.raw_socket(owner) as talk:
        talk.connection.send(said)
        frame = talk.frame()
        assert (frame["t"], bool(frame["message"])) == ("error", True)
        assert closed(talk) == 4002


@pytest.mark.parametrize("hub", [{"hello_seconds": 0.2}], indirect=True)
def test_a_silent_socket_is_closed(hub: LiveHub, owner: Member) -> None:
    with hub.raw_socket(owner) as talk:
        assert talk.frame()["code"] == "no_hello"
        assert closed(talk) == 4002


def test_binary_frames_are_broken_framing(hub: LiveHub, owner: Member) -> None:
    with hub.raw_socket(owner) as talk:
        talk.connection.send(b"\xff\x00")
        assert talk.frame()["t"] == "error"
        assert closed(talk) == 4002


def test_no_socket_without_a_credential(hub: LiveHub, owner: Member, caplog: pytest.LogCaptureFixture) -> None:
    stranger = hub.member("nobody", "wrong", "wrong")
    with pytest.raises(InvalidStatus) as refused, hub.raw_socket(stranger):
        pass
    assert refused.value.response.status_code == 401
    assert json.loads(refused.value.response.body)["code"] == "unauthorized"
    with pytest.raises(InvalidStatus) as foreign, hub.raw_socket(owner, origin="http://evil.example"):
        pass
    assert foreign.value.response.status_code == 403
    assert owner.get("/state")  # by now it would have been logged
    assert [each.message for each in caplog.records if each.levelname == "ERROR"] == []


def test_leaving_the_channel_ends_its_socket(hub: LiveHub, owner: Member, lab: str) -> None:
    bob = hub.agent(owner, lab, "bob")
    with hub.socket(bob, channel=lab) as talk:
        talk.frame()
        hub.write(channels.leave, hub.actor(bob), lab, at=time.time())
        assert closed(talk) == 4001


def test_positions_that_are_not_of_this_past_are_reset(hub: LiveHub, owner: Member, lab: str) -> None:
    number = hub.event(lab, "one")
    for resume, reason in ((f"{number}.000000000000", "diverged"), (f"{number + 100}", "diverged")):
        with hub.socket(owner, channel=lab, resume=resume) as talk:
            assert talk.frame() == {"t": "reset", "reason": reason}


def test_a_stopping_hub_sends_its_sockets_away(tmp_path: Path) -> None:
    hub = LiveHub(tmp_path / "hub").start()
    owner = hub.owner()
    with hub.socket(owner) as talk:
        talk.frame()
        codes: list[int] = []
        reading = threading.Thread(target=lambda: codes.append(closed(talk)))
        reading.start()
        hub.stop()
        reading.join(WITHIN)
    assert codes == [4003]


def test_an_acknowledgement_by_frame_is_stored(hub: LiveHub, owner: Member, lab: str) -> None:
    made = owner.post("/subscriptions", {"type": "message.created", "channel": lab})["id"]
    with hub.socket(owner, channel=lab) as talk:
        talk.frame()
        hub.event(lab, "one")
        _, cursor = talk.batch()
        assert len(waiting(owner, made)["events"]) == 1
        talk.say(t="ack", subscription=made, cursor=cursor)
        talk.say(t="ack", subscription="unknown", cursor=cursor)
        while (frame := talk.frame())["t"] != "error":
            pass
        assert frame["code"] == "not_found"
    assert waiting(owner, made) == {
        "subscription": made,
        "events": [],
        "cursor": cursor,
        "gap": False,
        "more": False,
    }


def waiting(member: Member, subscription: str) -> Any:
    return next(each for each in member.get("/inbox")["deliveries"] if each["subscription"] == subscription)
