"""Names that mean people, reasons of failed requests, and what a job may take back."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support_hubstore import Desk, desk

from relay_receiver.hub import enrolment, members, messages
from relay_receiver.hub.auth import digest
from relay_receiver.hub.errors import Refusal


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Desk]:
    with desk(tmp_path) as made:
        made.agent("bob")
        yield made


@pytest.mark.parametrize("name", ["human", "Human", "HUMAN"])
def test_no_agent_is_called_what_means_people_and_its_code_stays_good(hub: Desk, name: str) -> None:
    code = hub.do(enrolment.invite, hub.actor("owner"), hub.lab, person=False).code
    with pytest.raises(Refusal, match="means people") as refusal:
        hub.join(code, name)
    assert (refusal.value.status, refusal.value.data["field"]) == (422, "name")
    assert hub.join(code, "humane")
    secret = digest(f"identity-of-{'bob':>32}")
    with pytest.raises(Refusal, match="means people"):
        hub.do(members.change_identity, secret, rev=1, changes={"name": name})
    assert hub.agent(name, person=True)


def test_a_failed_request_says_why(hub: Desk) -> None:
    def failed(**more: Any) -> Any:
        asked = hub.ask(hub.actor("bob").id)
        hub.post(
            "bob", "\n Failed: it went wrong\n\nlong text", kind="result", reply_to=asked["id"], to="human", **more
        )
        return hub.delivery(asked["id"])["reason"]

    assert failed(outcome="failed", reason="exit 3") == "exit 3"
    assert failed(outcome="failed") == "Failed: it went wrong"
    assert failed(outcome="cancelled", reason="by Ann") == "by Ann"
    assert failed(outcome="completed") is None
    assert hub.events("message.stage")[0]["reason"] == "exit 3"


def test_a_job_takes_back_what_it_posted_itself_and_nothing_else_of_its_agent(hub: Desk) -> None:
    eve, bob = hub.agent("eve"), hub.actor("bob").id
    fence = hub.take("bob")["fence"]
    asked = hub.ask(bob)
    _, token = hub.begin("bob", asked["id"], hub.ref("j1", fence=fence, claim="a"))
    earlier = hub.ask(eve, by=hub.bearer(token))
    hub.finish("bob", hub.ref("j1", fence=fence, claim="a"))
    hub.now += 1
    again = hub.ask(bob, reply_to=asked["id"])
    _, token = hub.begin("bob", again["id"], hub.ref("j2", fence=fence, claim="b"))
    job = hub.bearer(token)
    own = hub.ask(eve, by=job)
    apart = hub.ask(eve, by="bob")
    for other in (earlier, apart):
        with pytest.raises(Refusal, match="posted itself"):
            hub.do(messages.withdraw, job, other["id"])
    with pytest.raises(Refusal, match="Only its author"):
        hub.do(messages.withdraw, job, asked["id"])
    assert hub.do(messages.withdraw, job, own["id"]) is True
