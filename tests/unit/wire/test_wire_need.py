"""What needs a person, made of requests and of what receivers report."""

from typing import Any

from relay_receiver.wire.need import TITLES, of_receiver, of_requests

LAB = {"id": "c1", "name": "lab"}


def request(name: str, **more: Any) -> dict[str, Any]:
    said = {
        "id": name,
        "channel": "c1",
        "kind": "approval",
        "title": f"Run {name}",
        "approvers": None,
        "author": {"id": "b1", "name": "bob", "kind": "agent"},
        "state": "open",
        "createdAt": "2030-01-01T00:00:00.000Z",
        "expiresAt": "2030-01-02T00:00:00.000Z",
    }
    return {**said, **more}


def test_open_requests_that_this_person_may_answer_those_that_expire_first_at_the_front() -> None:
    found = of_requests(
        [
            request("later", expiresAt="2030-01-03T00:00:00.000Z"),
            request("mine", approvers=["p1", "p2"]),
            request("anothers", approvers=["p2"]),
            request("over", state="answered"),
        ],
        "p1",
        {"c1": LAB},
    )
    assert [each.id for each in found] == ["request:mine", "request:later"]
    [first, _] = found
    assert (first.what, first.channel, first.next) == ("approval", LAB, "relay requests show mine")
    assert first.line() == "approval of bob in lab: Run mine (until 2030-01-02T00:00:00.000Z)"
    assert first.to_json()["expiresAt"] == "2030-01-02T00:00:00.000Z"
    assert first.to_json()["request"]["id"] == "mine"


def member(state: str = "ready", **report: Any) -> dict[str, Any]:
    return {"id": "b1", "name": "bob", "receiver": {"state": state, "detail": None, "report": report}}


def ids(found: dict[str, Any]) -> list[str]:
    return [each.id for each in of_receiver(found, LAB)]


def test_a_receiver_that_needs_nothing_or_tells_nothing() -> None:
    assert ids(member()) == []
    assert ids(member(needs=None)) == []
    assert ids(member(needs=["nonsense", 7])) == []
    assert of_receiver({"id": "b1", "name": "bob", "receiver": None}, LAB) == []
    assert of_receiver({"id": "b1", "name": "bob", "receiver": {"state": "ready"}}, LAB) == []


def test_an_unknown_job_is_one_need_for_each_attempt_also_where_its_machine_is_gone() -> None:
    first = member(
        "offline", needs=[{"what": "unknown", "job": "j1"}], unknown={"job": "j1", "attempt": 1, "message": "m"}
    )
    second = member(needs=[{"what": "unknown", "job": "j1"}], unknown={"job": "j1", "attempt": 2})
    assert ids(first) == ["unknown:b1:c1:j1.1"]
    assert ids(second) == ["unknown:b1:c1:j1.2"]
    [need] = of_receiver(first, LAB)
    assert (need.message, need.job, need.title) == ("m", "j1", TITLES["unknown"])


def test_each_pause_is_a_need_of_its_own_and_none_where_nothing_runs() -> None:
    def paused(pause: str, state: str = "paused") -> dict[str, Any]:
        return member(state, needs=[{"what": "paused"}], chain={"count": 3, "limit": 3, "paused": True, "pause": pause})

    assert ids(paused("a")) != ids(paused("b"))
    assert ids(paused("a")) == ids(paused("a"))
    assert ids(paused("a", "offline")) == []


def test_faults_are_told_apart_by_what_they_say() -> None:
    def fault(why: str) -> dict[str, Any]:
        return member(needs=[{"what": "fault", "why": why, "next": "relay receiver logs"}])

    assert ids(fault("no disk")) != ids(fault("no program"))
    assert of_receiver(fault("no disk"), LAB)[0].title == "no disk"


def test_what_a_receiver_waits_for_is_shown_once_as_the_request_itself() -> None:
    assert ids(member(needs=[{"what": "approval", "next": "relay requests show a1"}])) == []
