"""A request to people is answered once, by a person, in time, for exactly the action that was shown."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support_asks import ACCEPT, ACTION, DECLINE, HASH, AskDesk, ask_desk, refused

from relay_receiver.hub import ask_views, ask_wishes, asks, channels, enrolment, members

DAY = 86_400.0


@pytest.fixture
def at(tmp_path: Path) -> Iterator[AskDesk]:
    with ask_desk(tmp_path) as found:
        yield found


def untouched(at: AskDesk, request: dict[str, Any]) -> None:
    """As it was made, and nothing was told of it since."""
    assert at.get(request["id"]) == request
    assert all(kind == "request.created" for kind, which, _ in at.events() if which == request["id"])


def test_a_request_is_told_as_it_was_made(at: AskDesk) -> None:
    made = at.ask(operation="op", description="why", job="job-1")
    assert made == {
        "id": made["id"],
        "channel": at.desk.lab,
        "kind": "approval",
        "title": "Release?",
        "description": "why",
        "options": None,
        "schema": None,
        "action": ACTION,
        "actionHash": HASH,
        "approvers": None,
        "author": {"id": at.bob, "name": "bob", "kind": "agent"},
        "job": "job-1",
        "message": None,
        "state": "open",
        "answer": None,
        "answeredBy": None,
        "reason": None,
        "createdAt": "1970-01-12T13:46:40.000Z",
        "expiresAt": "1970-01-13T13:46:40.000Z",
        "endedAt": None,
        "operationId": "op",
    }
    assert at.events() == [("request.created", made["id"], "open")]
    assert at.get(made["id"]) == made
    assert at.listed() == [made["id"]]


def test_an_answer_is_stored_with_who_gave_it_and_told(at: AskDesk) -> None:
    made = at.ask()
    at.desk.now += 5
    told = at.respond("ann", made["id"], ACCEPT, HASH)
    assert told["state"] == "answered"
    assert told["answer"] == ACCEPT
    assert told["answeredBy"] == {"id": at.ann, "name": "ann"}
    assert told["endedAt"] == "1970-01-12T13:46:45.000Z"
    assert at.events()[1:] == [("request.updated", made["id"], "answered")]
    assert at.get(made["id"], "bob") == told


def test_whoever_answers_second_is_told_who_was_first_and_changes_nothing(at: AskDesk) -> None:
    made = at.ask()
    first = at.respond("ann", made["id"], DECLINE, HASH)
    for who, answer in (("owner", ACCEPT), ("owner", DECLINE), ("ann", ACCEPT)):
        with refused(409, "request_answered") as caught:
            at.respond(who, made["id"], answer, HASH)
        assert caught.value.data["answeredBy"] == {"id": at.ann, "name": "ann"}
        assert caught.value.data["state"] == "answered"
    assert at.get(made["id"]) == first
    assert len(at.events()) == 2


def test_the_same_answer_of_the_same_person_again_is_the_same_as_once(at: AskDesk) -> None:
    made = at.ask()
    first = at.respond("ann", made["id"], ACCEPT, HASH)
    assert at.respond("ann", made["id"], ACCEPT, HASH) == first
    at.close("bob", made["id"], "applied")
    assert at.respond("ann", made["id"], ACCEPT, HASH)["state"] == "applied"
    assert len(at.events()) == 3


def test_an_answer_after_its_time_is_refused_even_before_the_sweep(at: AskDesk) -> None:
    made = at.ask(expires_at=at.desk.now + 60)
    at.desk.now += 60
    with refused(409, "request_expired") as caught:
        at.respond("ann", made["id"], ACCEPT, HASH)
    assert caught.value.data["state"] == "expired"
    assert at.get(made["id"])["state"] == "expired"
    assert at.get(made["id"])["endedAt"] == made["expiresAt"]
    assert at.needs("ann") == at.listed() == []
    assert at.listed(state="ended") == [made["id"]]
    assert at.expire() == 1
    assert at.expire() == 0
    assert at.events()[1:] == [("request.updated", made["id"], "expired")]
    with refused(409, "request_expired"):
        at.respond("ann", made["id"], ACCEPT, HASH)
    assert at.get(made["id"])["answer"] is None


def test_an_answer_in_the_last_moment_counts(at: AskDesk) -> None:
    made = at.ask(expires_at=at.desk.now + 60)
    at.desk.now += 59.9
    assert at.expire() == 0
    assert at.respond("ann", made["id"], ACCEPT, HASH)["state"] == "answered"
    at.desk.now += 60
    assert at.expire() == 0
    assert at.get(made["id"])["state"] == "answered"


def test_only_a_person_answers(at: AskDesk) -> None:
    made = at.ask(kind="input")
    at.desk.agent("carol")
    _, job = at.job()
    for who in ("bob", "carol", job):
        with refused(403, "person_needed"):
            at.respond(who, made["id"], {"text": "yes"})
    untouched(at, made)


def test_a_person_outside_the_channel_does_not_learn_that_there_is_one(at: AskDesk) -> None:
    made = at.ask()
    other = at.desk.do(channels.create, at.who("owner"), "other")["id"]
    at.desk.agent("dan", channel=other, person=True)
    for wanted in (made["id"], "req_guess", ""):
        with refused(404, "not_found"):
            at.respond("dan", wanted, ACCEPT, HASH)
        with refused(404, "not_found"):
            at.get(wanted, "dan")
        with refused(404, "not_found"):
            at.close("dan", wanted, "superseded")
    assert at.listed("dan") == at.needs("dan") == []
    with refused(404, "not_found"):
        at.listed("dan", channel=at.desk.lab)
    untouched(at, made)


def test_an_id_guessed_from_another_workspace_is_not_there(at: AskDesk) -> None:
    made = at.ask()
    space = at.desk.store.write_now(members.make_workspace, "other", at=at.desk.now)
    code = at.desk.store.write_now(enrolment._make, space, role="owner", channel=None, created_by=None, at=at.desk.now)
    at.desk.join(code.code, "zoe")
    there = at.desk.do(channels.create, at.who("zoe"), "lab")["id"]
    assert there != at.desk.lab
    with refused(404, "not_found"):
        at.get(made["id"], "zoe")
    with refused(404, "not_found"):
        at.respond("zoe", made["id"], ACCEPT, HASH)
    with refused(404, "not_found"):
        at.ask("zoe", kind="input", channel=at.desk.lab)
    for approvers in ((at.who("zoe").id,), (at.ann, at.who("zoe").id)):
        with refused(422, "invalid_value"):
            at.ask(approvers=approvers)
    assert at.listed("zoe") == at.needs("zoe") == []
    untouched(at, made)


def test_who_left_the_channel_after_the_page_was_read_answers_nothing(at: AskDesk) -> None:
    made = at.ask()
    ann = at.who("ann")
    at.desk.do(channels.leave, ann, at.desk.lab)
    with refused(404, "not_found"):
        at.respond(ann, made["id"], ACCEPT, HASH)
    untouched(at, made)


def test_only_approvers_answer_where_they_are_named(at: AskDesk) -> None:
    made = at.ask(approvers=(at.ann,))
    with refused(403, "not_approver"):
        at.respond("owner", made["id"], ACCEPT, HASH)
    untouched(at, made)
    assert at.needs("owner") == []
    assert at.needs("ann") == [made["id"]]
    assert at.needs("bob") == []
    assert at.respond("ann", made["id"], ACCEPT, HASH)["state"] == "answered"


def test_what_is_for_others_does_not_crowd_out_what_needs_a_person(at: AskDesk) -> None:
    mine = at.ask(approvers=(at.ann,))
    at.desk.now += 1
    owner = at.who("owner").id
    others = [at.ask(kind="input", approvers=(owner,))["id"] for _ in range(5)]
    assert [each["id"] for each in at.desk.store.read_now(asks.needs, at.who("ann"), at.desk.now, limit=2)] == [
        mine["id"]
    ]
    assert set(at.needs("owner")) == set(others)
    for who, count in (("ann", 1), ("owner", 5), ("bob", 0)):
        assert at.desk.store.read_now(asks.count_needs, at.who(who), at.desk.now) == count
    at.desk.now += DAY
    assert at.desk.store.read_now(asks.count_needs, at.who("owner"), at.desk.now) == 0


def test_what_needs_a_person_comes_the_oldest_first_and_no_author_crowds_the_others_out(at: AskDesk) -> None:
    made = []
    for _ in range(ask_wishes.OPEN_MOST):
        at.desk.now += 0.01
        made.append(at.ask(kind="input")["id"])
    at.desk.now += 1
    made.append(at.ask("ann", kind="input")["id"])
    assert at.needs("owner") == made


def test_approvers_are_people_and_one_of_them_is_here(at: AskDesk) -> None:
    owner = at.who("owner")
    elsewhere = at.desk.do(channels.create, owner, "other")["id"]
    dan = at.desk.agent("dan", channel=elsewhere, person=True)
    for approvers in ((), (at.bob,), ("m_guess",), (at.ann, at.bob), (dan,)):
        with refused(422, "invalid_value"):
            at.ask(approvers=approvers)
    assert at.ask(approvers=(dan, at.ann))["approvers"] == [dan, at.ann]


@pytest.mark.parametrize("shown", ["0" * 64, "", HASH.upper(), HASH[:-1]])
def test_an_answer_for_another_action_is_refused(at: AskDesk, shown: str) -> None:
    made = at.ask()
    with refused(409, "action_changed"):
        at.respond("ann", made["id"], ACCEPT, shown)
    untouched(at, made)


def test_an_answer_that_does_not_say_which_action_was_shown_is_refused(at: AskDesk) -> None:
    made = at.ask()
    with refused(422, "invalid_value"):
        at.respond("ann", made["id"], ACCEPT)
    with refused(409, "action_changed"):
        at.respond("ann", at.ask(kind="input")["id"], {"text": "yes"}, HASH)
    untouched(at, made)


def test_an_answer_to_an_older_request_never_hits_a_newer_one(at: AskDesk) -> None:
    old = at.ask(operation="ask:1")
    at.close("bob", old["id"], "superseded")
    new = at.ask(operation="ask:2")
    assert new["actionHash"] == old["actionHash"]
    with refused(409, "request_superseded"):
        at.respond("ann", old["id"], ACCEPT, HASH)
    untouched(at, new)


@pytest.mark.parametrize(
    "answer",
    [None, [], "accept", {}, {"decision": "always"}, {"decision": True}, {**ACCEPT, "forSession": True}],
)
def test_an_answer_that_does_not_fit_is_refused(at: AskDesk, answer: Any) -> None:
    made = at.ask()
    with refused(422, "invalid_value") as caught:
        at.respond("ann", made["id"], answer, HASH)
    assert caught.value.data["field"].startswith("answer")
    untouched(at, made)


def test_each_kind_is_answered_in_its_own_way(at: AskDesk) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "default": 3}, "t": {"type": "string"}}}
    options = ({"id": "a", "label": "A"}, {"id": "b", "label": "B"})
    for kind, more, answer, stored in (
        ("input", {}, {"text": "main"}, {"text": "main"}),
        ("choice", {"options": options}, {"choice": "b"}, {"choice": "b"}),
        ("form", {"schema": schema}, {"t": "x"}, {"n": 3, "t": "x"}),
    ):
        made = at.ask(kind=kind, **more)
        with refused(422, "invalid_value"):
            at.respond("ann", made["id"], {"no": "such"})
        first = at.respond("ann", made["id"], answer)
        assert first["answer"] == stored
        assert at.respond("ann", made["id"], answer) == first


@pytest.mark.parametrize(
    "wrong",
    [
        {"title": " \n "},
        {"kind": "approval", "action": None},
        {"kind": "choice"},
        {"kind": "form"},
        {"kind": "form", "schema": {"type": "object", "properties": {"a": {"type": "string", "format": "uri"}}}},
        {"kind": "input", "options": ({"id": "a", "label": "A"},)},
        {"kind": "choice", "options": ({"id": "a", "label": "A"}, {"id": "a", "label": "B"})},
        {"kind": "input", "schema": {"type": "object", "properties": {"a": {"type": "string"}}}},
        {"message": "msg_guess"},
        {"expires_at": 1_000_000.0 + 31 * DAY},
    ],
)
def test_a_request_whose_parts_do_not_fit_is_refused(at: AskDesk, wrong: dict[str, Any]) -> None:
    with refused(422, "invalid_value"):
        at.ask(**wrong)
    assert at.events() == []


def test_a_request_that_has_expired_already_is_refused(at: AskDesk) -> None:
    with refused(422, "expired"):
        at.ask(expires_at=at.desk.now)


def test_an_operation_id_asks_once_for_ever(at: AskDesk) -> None:
    made = at.ask(operation="op", expires_at=at.desk.now + 60)
    at.desk.now += 3600
    at.expire()
    again = at.ask(operation="op", expires_at=at.desk.now + 90)
    assert again["id"] == made["id"]
    assert again["state"] == "expired"
    assert again["expiresAt"] == made["expiresAt"]
    with refused(409, "operation_reused"):
        at.ask(operation="op", action={**ACTION, "cwd": "/"})
    assert at.ask("ann", operation="op", kind="input")["id"] != made["id"]
    assert len(at.listed(state="all")) == 2


def test_a_closed_request_is_never_opened_again(at: AskDesk) -> None:
    made = at.ask()
    closed = at.close("bob", made["id"], "superseded", "the turn is over")
    assert closed["reason"] == "the turn is over"
    assert at.close("bob", made["id"], "superseded", "again") == closed
    for state in ("expired", "applied"):
        with refused(409, "request_superseded"):
            at.close("bob", made["id"], state)
    at.desk.now += 2 * DAY
    assert at.expire() == 0
    assert at.get(made["id"]) == closed
    assert [state for _, _, state in at.events()] == ["open", "superseded"]


def test_what_was_read_before_another_answered_moves_nothing(at: AskDesk) -> None:
    made = at.ask()
    read = at.desk.store.read_now(ask_views.row_of, made["id"])
    assert read is not None
    first = at.respond("ann", made["id"], DECLINE, HASH)
    for state in ("expired", "superseded", "answered"):
        moved = at.desk.do(ask_views.move, read, state, answer=ACCEPT, by=at.who("owner").id)
        assert moved is None
    assert at.get(made["id"]) == first
    assert len(at.events()) == 2


def test_applied_follows_an_answer_and_nothing_else_does(at: AskDesk) -> None:
    made = at.ask()
    with refused(409, "request_open"):
        at.close("bob", made["id"], "applied")
    at.respond("ann", made["id"], ACCEPT, HASH)
    for state in ("expired", "superseded"):
        with refused(409, "request_answered"):
            at.close("bob", made["id"], state)
    assert at.close("bob", made["id"], "applied")["answer"] == ACCEPT
    assert at.close("bob", made["id"], "applied")["answeredBy"]["id"] == at.ann


def test_only_its_author_closes_a_request(at: AskDesk) -> None:
    made = at.ask()
    at.desk.agent("carol")
    for who in ("carol", "ann", "owner"):
        with refused(403, "forbidden"):
            at.close(who, made["id"], "superseded")
    untouched(at, made)


def test_lists_are_newest_first_and_bounded(at: AskDesk) -> None:
    other = at.desk.do(channels.create, at.who("owner"), "other")["id"]
    made = []
    for n in range(6):
        at.desk.now += 1
        by, channel = ("owner", other) if n % 2 else ("bob", at.desk.lab)
        made.append(at.ask(by, kind="input", channel=channel)["id"])
    assert at.listed() == made[::-1]
    assert at.listed(limit=2) == made[:3:-1]
    assert at.listed(channel=other) == [made[5], made[3], made[1]]
    assert at.listed("bob") == [made[4], made[2], made[0]]
    at.respond("owner", made[4], {"text": "x"})
    assert at.listed(state="ended") == [made[4]]
    assert at.listed(state="all") == made[::-1]


def test_one_author_cannot_fill_the_list_for_ever(at: AskDesk) -> None:
    made = [at.ask(kind="input", expires_at=at.desk.now + 60) for _ in range(ask_wishes.OPEN_MOST)]
    with refused(409, "too_many_open"):
        at.ask(kind="input")
    assert at.ask("ann", kind="input")["state"] == "open"
    at.respond("ann", made[0]["id"], {"text": "x"})
    assert at.ask(kind="input")["state"] == "open"
    at.desk.now += 60
    at.expire()
    at.expire()
    assert at.ask(kind="input")["state"] == "open"


def test_an_approval_is_kept_in_full_and_its_event_says_that_it_is_not_all(at: AskDesk) -> None:
    patch = {"type": "patch", "diff": "+\u202ex\x1b[2J\n" * 60_000}
    made = at.ask(action=patch)
    assert at.get(made["id"])["action"] == patch
    (event,) = at.desk.events("request.created")
    assert event["request"]["partial"] is True
    assert event["request"]["action"] is None
    assert event["request"]["actionHash"] == made["actionHash"]
    small = at.ask()
    assert at.desk.events("request.created")[1]["request"] == small
    listed = at.desk.store.read_now(asks.list_asks, at.who("owner"), at=at.desk.now)
    assert {each["id"]: each for each in listed} == {small["id"]: small, made["id"]: event["request"]}
    needed = at.desk.store.read_now(asks.needs, at.who("owner"), at.desk.now)
    assert {each["id"]: each for each in needed} == {small["id"]: small, made["id"]: made}


def test_all_that_one_author_has_open_is_bounded_in_size_too(at: AskDesk) -> None:
    large = {"type": "patch", "diff": "x" * 1_000_000}
    made = [at.ask(action=large)["id"] for _ in range(5)]
    with refused(409, "too_many_open"):
        at.ask(kind="input")
    at.close("bob", made[0], "superseded")
    assert at.ask(kind="input")["state"] == "open"
