"""What `messages send` and the tools send, and whom they find by name."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from relay_receiver.cli import exchange, messages
from relay_receiver.cli.acting import Actor, channel, choose, member
from relay_receiver.cli.exchange import Enclosure, Letter
from relay_receiver.wire.errors import RelayError
from relay_receiver.wire.limits import CONTENT_BYTES
from relay_receiver.wire.message import seconds

MEMBERS = [
    {"id": "a1", "name": "ann", "kind": "agent", "receiver": None},
    {"id": "b1", "name": "Bob", "kind": "agent", "receiver": {"state": "ready", "detail": None, "report": {}}},
    {"id": "p1", "name": "Pat", "kind": "human", "receiver": None},
    {"id": "t1", "name": "twin", "kind": "agent", "receiver": None},
    {"id": "t2", "name": "Twin", "kind": "agent", "receiver": None},
]


class Hub:
    """Keeps what was posted, and tells it back as a hub does."""

    def __init__(self) -> None:
        self.posted: list[dict[str, Any]] = []

    async def members(self, _: str) -> list[dict[str, Any]]:
        return MEMBERS

    async def channels(self) -> list[dict[str, Any]]:
        return [{"id": "c1", "name": "lab"}, {"id": "c2", "name": "ops"}]

    async def upload(self, data: bytes, name: str, type: str) -> dict[str, Any]:  # noqa: A002 - as in client.hub
        return {"id": f"{name}:{type}:{len(data)}"}

    async def post_message(self, body: dict[str, Any]) -> dict[str, Any]:
        self.posted.append(body)
        return {"id": "m1", "to": None, "mentions": [], **body}


def actor(*, job: bool = False, channels: tuple[tuple[str, str], ...] = (("c1", "lab"),)) -> Actor:
    return Actor(url="http://127.0.0.1:1", token="t", workspace="w", id="a1", name="ann", channels=channels, job=job)


def send(letter: Letter, who: Actor | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    hub = Hub()
    stored = asyncio.run(exchange.send(who or actor(), hub, letter))  # type: ignore[arg-type]  # the calls it makes
    return hub.posted[0], stored


def test_a_message_to_someone_wakes_only_whom_it_mentions() -> None:
    _, stored = send(Letter(content="hi", to="bob", kind="message"))
    assert stored["wakes"] == []
    _, stored = send(Letter(content="hi", to="ann", kind="message", mentions=("bob",)))
    assert [each["name"] for each in stored["wakes"]] == ["Bob"]


@pytest.mark.parametrize("text", ["", " \n"])
def test_nothing_is_not_sent(text: str) -> None:
    with pytest.raises(RelayError, match="no text to send"):
        send(Letter(content=text, to="bob"))
    assert send(Letter(content=text, attachments=(Enclosure(name="f", type="t", data=b"x"),)))


def test_to_without_a_kind_is_a_request_and_tells_whether_that_receiver_runs() -> None:
    body, stored = send(Letter(content="do it", to="bob"))
    assert (body["kind"], body["to"], body["channel"]) == ("request", "b1", "c1")
    assert body["operationId"].startswith("cli:")
    assert stored["wakes"] == [{"id": "b1", "name": "Bob", "receiver": {"state": "ready", "detail": None}}]


def test_without_to_it_is_a_message_and_mentions_wake() -> None:
    body, stored = send(Letter(content="hi", mentions=("@ann", "b1", "Pat")))
    assert (body["kind"], body["mentions"]) == ("message", ["a1", "b1", "p1"])
    assert [each["id"] for each in stored["wakes"]] == ["a1", "b1"]
    assert "to" not in body


def test_what_was_said_is_what_is_posted() -> None:
    letter = Letter(
        content="x",
        to="human",
        kind="message",
        reply_to="m0",
        operation_id="once",
        attachments=(Enclosure(name="a.txt", type="text/plain", data=b"abc"),),
    )
    body, _ = send(letter)
    assert body == {
        "channel": "c1",
        "content": "x",
        "kind": "message",
        "to": "human",
        "replyTo": "m0",
        "operationId": "once",
        "attachments": ["a.txt:text/plain:3"],
    }


def test_a_rehearsal_asks_as_it_would_be_sent_and_uploads_nothing() -> None:
    hub = Hub()
    letter = Letter(content="x", to="bob", attachments=(Enclosure(name="f", type="t", data=b"x"),))
    asyncio.run(exchange.rehearse(actor(), hub, letter))  # type: ignore[arg-type]  # the calls it makes
    [body] = hub.posted
    assert (body["dryRun"], body["to"], body["kind"]) == (True, "b1", "request")
    assert "attachments" not in body


def test_whom_the_hub_knows_to_be_woken_by_every_message_is_told_too() -> None:
    told = exchange.woken({"kind": "message", "mentions": [], "wakes": [{"id": "b1"}]}, MEMBERS)
    assert [each["name"] for each in told] == ["Bob"]


def test_expiry_is_a_time_from_now() -> None:
    body, _ = send(Letter(content="x", to="bob", expires=7200))
    later, _ = send(Letter(content="x", to="bob", expires=7260))
    assert seconds(later["expiresAt"]) - seconds(body["expiresAt"]) == pytest.approx(60, abs=5)


@pytest.mark.parametrize(
    ("letter", "code"),
    [
        (Letter(content="x", kind="request"), "usage"),
        (Letter(content="x", to="carl"), "unknown_member"),
        (Letter(content="x", to="tWin"), "usage"),
        (Letter(content="x" * (CONTENT_BYTES + 1)), "too_large"),
        (Letter(content="x", channel="nowhere"), "unknown_channel"),
    ],
)
def test_what_cannot_be_sent_is_said_before_anything_is_posted(letter: Letter, code: str) -> None:
    with pytest.raises(RelayError) as told:
        send(letter)
    assert told.value.code == code
    assert told.value.hint


def test_a_channel_that_only_the_hub_knows_is_found() -> None:
    body, _ = send(Letter(content="x", channel="#OPS"))
    assert body["channel"] == "c2"


def test_a_job_stays_in_its_channel() -> None:
    with pytest.raises(RelayError):
        send(Letter(content="x", channel="ops"), actor(job=True))


def test_which_channel_is_asked_where_there_are_many() -> None:
    with pytest.raises(RelayError, match="Which channel"):
        choose((("c1", "lab"), ("c2", "ops")), None)
    with pytest.raises(RelayError, match="Which channel"):
        choose((), None)
    assert channel(actor(channels=(("c1", "lab"), ("c2", "ops"))), "c2") == ("c2", "ops")


def test_an_id_goes_before_a_name() -> None:
    assert member([{"id": "bob", "name": "x"}, {"id": "y", "name": "bob"}], "bob") == "bob"


@pytest.mark.parametrize(
    ("stage", "code"),
    [
        ("answered", 0),
        ("quiet", 0),
        ("failed", 1),
        ("expired", 1),
        ("withdrawn", 1),
        ("cancelled", 1),
        ("unknown", 4),
        ("stored", 5),
        ("running", 5),
        (None, 5),
    ],
)
def test_the_exit_code_says_how_a_request_ended(stage: str | None, code: int) -> None:
    assert exchange.ending(stage) == code


@pytest.mark.parametrize(("job", "asked", "given"), [(True, 3600, 600), (True, 30, 30), (False, 3600, 3600)])
def test_inside_a_job_a_wait_ends_after_ten_minutes(
    *, job: bool, asked: float, given: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[float] = []

    async def follow(_hub: Any, _message: str, limit: float, **_: Any) -> dict[str, Any]:
        limits.append(limit)
        return {"request": {}, "delivery": {"stage": "running"}, "result": None}

    monkeypatch.setattr("relay_receiver.client.wait.wait", follow)
    _, code = asyncio.run(exchange.wait(actor(job=job), Hub(), "m1", timeout=asked))  # type: ignore[arg-type]  # as above
    assert (limits, code) == ([given], 5)


def test_text_typed_in_a_locale_that_is_not_utf8_arrives_whole() -> None:
    assert messages._text("caf\udcc3\udca9", None) == "café"
    assert messages._text("\udcff", None) == "\ufffd"


def test_text_comes_from_one_place(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"caf\xc3\xa9 \xff")
    assert messages._text(None, str(tmp_path / "f")) == "café \ufffd"
    for both in ((None, None), ("a", "b")):
        with pytest.raises(RelayError):
            messages._text(*both)
