"""The picture that `relay top` draws, for terminals of any size."""

from typing import Any

import pytest

from relay_receiver.cli.frame import Line, cells, elapsed, fit, frame, wrap
from relay_receiver.wire.message import iso

NOW = 1_800_000_000.0
READY: dict[str, Any] = {
    "profile": "bob",
    "agentName": "bob",
    "channelName": "lab",
    "state": "ready",
    "queue": {"queued": 2, "received": 0},
    "chain": {"count": 1, "limit": 3, "paused": False},
    "transport": {"name": "websocket", "why": ""},
    "lease": {"state": "held"},
    "job": None,
    "needsPerson": [],
    "lastError": None,
}
BUSY = {
    **READY,
    "state": "busy",
    "job": {"id": "j1", "state": "running", "attempt": 2, "startedAt": iso(NOW - 7500), "submittedAt": iso(NOW - 7501)},
    "lastActivity": iso(NOW - 3),
    "lastNote": "reading \u202efiles",
}
UNKNOWN = {
    **BUSY,
    "agentName": "dave",
    "state": "unknown",
    "job": {"id": "j2", "state": "unknown", "attempt": 1, "startedAt": None, "submittedAt": iso(NOW - 60)},
    "needsPerson": [{"what": "unknown", "job": "j2", "next": "relay receiver job j2 --profile dave"}],
}
STOPPED = {**READY, "agentName": "carol", "state": "stopped", "transport": None, "lease": None}


def texts(found: list[Line]) -> list[str]:
    return [each.text for each in found]


def draw(*receivers: dict[str, Any], width: int = 80, height: int | None = 24, **more: Any) -> list[str]:
    return texts(frame(receivers, width=width, height=height, now=NOW, **more))


def test_none_is_said_with_the_line_that_makes_one() -> None:
    assert draw() == [
        "relay top 0 receivers",
        "No receiver is configured on this machine.",
        "next: relay receiver start",
        "q quits",
    ]


def test_one_at_80_columns() -> None:
    assert draw(READY, clock="12:00:00") == [
        "relay top 12:00:00 1 receiver",
        "NAME           CHANNEL    STATE        QUEUE CHAIN  HUB       JOB",
        "bob            lab        ready        2     1/3    websocket -",
        "q quits",
    ]


def test_a_long_job_shows_how_long_and_its_last_sign_of_life_with_nothing_hidden_in_it() -> None:
    lines = draw(BUSY)
    assert lines[2].endswith("running, 2h05m, #2")
    assert lines[3] == "  active 3s ago: reading <U+202E>files"


def test_at_40_columns_a_receiver_takes_lines_and_a_line_to_type_is_never_cut() -> None:
    lines = draw(UNKNOWN, width=40)
    assert lines[1:] == [
        "dave in lab: unknown",
        "  queue 2 chain 1/3 hub websocket",
        "  job unknown, 1m00s",
        "  needs you: unknown: relay receiver job",
        "    j2 --profile dave",
        "  active 3s ago: reading <U+202E>files",
        "q quits",
    ]
    assert all(cells(each) <= 40 for each in lines)


def test_what_needs_a_person_comes_first_then_what_works_then_the_rest() -> None:
    lines = draw(STOPPED, READY, {**BUSY, "agentName": "erin"}, UNKNOWN)
    order = [each.split()[0] for each in lines if each and each.split()[0] in {"bob", "carol", "dave", "erin"}]
    assert order == ["dave", "erin", "bob", "carol"]
    assert lines[0] == "relay top 4 receivers, 1 needs you, 2 at a job"


def test_paused_standby_and_errors_are_seen() -> None:
    paused = {**READY, "state": "paused", "chain": {"count": 3, "limit": 3, "paused": True}}
    assert "3/3!" in draw(paused)[2]
    assert "standby" in draw({**READY, "lease": {"state": "standby"}})[2]
    assert draw({**READY, "lastError": "it broke"})[3] == "  last error: it broke"
    assert draw({**READY, "state": "offline", "detail": "the hub is away", "lastError": "the hub is away"})[3:5] == [
        "  the hub is away",
        "q quits",
    ]


def test_more_than_the_screen_takes_are_counted_and_scrolled_to() -> None:
    many = [{**READY, "agentName": f"agent-{number:02}"} for number in range(50)]
    lines = draw(*many, height=10)
    assert len(lines) == 10
    assert lines[-1] == "43 more: up and down; q quits"
    assert draw(*many, height=10, first=45)[2].startswith("agent-45")
    assert draw(*many, height=10, first=999)[2].startswith("agent-49")


@pytest.mark.parametrize(("width", "height"), [(20, 4), (40, 5), (64, 4), (500, 100)])
def test_no_line_is_wider_and_no_picture_higher_than_the_terminal(width: int, height: int) -> None:
    wide = {**UNKNOWN, "agentName": "日本語のエージェントの名前", "lastError": "💥" * 300, "lastNote": "a\nb\tc"}
    lines = draw(wide, BUSY, READY, STOPPED, width=width, height=height)
    assert len(lines) <= height
    assert all(cells(each) <= width for each in lines)
    assert not any(character in each for each in lines for character in "\n\t\x1b")


def test_names_and_notes_cannot_draw() -> None:
    forged = {**BUSY, "agentName": "bob\x1b[2J\u202e", "lastNote": "\x1b]0;title\x07"}
    assert not any("\x1b" in each or "\x07" in each or "\u202e" in each for each in draw(forged))


def test_texts_are_cut_by_columns_not_by_characters() -> None:
    assert fit("日本語", 6, "…") == "日本語"
    assert fit("日本語", 5, "…") == "日本…"
    assert fit("日本語", 4, "…") == "日…"
    assert fit("abc", 0, "…") == ""
    assert cells("e\u0301") == 1


def test_wrapping_breaks_a_word_that_is_wider_than_the_terminal() -> None:
    lines = wrap("run " + "x" * 50, 20)
    assert "".join(each.strip() for each in lines) == "run" + "x" * 50
    assert all(len(each) <= 20 for each in lines)


def test_times_as_people_read_them() -> None:
    assert [elapsed(each) for each in (-1, 45, 725, 7500, 273600)] == ["0s", "45s", "12m05s", "2h05m", "3d04h"]
