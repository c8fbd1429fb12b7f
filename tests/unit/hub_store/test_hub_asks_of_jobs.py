"""What a job asks of people belongs to its run: seen by it alone, shown on its request, over when the run is."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support_asks import ACCEPT, ACTION, HASH, AskDesk, ask_desk, refused

from relay_receiver.hub import ask_wishes, runs

FORM = {"type": "object", "properties": {"version": {"type": "string"}}}


@pytest.fixture
def at(tmp_path: Path) -> Iterator[AskDesk]:
    with ask_desk(tmp_path) as found:
        yield found


def test_the_hub_sets_what_a_jobs_request_is_for(at: AskDesk) -> None:
    message, job = at.job()
    made = at.ask(job, kind="input", job="forged", message=at.desk.post("owner")["id"])
    assert (made["job"], made["message"]) == ("j1", message)
    assert made["author"] == {"id": at.bob, "name": "bob", "kind": "agent"}


@pytest.mark.parametrize("wrong", [{"kind": "approval"}, {"kind": "input", "action": ACTION}])
def test_a_job_asks_for_no_approval(at: AskDesk, wrong: dict[str, Any]) -> None:
    _, job = at.job()
    with refused(403, "inside_a_job"):
        at.ask(job, **wrong)


def test_a_job_cannot_take_its_receivers_operation_id(at: AskDesk) -> None:
    _, job = at.job()
    with refused(403, "inside_a_job"):
        at.ask(job, kind="input", operation="ask:j1.1:7")
    assert at.ask(operation="ask:j1.1:7", job="j1")["state"] == "open"


def test_a_job_sees_and_closes_its_own_requests_only(at: AskDesk) -> None:
    approval, foreign = at.ask(), at.ask("ann", kind="input")
    _, job = at.job()
    mine = at.ask(job, kind="input", operation="mine")
    assert at.listed(job, state="all") == [mine["id"]]
    assert at.get(mine["id"], job) == mine
    for other in (approval, foreign):
        with refused(404, "not_found"):
            at.get(other["id"], job)
        with refused(404, "not_found"):
            at.close(job, other["id"], "superseded")
    assert at.needs(job) == []
    assert at.close(job, mine["id"], "superseded")["state"] == "superseded"


@pytest.mark.parametrize("said", [{"kind": "approval"}, {"kind": "form", "schema": FORM, "operation": "ask:j1.1:8"}])
def test_a_job_closes_nothing_that_its_receiver_asks(at: AskDesk, said: dict[str, Any]) -> None:
    _, job = at.job()
    asked = at.ask(job="j1", **said)
    with refused(403, "inside_a_job"):
        at.close(job, asked["id"], "superseded")
    assert at.close("bob", asked["id"], "superseded")["state"] == "superseded"


def test_a_later_job_does_not_get_the_request_of_an_earlier_one(at: AskDesk) -> None:
    _, job = at.job()
    made = at.ask(job, kind="input", operation="mine")
    assert at.ask(job, kind="input", operation="mine") == made
    at.desk.finish("bob", at.desk.ref("j1", fence=at.fence))
    _, later = at.job("j2")
    with refused(409, "operation_reused"):
        at.ask(later, kind="input", operation="mine")
    with refused(404, "not_found"):
        at.get(made["id"], later)


def test_the_requester_sees_on_whom_a_job_waits_and_that_it_goes_on(at: AskDesk) -> None:
    message, job = at.job()
    first = at.ask(job, kind="input", title="Which branch?", approvers=(at.ann,))
    assert at.desk.delivery(message)["stage"] == "waiting"
    assert at.desk.delivery(message)["detail"] == "on ann: Which branch?"
    second = at.ask(job, kind="input", title="And which tag?")
    assert at.desk.delivery(message)["detail"] == "on anybody in the channel: And which tag?"
    at.respond("ann", first["id"], {"text": "main"})
    assert at.desk.delivery(message)["stage"] == "waiting"
    at.respond("owner", second["id"], {"text": "v2"})
    assert at.desk.delivery(message)["stage"] == "running"
    assert at.get(second["id"], job)["answer"] == {"text": "v2"}


def test_what_the_receiver_says_of_the_run_does_not_hide_that_it_waits(at: AskDesk) -> None:
    message, job = at.job()
    made = at.ask(job, kind="input")
    ref = at.desk.ref("j1", fence=at.fence, claim="claim-j1")
    at.desk.do(runs.tell_stage, at.who("bob"), ref, state="running", detail=None)
    assert at.desk.stage(message) == "waiting"
    at.desk.now += 86_400
    at.expire()
    assert at.get(made["id"], job)["state"] == "expired"
    assert at.desk.stage(message) == "running"


@pytest.mark.parametrize("end", ["finish", "result", "settle", "freed"])
def test_when_a_run_ends_its_open_requests_end_with_it(at: AskDesk, end: str) -> None:
    message, job = at.job()
    ref = at.desk.ref("j1", fence=at.fence, claim="claim-j1")
    answered = at.ask(job, kind="input")
    at.respond("ann", answered["id"], {"text": "x"})
    mine, approval, other = at.ask(job, kind="input"), at.ask(job="j1"), at.ask(job="elsewhere")
    if end == "finish":
        at.desk.finish("bob", ref)
    elif end == "freed":
        at.desk.finish("bob", ref, "not-accepted")
    elif end == "result":
        at.desk.answer("bob", message, run=ref)
    else:
        said = {"agent": at.bob, "request": "j1", "channel": None, "outcome": "abandoned", "reason": "gone"}
        at.desk.do(runs.settle, at.who("owner"), **said)
    states = [at.get(each["id"])["state"] for each in (answered, mine, approval, other)]
    assert states == ["answered", "superseded", "superseded", "open"]
    with refused(409, "request_superseded"):
        at.respond("ann", approval["id"], ACCEPT, HASH)
    told = [data["request"]["id"] for data in at.desk.events("request.updated")]
    assert set(told[1:]) == {mine["id"], approval["id"]}
    assert len(told) == 3
    assert at.desk.stage(message) == {"finish": "answered", "result": "answered", "settle": "failed"}.get(
        end, "received"
    )


def test_a_run_that_is_over_asks_nothing_more(at: AskDesk) -> None:
    _, job = at.job()
    at.desk.finish("bob", at.desk.ref("j1", fence=at.fence))
    with refused(401, "unauthorized"):
        at.ask(job, kind="input")
    with refused(409, "run_finished"):
        at.ask(job="j1")


def test_a_job_has_a_few_open_requests_at_the_most(at: AskDesk) -> None:
    _, job = at.job()
    for _ in range(ask_wishes.OPEN_MOST_OF_A_JOB):
        at.ask(job, kind="input")
    with refused(409, "too_many_open"):
        at.ask(job, kind="input")
    assert at.ask(job="j1")["state"] == "open"
