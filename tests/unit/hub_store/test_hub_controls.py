import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from support_hubstore import Desk, desk

from relay_receiver.hub import channels, controls, leases
from relay_receiver.hub.errors import Refusal
from relay_receiver.hub.prepared import Prepared

PAUSED = {"chain": {"count": 3, "limit": 3, "paused": True, "pause": "p1"}}


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Desk]:
    with desk(tmp_path) as made:
        made.agent("bob")
        made.take("bob", report=PAUSED)
        yield made


def _decide(hub: Desk, action: str = "resume", *, by: Any = "owner", operation: str = "op", **arguments: Any) -> Any:
    wish = controls.Wish(
        channel=hub.lab,
        agent=hub.actor("bob").id,
        action=action,
        arguments=arguments,
        operation=operation,
    )
    return hub.do(controls.create, hub.actor(by) if isinstance(by, str) else by, wish)


def _tell(hub: Desk, control: str, outcome: str = "done", *, by: str = "bob") -> Any:
    return hub.do(controls.tell, hub.actor(by), control, outcome=outcome, sentence="Agents' jobs go on.")


def _refused(hub: Desk, code: str, *given: Any, **more: Any) -> Refusal:
    with pytest.raises(Refusal) as refusal:
        _decide(hub, *given, **more)
    assert refusal.value.code == code
    return refusal.value


def _told(hub: Desk) -> list[tuple[str, Any]]:
    return [(each["control"]["action"], each["control"]["outcome"]) for each in hub.events("receiver.control")]


def test_a_decision_is_told_when_it_is_made_and_when_the_receiver_has_said_what_became_of_it(hub: Desk) -> None:
    made = _decide(hub)
    assert (made["by"]["name"], made["agentName"], made["outcome"]) == ("owner", "bob", None)
    assert made["arguments"] == {"pause": "p1"}
    for _ in range(2):
        assert _tell(hub, made["id"])["sentence"] == "Agents' jobs go on."
    assert _told(hub) == [("resume", None), ("resume", "done")]
    with pytest.raises(Refusal) as refusal:
        _tell(hub, made["id"], "refused")
    assert (refusal.value.status, refusal.value.code) == (409, "control_over")


def test_neither_agents_nor_jobs_decide(hub: Desk) -> None:
    ref = hub.ref("job", fence=hub.take("bob")["fence"], claim="c")
    _, token = hub.begin("bob", hub.ask(hub.actor("bob").id)["id"], ref)
    hub.agent("eve")
    for who in ("bob", "eve", hub.bearer(token)):
        _refused(hub, "person_needed", by=who)
    assert _told(hub) == []


def test_only_the_agent_that_it_is_about_tells_what_became_of_it(hub: Desk) -> None:
    made = _decide(hub)
    hub.agent("eve")
    ref = hub.ref("job", fence=hub.take("bob")["fence"], claim="c")
    _, token = hub.begin("bob", hub.ask(hub.actor("bob").id)["id"], ref)
    for who, status in ((hub.actor("eve"), 404), (hub.actor("owner"), 403), (hub.bearer(token), 403)):
        with pytest.raises(Refusal) as refusal:
            hub.do(controls.tell, who, made["id"], outcome="done", sentence="forged")
        assert refusal.value.status == status
    assert hub.store.read_now(controls.get, hub.actor("owner"), made["id"])["outcome"] is None


def test_whoever_is_not_in_the_channel_neither_decides_nor_sees(hub: Desk) -> None:
    other = hub.do(channels.create, hub.actor("owner"), "other")["id"]
    hub.agent("carl", channel=other, person=True)
    assert _refused(hub, "not_found", by="carl").status == 404
    made = _decide(hub)
    with pytest.raises(Refusal):
        hub.store.read_now(controls.get, hub.actor("carl"), made["id"])
    assert hub.store.read_now(controls.list_controls, hub.actor("carl")) == []
    wish = controls.Wish(channel=other, agent=hub.actor("bob").id, action="resume", arguments={}, operation="x")
    with pytest.raises(Refusal, match="no such agent"):
        hub.do(controls.create, hub.actor("owner"), wish)


def test_the_same_operation_id_decides_once_and_nothing_else(hub: Desk) -> None:
    made = _decide(hub)
    assert _decide(hub)["id"] == made["id"]
    _refused(hub, "operation_reused", "cancel", job="j", attempt=1)
    assert len(_told(hub)) == 1


def test_two_persons_at_once_make_one_decision(hub: Desk) -> None:
    hub.agent("carl", person=True)
    first = _decide(hub, "settle", job="j", attempt=1, verb="accept")
    late = _refused(hub, "decided", "settle", by="carl", operation="o2", job="j", attempt=1, verb="abandon")
    assert (late.data["control"]["id"], late.sentence.startswith("owner has decided")) == (first["id"], True)
    _decide(hub, "settle", by="carl", operation="o3", job="j", attempt=2, verb="abandon")
    _tell(hub, first["id"], "refused")
    _decide(hub, "settle", by="carl", operation="o4", job="j", attempt=1, verb="abandon")


def test_a_decision_says_which_attempt_and_which_pause_it_means(hub: Desk) -> None:
    assert _refused(hub, "invalid_value", "cancel", job="nowhere").status == 422
    ref = hub.ref("job", fence=hub.take("bob")["fence"], claim="c")
    hub.begin("bob", hub.ask(hub.actor("bob").id)["id"], ref)
    assert _decide(hub, "cancel", operation="o1", job="job")["arguments"] == {"job": "job", "attempt": 1}
    hub.store.live.leases.clear()
    hub.take("bob", report={"unknown": {"job": "job", "attempt": 4}, "chain": {"paused": False, "pause": None}})
    assert _decide(hub, "settle", operation="o2", job="job", verb="retry")["arguments"]["attempt"] == 4
    _refused(hub, "not_paused", operation="o3")
    assert _decide(hub, operation="o4", pause="p1")["arguments"] == {"pause": "p1"}


def test_an_agent_without_a_receiver_has_nothing_to_decide(hub: Desk) -> None:
    eve = hub.agent("eve")
    wish = controls.Wish(channel=hub.lab, agent=eve, action="resume", arguments={}, operation="x")
    with pytest.raises(Refusal) as refusal:
        hub.do(controls.create, hub.actor("owner"), wish)
    assert refusal.value.code == "no_receiver"


def test_settling_the_run_at_the_hub_ends_the_decisions_that_wait_about_its_job(hub: Desk) -> None:
    asked = hub.ask(hub.actor("bob").id)
    hub.begin("bob", asked["id"], hub.ref("job", fence=hub.take("bob")["fence"], claim="c"))
    waits = _decide(hub, "settle", job="job", verb="retry")
    other = _decide(hub, "settle", operation="o2", job="else", attempt=1, verb="retry")
    said = {"agent": hub.actor("bob").id, "request": asked["id"], "channel": None, "reason": None}
    hub.do(controls.settle_run, hub.actor("owner"), outcome="abandoned", **said)
    seen = {each["id"]: each for each in hub.store.read_now(controls.list_controls, hub.actor("owner"))}
    assert seen[waits["id"]]["outcome"] == "refused"
    assert "at the hub" in seen[waits["id"]]["sentence"]
    assert seen[other["id"]]["outcome"] is None
    _refused(hub, "run_settled", "settle", operation="o3", job="job", verb="accept")


def test_decisions_are_listed_newest_first(hub: Desk) -> None:
    first = _decide(hub, pause="a", operation="1")
    hub.now += 1
    second = _decide(hub, pause="b", operation="2")
    _tell(hub, first["id"])

    def ids(**wanted: Any) -> list[str]:
        found = hub.store.read_now(controls.list_controls, hub.actor("owner"), **wanted)
        return [each["id"] for each in found]

    assert ids() == ids(channel=hub.lab, agent=hub.actor("bob").id) == [second["id"], first["id"]]
    assert (ids(waiting=True), ids(limit=1), ids(agent="nobody")) == ([second["id"]], [second["id"]], [])


def test_a_restart_of_the_hub_keeps_what_was_decided(hub: Desk) -> None:
    made = _decide(hub)
    payload = hub.events("receiver.control")[0]["control"]
    assert payload == made
    assert json.loads(json.dumps(made)) == hub.store.read_now(controls.get, hub.actor("bob"), made["id"])


def test_every_query_about_decisions_and_receivers_uses_an_index(hub: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    said: dict[str, Any] = {}
    for conn in (hub.store._writer, hub.store._reader):
        event.listen(conn, "before_cursor_execute", lambda _c, _cu, words, given, *_: said.setdefault(words, given))
    real = Prepared.__call__

    def noting(self: Prepared, conn: Any, **values: Any) -> Any:
        answer = real(self, conn, **values)
        words, names, fixed = self._compiled[conn.dialect.name]
        said[words] = tuple(values.get(n, fixed[n]) for n in names)
        return answer

    monkeypatch.setattr(Prepared, "__call__", noting)
    made = _decide(hub)
    _tell(hub, made["id"])
    _decide(hub, "settle", operation="o2", job="j", attempt=1, verb="retry")
    store, owner, bob = hub.store, hub.actor("owner"), hub.actor("bob").id
    for wanted in ({}, {"waiting": True}, {"agent": bob}, {"agent": bob, "waiting": True}):
        store.read_now(controls.list_controls, owner, **wanted)
    store.read_now(leases.of_channel, store, hub.lab, person=True)
    store.read_now(leases.last_report, bob, hub.lab)
    scans, plans = [], ""
    with store._reader.begin():
        driver: Any = store._reader.connection.driver_connection
        for words, given in said.items():
            if words.lstrip().upper().startswith(("SELECT", "UPDATE")):
                plan = [row[3] for row in driver.execute(f"EXPLAIN QUERY PLAN {words}", given)]
                plans += "\n".join(plan)
                scans += [(step, words) for step in plan if step.startswith("SCAN") and "workspace" not in step]
    assert scans == []
    assert "ix_control_untold" in plans
    assert "ix_control_channel" in plans
