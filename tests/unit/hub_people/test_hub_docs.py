"""Documents at the hub's store: revisions, conflicts, and who may see and change them."""

import threading
from typing import Any

import pytest
from support_hubstore import Desk, Json

from relay_receiver.hub import channels, docs
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.errors import Refusal


def _make(hub: Desk, by: str = "owner", **more: Any) -> Json:
    said = {"channel": hub.lab, "title": "Plan", "content": "# One", **more}
    return dict(hub.do(docs.create, hub.actor(by), docs.Draft(**said)))


def _change(hub: Desk, by: str | Actor, wanted: str, rev: int, **more: Any) -> Json:
    actor = hub.actor(by) if isinstance(by, str) else by
    return dict(hub.do(docs.change, actor, wanted, docs.Change(rev=rev, **more)))


def _job(hub: Desk) -> Actor:
    """A job of bob in the lab."""
    bob = hub.agent("bob")
    fence = hub.take("bob")["fence"]
    _, token = hub.begin("bob", hub.ask(bob)["id"], hub.ref("job", fence=fence, claim="c"))
    return hub.bearer(token)


def _refused(call: Any, *args: Any, **more: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        call(*args, **more)
    return caught.value


def test_a_document_keeps_each_revision_and_who_made_it(hub: Desk) -> None:
    hub.agent("bob")
    made = _make(hub)
    assert (made["rev"], made["title"], made["content"], made["archived"]) == (1, "Plan", "# One", False)
    hub.now += 5
    changed = _change(hub, "bob", made["id"], 1, content="# Two")
    assert (changed["rev"], changed["content"], changed["title"]) == (2, "# Two", "Plan")
    assert (changed["createdBy"]["name"], changed["updatedBy"]["name"]) == ("owner", "bob")
    past = hub.store.read_now(docs.get, hub.actor("owner"), made["id"], 1)
    assert (past["rev"], past["content"], past["updatedBy"]["name"], past["latest"]) == (1, "# One", "owner", 2)
    listed = hub.store.read_now(docs.revisions, hub.actor("owner"), made["id"])
    assert [(each["rev"], each["by"]["name"], each["bytes"]) for each in listed["revisions"]] == [
        (2, "bob", 5),
        (1, "owner", 5),
    ]
    assert _refused(hub.store.read_now, docs.get, hub.actor("owner"), made["id"], 3).status == 404


def test_of_two_changes_one_wins_and_the_other_is_shown_what_it_is_now(hub: Desk) -> None:
    hub.agent("bob")
    made = _make(hub)
    told: list[Any] = []

    def one(by: str) -> None:
        try:
            told.append(_change(hub, by, made["id"], 1, content=f"by {by}"))
        except Refusal as refusal:
            told.append(refusal)

    both = [threading.Thread(target=one, args=(by,)) for by in ("owner", "bob")]
    for each in both:
        each.start()
    for each in both:
        each.join()
    (won,) = [each for each in told if isinstance(each, dict)]
    (lost,) = [each for each in told if isinstance(each, Refusal)]
    assert (lost.status, lost.code, lost.data["rev"]) == (409, "stale_rev", 2)
    assert lost.data["current"] == won == hub.store.read_now(docs.get, hub.actor("owner"), made["id"])
    assert won["updatedBy"]["name"] in lost.sentence


def test_a_change_that_is_there_already_is_no_conflict(hub: Desk) -> None:
    made = _make(hub)
    first = _change(hub, "owner", made["id"], 1, content="# Two")
    assert _change(hub, "owner", made["id"], 1, content="# Two") == first
    assert first["rev"] == 2
    assert len(hub.events("doc.updated")) == 2


def test_a_change_whose_answer_was_lost_is_no_conflict_though_others_came_after_it(hub: Desk) -> None:
    hub.agent("bob")
    made = _make(hub)
    _change(hub, "owner", made["id"], 1, content="mine")
    theirs = _change(hub, "bob", made["id"], 2, content="theirs")
    assert _change(hub, "owner", made["id"], 1, content="mine") == theirs
    for by, content in (("owner", "other"), ("bob", "mine")):
        assert _refused(_change, hub, by, made["id"], 1, content=content).code == "stale_rev"
    assert _refused(_change, hub, "owner", made["id"], 1, archived=True).code == "stale_rev"


def test_an_operation_id_makes_one_document(hub: Desk) -> None:
    made = _make(hub, operation="op")
    changed = _change(hub, "owner", made["id"], 1, content="# Two")
    assert _make(hub, operation="op") == changed
    refusal = _refused(_make, hub, operation="op", content="else")
    assert (refusal.status, refusal.code, refusal.data["doc"]) == (409, "operation_reused", made["id"])
    hub.agent("bob")
    assert _make(hub, "bob", operation="op")["id"] != made["id"]


def test_whoever_is_not_in_the_channel_finds_nothing(hub: Desk) -> None:
    made = _make(hub)
    other = hub.do(channels.create, hub.actor("owner"), "other")["id"]
    hub.agent("eve", channel=other)
    eve = hub.actor("eve")
    for call in (docs.get, docs.revisions):
        assert _refused(hub.store.read_now, call, eve, made["id"]).status == 404
    assert _refused(_change, hub, "eve", made["id"], 1, content="mine").status == 404
    assert _refused(_make, hub, "eve").status == 404
    assert _refused(hub.store.read_now, docs.list_docs, eve, hub.lab).status == 404
    assert hub.store.read_now(docs.list_docs, eve) == {"docs": [], "more": False}


def test_a_job_reads_its_channel_and_changes_nothing(hub: Desk) -> None:
    made = _make(hub)
    elsewhere = _make(hub, channel=hub.do(channels.create, hub.actor("owner"), "other")["id"])
    job = _job(hub)
    assert hub.store.read_now(docs.get, job, made["id"])["content"] == "# One"
    assert [each["id"] for each in hub.store.read_now(docs.list_docs, job)["docs"]] == [made["id"]]
    assert _refused(hub.store.read_now, docs.get, job, elsewhere["id"]).status == 404
    for refused in (
        _refused(_change, hub, job, made["id"], 1, content="mine"),
        _refused(hub.do, docs.create, job, docs.Draft(channel=hub.lab, title="T", content="")),
    ):
        assert (refused.status, refused.code) == (403, "inside_a_job")


def test_the_list_is_paged_by_last_change_and_hides_what_is_put_away(hub: Desk) -> None:
    made = [_make(hub, title=f"Doc {n}")["id"] for n in range(5)]
    _change(hub, "owner", made[0], 1, archived=True)
    hub.now += 1
    _change(hub, "owner", made[2], 1, content="newest")

    def page(**more: Any) -> Json:
        return dict(hub.store.read_now(docs.list_docs, hub.actor("owner"), hub.lab, **more))

    first = page(limit=3)
    assert first["docs"][0]["id"] == made[2]
    assert first["more"]
    second = page(limit=3, before=first["docs"][-1]["id"])
    assert not second["more"]
    assert {each["id"] for each in first["docs"] + second["docs"]} == set(made[1:])
    assert len(first["docs"] + second["docs"]) == 4
    assert all("content" not in each for each in first["docs"])
    assert [each["id"] for each in page(archived=True)["docs"]] == [made[0]]


def test_the_event_carries_no_content(hub: Desk) -> None:
    made = _make(hub)
    assert hub.events("doc.updated") == [{"doc": {"id": made["id"], "channel": hub.lab, "rev": 1, "title": "Plan"}}]
