"""What a running hub asks its database is found by an index, however much is stored."""

import re
from typing import Any

import pytest
from sqlalchemy import event
from support_hubstore import Desk

from relay_receiver.hub import (
    asks,
    attachments,
    channels,
    declarations,
    delivery,
    docs,
    events,
    leases,
    members,
    message_views,
    messages,
    receipts,
    runs,
    search,
    search_index,
    tasks,
    wakes,
)
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.prepared import Prepared

SMALL = frozenset({"workspace"})
"""Tables that may be read whole."""
BY_WORDS = "SCAN search VIRTUAL TABLE INDEX"
"""How the plan calls a look into the index of words."""


@pytest.fixture
def said(hub: Desk, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Every statement that is run from here on."""
    found: list[tuple[str, Any]] = []
    for conn in (hub.store._writer, hub.store._reader):
        event.listen(conn, "before_cursor_execute", lambda _c, _cu, words, given, *_: found.append((words, given)))
    real = Prepared.__call__

    def noting(self: Prepared, conn: Any, **values: Any) -> Any:
        answer = real(self, conn, **values)
        words, names, fixed = self._compiled[conn.dialect.name]
        found.append((words, tuple(values.get(n, fixed[n]) for n in names)))
        return answer

    monkeypatch.setattr(Prepared, "__call__", noting)
    return found


def _whole_life(hub: Desk) -> None:
    bob = hub.agent("bob")
    subscription = hub.subscribe("bob")
    fence = hub.take("bob", subscription=subscription)["fence"]
    asked, taken_back = hub.ask(bob), hub.ask(bob)
    hub.acknowledge("bob", subscription, taken_back["event"])
    hub.delivery(asked["id"])
    _rehearse(hub, bob, asked["id"])
    ref = hub.ref("job", fence=fence, claim="c")
    _, token = hub.begin("bob", asked["id"], ref)
    hub.post(hub.bearer(token), "@bob", reply_to=asked["id"])
    hub.do(runs.tell_stage, hub.actor("bob"), ref, state="running", detail=None)
    hub.do(messages.withdraw, hub.actor("owner"), taken_back["id"])
    _ask_people(hub, hub.bearer(token))
    hub.take("bob", subscription=subscription)
    hub.answer("bob", asked["id"], run=ref)
    hub.do(declarations.put, hub.actor("bob"), hub.lab, hub.store.live, rev=0, mode="paused", text="")
    _writes_down(hub)
    _looks(hub)


def _ask_people(hub: Desk, job: Actor) -> None:
    owner = hub.actor("owner")
    made = []
    for n, kind in enumerate(("answered", "closed", "open")):
        wish = asks.Wish(
            channel=hub.lab,
            kind="input",
            title=kind,
            operation=f"op{n}",
            job="job",
            approvers=(owner.id,),
            expires_at=hub.now + 60,
        )
        made.append(hub.do(asks.create, hub.actor("bob") if kind == "open" else job, wish)["id"])
    hub.do(asks.respond, owner, made[0], {"text": "x"})
    hub.do(asks.close, job, made[1], "superseded", None)
    for state in asks.STATES:
        hub.store.read_now(asks.list_asks, owner, state=state, limit=5, at=hub.now)
        hub.store.read_now(asks.list_asks, job, state=state, limit=5, at=hub.now)
    hub.store.read_now(asks.needs, owner, hub.now)
    hub.store.read_now(asks.count_needs, owner, hub.now)
    hub.store.read_now(asks.any_overdue, hub.now)
    hub.store.read_now(delivery.of, hub.store, job.job.message if job.job else "", at=hub.now)


def _rehearse(hub: Desk, bob: str, asked: str) -> None:
    """What is asked to say whom a message would wake, and why a request waits: paused or not, by whomever."""
    store = hub.store
    for report in ({"wake": "all"}, {"chain": {"paused": True}}):
        hub.take("bob", report=report)
        store.read_now(delivery.of, store, asked, at=hub.now)
    draft = messages.Draft(channel=hub.lab, content="@bob", kind="message", operation="dry")
    store.read_now(wakes.of, store, hub.actor("owner"), draft)
    for paused, by_agent in ((False, False), (True, False), (True, True)):
        store.read_now(receipts.in_line, bob, hub.lab, event=1, paused=paused, by_agent=by_agent)


def _writes_down(hub: Desk) -> None:
    store, owner = hub.store, hub.actor("owner")
    plan = hub.do(docs.create, owner, docs.Draft(channel=hub.lab, title="Plan", content="one", operation="op"))["id"]
    hub.do(docs.change, owner, plan, docs.Change(rev=1, content="two"))
    hub.do(docs.change, owner, plan, docs.Change(rev=1, content="two", title="Plan"))
    todo = hub.do(tasks.create, owner, tasks.Draft(channel=hub.lab, title="Do", doc=plan, operation="op"))["id"]
    hub.do(tasks.change, owner, todo, tasks.Change(rev=1, values={"state": "doing"}))
    store.read_now(docs.list_docs, owner, before=plan)
    store.read_now(docs.revisions, owner, plan, before=2)
    for state in ("all", "active", "done"):
        store.read_now(tasks.list_tasks, owner, state=state, assignee=owner.id, before=todo)
    for _ in range(2):
        store.write_now(search_index.catch_up, hub.workspace)
        store.read_now(search_index.behind, hub.workspace)
        hub.do(docs.change, owner, plan, docs.Change(rev=2, content="three"))
    for query in ("two do", '"do"', "x"):
        store.read_now(search.find, owner, query)


def _looks(hub: Desk) -> None:
    store, owner, bob = hub.store, hub.actor("owner"), hub.actor("bob")
    for name in ("after", "before"):
        page = {"after": None, "before": None, name: 3}
        store.read_now(message_views.history, hub.workspace, hub.lab, limit=50, **page)
    store.read_now(message_views.latest, hub.lab, 50)
    store.read_now(events.rows_after, hub.workspace, 0, channels=[hub.lab], types=["message.created"], limit=50)
    store.read_now(events.rows_after, hub.workspace, 0, channels=[hub.lab], limit=50)
    store.read_now(events.prunable, hub.workspace, now=hub.now)
    store.read_now(receipts.any_overdue, hub.now)
    store.read_now(members.list_members, hub.lab)
    store.read_now(members.list_peers, owner)
    store.read_now(channels.list_channels, owner)
    store.read_now(leases.view, store, bob.id, hub.lab)
    store.read_now(declarations.of_channels, store.live, owner.channels)
    store.read_now(attachments._described, owner, "0" * 64)


def test_every_query_uses_an_index(hub: Desk, said: list[tuple[str, Any]]) -> None:
    _whole_life(hub)
    asked = {words: given for words, given in said if re.match(r"(?i)\s*(select|update|delete)", words)}
    assert len(asked) > 40
    scans = []
    with hub.store._reader.begin():
        driver: Any = hub.store._reader.connection.driver_connection
        for words, given in asked.items():
            plan = [row[3] for row in driver.execute(f"EXPLAIN QUERY PLAN {words}", given)]
            found = [step for step in plan if step.startswith("SCAN") and not step.startswith(BY_WORDS)]
            scans += [(step, words) for step in found if step.split()[1] not in SMALL]
    assert scans == []


def test_the_partial_indexes_are_found(hub: Desk, said: list[tuple[str, Any]]) -> None:
    _whole_life(hub)
    used = ""
    with hub.store._reader.begin():
        driver: Any = hub.store._reader.connection.driver_connection
        for words, given in {
            words: given for words, given in said if words.lstrip().upper().startswith("SELECT")
        }.items():
            used += "\n".join(row[3] for row in driver.execute(f"EXPLAIN QUERY PLAN {words}", given))
    for index in (
        "ix_run_open",
        "ix_receipt_open",
        "ix_receipt_expiring",
        "ix_ask_author",
        "ix_ask_channel",
        "ix_ask_expires_at",
        "ix_ask_message",
        "ix_ask_open",
        "ix_ask_run",
    ):
        assert index in used, index


def test_requests_are_read_in_the_order_of_an_index(hub: Desk, said: list[tuple[str, Any]]) -> None:
    _whole_life(hub)
    asked = {words: given for words, given in said if "FROM ask" in words and "ORDER BY" in words}
    assert len(asked) >= 6
    with hub.store._reader.begin():
        driver: Any = hub.store._reader.connection.driver_connection
        plans = {w: [row[3] for row in driver.execute(f"EXPLAIN QUERY PLAN {w}", g)] for w, g in asked.items()}
    sorted_by_hand = [words for words, plan in plans.items() if any("TEMP B-TREE" in step for step in plan)]
    assert [words for words in sorted_by_hand if "ask.message = ?" not in words] == []
    lists = [plan[0] for words, plan in plans.items() if "ask.channel = ? AND ask.state = 'open'" in words]
    assert lists
    assert all("ix_ask_open (channel=? AND state=?)" in first for first in lists), lists
