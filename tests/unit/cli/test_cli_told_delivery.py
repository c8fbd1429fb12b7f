"""How far a request has come, whom a message would wake, and the feed, in words."""

from typing import Any

import pytest

from relay_receiver.cli import inbox, told

STORED: dict[str, Any] = {"stage": "received", "reason": None, "detail": None, "position": 0, "nextTry": None}


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({}, "received"),
        ({"position": 2}, "received; 2 before it"),
        ({"reason": "offline", "detail": "it has no receiver yet"}, "received: it has no receiver yet (offline)"),
        ({"reason": "paused", "detail": "its chain is paused"}, "received: its chain is paused"),
        ({"reason": "usage_limit", "detail": "the usage limit is reached"}, "received: the usage limit is reached"),
        ({"reason": "dreaming"}, "received (dreaming)"),
        (
            {"reason": "refused", "detail": "no program", "nextTry": "T", "position": 1},
            "received: no program (refused); next try T; 1 before it",
        ),
        (
            {"reason": "refused", "detail": "no; tried again at T", "nextTry": "T"},
            "received: no; tried again at T (refused)",
        ),
        ({"stage": "answered"}, "answered"),
    ],
)
def test_a_delivery_on_one_line(more: dict[str, Any], line: str) -> None:
    assert told.delivery({**STORED, **more}) == line


def test_on_whom_it_waits_with_the_line_that_shows_it() -> None:
    asked = {"request": "r1", "title": "Run ls", "expiresAt": "T"}
    assert told.waits_on({"waitsOn": [{**asked, "people": None}, {**asked, "people": ["pat", "kim"]}]}) == [
        "waits on any person of the channel, until T: Run ls: relay requests show r1",
        "waits on pat, kim, until T: Run ls: relay requests show r1",
    ]
    assert told.waits_on({}) == []


def test_a_rehearsal_says_for_each_whether_it_is_woken_whether_its_receiver_runs_and_why_not() -> None:
    one = {"name": "bob", "wakes": True, "runs": True, "state": "ready", "detail": None, "reason": None}
    assert told.rehearsal([]) == ["It would wake nobody."]
    assert told.rehearsal(
        [
            one,
            {**one, "reason": "busy", "detail": "it is at another job", "position": 2},
            {**one, "runs": False, "reason": "offline", "detail": "its receiver is stopped"},
            {**one, "reason": "usage_limit", "detail": "the limit", "nextTry": "T"},
            {**one, "name": "c\x1barl", "wakes": False, "reason": "manual", "detail": "it runs nothing by itself"},
        ]
    ) == [
        "bob: is woken at once; its receiver is ready",
        "bob: is woken later: its receiver runs, but it is at another job; 2 before it",
        "bob: is woken later: no receiver runs: its receiver is stopped",
        "bob: is woken later: its receiver runs, but the limit; next try T",
        "carl: is not woken: it runs nothing by itself",
        "Nothing was sent.",
    ]


@pytest.mark.parametrize(
    ("kind", "data", "line"),
    [
        (
            "message.created",
            {"message": {"author": {"name": "bob"}, "kind": "message", "content": "hi"}},
            "bob (message): hi",
        ),
        (
            "message.stage",
            {"message": "m1", "stage": "waiting", "to": "b", "detail": "on pat: ls", "reason": None},
            "message.stage m1 b waiting: on pat: ls",
        ),
        (
            "receiver.updated",
            {"agent": "b", "channel": "c", "state": "paused", "detail": None, "report": {}},
            "receiver.updated b paused",
        ),
        (
            "receiver.updated",
            {"agent": "b", "channel": "c", "state": "refused", "detail": "no program"},
            "receiver.updated b refused no program",
        ),
        (
            "request.created",
            {"request": {"id": "r", "state": "open", "kind": "input", "title": "?", "author": {"name": "bob"}}},
            "request.created r open: input of bob: ?",
        ),
        ("something.new", {"x": 1}, "something.new"),
    ],
)
def test_each_event_of_the_feed_on_one_line(kind: str, data: dict[str, Any], line: str) -> None:
    assert inbox.line({"type": kind, "data": data}) == line
