"""What a running hub asks its database is found by an index, however much is stored."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from support_hubstore import Desk, desk

from relay_receiver.hub import (
    attachments,
    channels,
    declarations,
    events,
    leases,
    members,
    message_views,
    messages,
    receipts,
    runs,
)
from relay_receiver.hub.prepared import Prepared

SMALL = frozenset({"workspace"})
"""Tables that may be read whole."""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Desk]:
    with desk(tmp_path) as made:
        yield made


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
    ref = hub.ref("job", fence=fence, claim="c")
    _, token = hub.begin("bob", asked["id"], ref)
    hub.post(hub.bearer(token), "@bob", reply_to=asked["id"])
    hub.do(runs.tell_stage, hub.actor("bob"), ref, state="running", detail=None)
    hub.do(messages.withdraw, hub.actor("owner"), taken_back["id"])
    hub.take("bob", subscription=subscription)
    hub.answer("bob", asked["id"], run=ref)
    hub.do(declarations.put, hub.actor("bob"), hub.lab, hub.store.live, rev=0, mode="paused", text="")
    _looks(hub)


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
            scans += [(step, words) for step in plan if step.startswith("SCAN") and step.split()[1] not in SMALL]
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
    for index in ("ix_run_open", "ix_receipt_open", "ix_receipt_expiring"):
        assert index in used, index
