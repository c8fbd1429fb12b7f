import json
from typing import Any

import pytest

from relay_receiver.wire.errors import RelayError
from relay_receiver.wire.message import Message, iso, seconds
from relay_receiver.wire.stage import ENDS, GOOD_ENDS, Stage, may_follow, stage_of_result

WHOLE: dict[str, Any] = {
    "id": "m1",
    "event": 5,
    "channel": "c1",
    "authorId": "a1",
    "author": {"id": "a1", "name": "Ann", "kind": "agent"},
    "kind": "request",
    "content": "do it",
    "to": "a2",
    "mentions": ["a2", "a3"],
    "replyTo": "m0",
    "operationId": "op",
    "outcome": None,
    "chain": {"root": "m0", "hop": 2},
    "attachments": [{"id": "sha"}],
    "createdAt": "2026-01-01T00:00:00.000Z",
    "expiresAt": "2026-01-08T00:00:00.000Z",
    "notice": False,
}
LEAST = {"id": "m1", "event": 5, "channel": "c1", "authorId": "a1", "kind": "message", "content": ""}


def test_a_whole_message_is_read() -> None:
    message = Message.parse(WHOLE | {"unknown": 1})
    assert (message.id, message.event, message.root, message.hop) == ("m1", 5, "m0", 2)
    assert (message.to, message.mentions, message.reply_to) == ("a2", ("a2", "a3"), "m0")
    assert (message.author.name, message.by_agent) == ("Ann", True)


def test_what_is_left_out_has_a_value() -> None:
    message = Message.parse(LEAST)
    assert (message.author.id, message.author.name, message.author.kind) == ("a1", "a1", "agent")
    assert (message.root, message.hop, message.mentions, message.attachments) == ("m1", 0, (), ())
    assert (message.to, message.expires_at, message.created_at, message.notice) == (None, None, "", False)


def test_a_person_is_one_however_it_is_said() -> None:
    by_id = Message.parse(LEAST | {"authorId": "human"})
    by_kind = Message.parse(WHOLE | {"author": {"id": "p1", "name": "Pat", "kind": "human"}})
    assert not by_id.by_agent
    assert not by_kind.by_agent
    assert Message.parse(WHOLE | {"authorId": "human"}).author.id == "a1"


def test_what_no_database_takes_is_replaced_in_text_and_refused_in_ids() -> None:
    message = Message.parse(WHOLE | {"content": "a\x00\ud800", "author": {"id": "a1", "name": "\udc00"}})
    assert (message.content, message.author.name) == ("a\ufffd\ufffd", "\ufffd")
    for field in ("id", "channel", "kind", "to", "replyTo", "operationId", "expiresAt"):
        with pytest.raises(ValueError, match="not a message"):
            Message.parse(WHOLE | {field: "\ud800"})


@pytest.mark.parametrize("field", ["id", "event", "channel", "kind", "content"])
def test_what_identifies_orders_or_says_must_be_there(field: str) -> None:
    with pytest.raises(ValueError, match="not a message"):
        Message.parse({name: value for name, value in WHOLE.items() if name != field})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", 5),
        ("event", "5"),
        ("event", True),
        ("event", -1),
        ("event", 2**63),
        ("event", 5.0),
        ("channel", None),
        ("author", "Ann"),
        ("author", {"id": 7}),
        ("kind", 1),
        ("content", None),
        ("content", {"text": "x"}),
        ("to", {"id": "a2"}),
        ("mentions", "a2"),
        ("mentions", [None]),
        ("replyTo", 3),
        ("operationId", []),
        ("outcome", 1),
        ("chain", "m0"),
        ("chain", {"root": 5}),
        ("chain", {"hop": "2"}),
        ("chain", {"hop": float("inf")}),
        ("chain", {"hop": 10**30}),
        ("attachments", {"id": "sha"}),
        ("attachments", ["sha"]),
        ("createdAt", 5),
        ("expiresAt", 5),
    ],
)
def test_what_has_the_wrong_type_is_one_error_and_never_another(field: str, value: object) -> None:
    with pytest.raises(ValueError, match="not a message of protocol 1"):
        Message.parse(WHOLE | {field: value})


@pytest.mark.parametrize("data", [None, [], "m", 5])
def test_what_is_no_object_is_the_same_error(data: Any) -> None:
    with pytest.raises(ValueError, match="not a message of protocol 1"):
        Message.parse(data)


def test_times_come_back_as_they_were_sent() -> None:
    for text in ("1970-01-01T00:00:00.000Z", "2026-12-01T02:03:04.567Z"):
        assert iso(seconds(text)) == text
    assert seconds("1970-01-01T01:00:00+01:00") == seconds("1970-01-01T00:00:00") == 0
    for bad in ("", "soon", "2026-13-01"):
        with pytest.raises(ValueError, match=r"Invalid isoformat|month"):
            seconds(bad)


def test_the_first_end_stands_and_unknown_may_become_any_other() -> None:
    for current in Stage:
        for new in Stage:
            assert may_follow(current, new) is (current not in ENDS and current is not new)
    assert Stage.UNKNOWN not in ENDS
    assert {Stage.ANSWERED, Stage.QUIET} == GOOD_ENDS


def test_the_stage_that_a_result_sets() -> None:
    told = {outcome: stage_of_result(outcome) for outcome in ("completed", None, "failed", "quiet", "cancelled", "new")}
    assert told == {
        "completed": Stage.ANSWERED,
        None: Stage.ANSWERED,
        "failed": Stage.FAILED,
        "quiet": Stage.QUIET,
        "cancelled": Stage.CANCELLED,
        "new": Stage.ANSWERED,
    }


def test_an_error_for_people_carries_what_programs_need() -> None:
    error = RelayError("It is full.", code="full", hint="wait", rows=4)
    assert str(error) == error.sentence == "It is full."
    assert (error.code, error.hint, json.dumps(error.data)) == ("full", "wait", '{"rows": 4}')
