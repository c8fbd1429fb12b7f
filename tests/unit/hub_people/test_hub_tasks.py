"""Task lists at the hub's store."""

from typing import Any

import pytest
from support_hubstore import Desk, Json

from relay_receiver.hub import channels, docs, tasks
from relay_receiver.hub.errors import Refusal


def _make(hub: Desk, by: str = "owner", **more: Any) -> Json:
    return dict(hub.do(tasks.create, hub.actor(by), tasks.Draft(**{"channel": hub.lab, "title": "Mend it", **more})))


def _set(hub: Desk, by: str, wanted: str, rev: int, **values: str | None) -> Json:
    return dict(hub.do(tasks.change, hub.actor(by), wanted, tasks.Change(rev=rev, values=values)))


def _list(hub: Desk, by: str = "owner", **more: Any) -> list[str]:
    return [each["id"] for each in hub.store.read_now(tasks.list_tasks, hub.actor(by), **more)["tasks"]]


def _refused(call: Any, *args: Any, **more: Any) -> tuple[int, str]:
    with pytest.raises(Refusal) as caught:
        call(*args, **more)
    return caught.value.status, str(caught.value.data.get("field") or caught.value.code)


def test_a_task_refers_to_members_messages_and_documents_of_its_channel_only(hub: Desk) -> None:
    bob = hub.agent("bob")
    said = hub.post("owner")["id"]
    plan = hub.do(docs.create, hub.actor("owner"), docs.Draft(channel=hub.lab, title="Plan", content=""))["id"]
    made = _make(hub, assignee=bob, message=said, doc=plan)
    assert (made["assignee"]["name"], made["message"], made["doc"]) == ("bob", said, plan)
    assert _set(hub, "owner", made["id"], 1, assignee=None, doc=None)["assignee"] is None
    other = hub.do(channels.create, hub.actor("owner"), "other")["id"]
    for field, value in (("assignee", bob), ("message", said), ("doc", plan), ("doc", "d_none")):
        assert _refused(_make, hub, channel=other, **{field: value}) == (422, field)
        theirs = _make(hub, channel=other)["id"]
        assert _refused(_set, hub, "owner", theirs, 1, **{field: value}) == (422, field)


def test_of_two_changes_the_second_is_told_what_the_task_is_now(hub: Desk) -> None:
    hub.agent("bob")
    made = _make(hub)
    won = _set(hub, "bob", made["id"], 1, state="doing")
    with pytest.raises(Refusal) as caught:
        _set(hub, "owner", made["id"], 1, state="done")
    assert (caught.value.status, caught.value.code) == (409, "stale_rev")
    assert caught.value.data["current"] == won
    assert _set(hub, "owner", made["id"], 1, state="doing") == won
    assert _refused(_set, hub, "owner", made["id"], 3, state="done") == (422, "rev")
    assert _refused(_set, hub, "owner", made["id"], 2) == (422, "state")


def test_lists_show_what_is_to_be_done_newest_first(hub: Desk) -> None:
    bob = hub.agent("bob")
    made = []
    for n, state in enumerate(tasks.TASK_STATES):
        hub.now += 1
        made.append(_make(hub, title=f"Task {n}", state=state, assignee=bob if n else None)["id"])
    assert _list(hub) == [made[1], made[0]]
    assert _list(hub, state="all") == made[::-1]
    assert _list(hub, state="done") == [made[2]]
    assert _list(hub, state="all", assignee=bob) == made[:0:-1]
    assert _list(hub, state="all", limit=2) == made[:1:-1]
    assert _list(hub, state="all", limit=2, before=made[2]) == made[1::-1]


def test_an_operation_id_makes_one_task(hub: Desk) -> None:
    made = _make(hub, operation="op")
    changed = _set(hub, "owner", made["id"], 1, state="doing")
    assert _make(hub, operation="op") == changed
    assert _refused(_make, hub, operation="op", title="Else") == (409, "operation_reused")


def test_outside_the_channel_there_are_none_and_jobs_only_read(hub: Desk) -> None:
    made = _make(hub)
    other = hub.do(channels.create, hub.actor("owner"), "other")["id"]
    hub.agent("eve", channel=other)
    assert _refused(hub.store.read_now, tasks.get, hub.actor("eve"), made["id"]) == (404, "not_found")
    assert _refused(_set, hub, "eve", made["id"], 1, state="done") == (404, "not_found")
    assert _refused(_make, hub, "eve") == (404, "not_found")
    assert _list(hub, "eve", state="all") == []
    bob = hub.agent("bob")
    fence = hub.take("bob")["fence"]
    _, token = hub.begin("bob", hub.ask(bob)["id"], hub.ref("job", fence=fence, claim="c"))
    job = hub.bearer(token)
    assert hub.store.read_now(tasks.get, job, made["id"])["title"] == "Mend it"
    wish = tasks.Change(rev=1, values={"state": "done"})
    assert _refused(hub.do, tasks.change, job, made["id"], wish) == (403, "inside_a_job")
    assert _refused(hub.do, tasks.create, job, tasks.Draft(channel=hub.lab, title="T")) == (403, "inside_a_job")
    assert hub.events("task.updated") == [
        {
            "task": {
                "id": made["id"],
                "channel": hub.lab,
                "rev": 1,
                "title": "Mend it",
                "state": "open",
                "assignee": None,
            }
        }
    ]
