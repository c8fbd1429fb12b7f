from typing import Any

import pytest
from support_hubstore import Desk

from relay_receiver.hub import channels, message_views, messages, receipts
from relay_receiver.hub.errors import Refusal


def _refused(call: Any, *args: Any, **kwargs: Any) -> tuple[int, str]:
    with pytest.raises(Refusal) as refusal:
        call(*args, **kwargs)
    return refusal.value.status, refusal.value.code


def test_the_same_operation_gives_the_first_answer_for_ever(hub: Desk) -> None:
    bob = hub.agent("bob")
    first = hub.ask(bob, operation="op", expires_at=hub.now + 60)
    assert hub.ask(bob, operation="op", expires_at=hub.now + 999) == first
    hub.now += 3600
    assert hub.ask(bob, operation="op", expires_at=hub.now - 1800) == first
    assert len(hub.events("message.created")) == 1


@pytest.mark.parametrize(
    "other",
    [{"content": "else"}, {"kind": "message", "to": None}, {"mentions": ("x",)}, {"reply_to": "x"}, {"to": "human"}],
)
def test_the_same_operation_with_other_content_is_refused(hub: Desk, other: dict[str, Any]) -> None:
    bob = hub.agent("bob")
    said = {"content": "do", "kind": "request", "to": bob, "operation": "op"}
    hub.post("owner", **said)
    assert _refused(hub.post, "owner", **{**said, **other}) == (409, "operation_reused")


def test_operation_ids_are_each_authors_own(hub: Desk) -> None:
    hub.agent("bob")
    assert hub.post("owner", "a", operation="op")["id"] != hub.post("bob", "a", operation="op")["id"]


def test_a_repeated_result_is_answered_after_its_run_was_closed_by_it(hub: Desk) -> None:
    bob = hub.agent("bob")
    asked = hub.ask(bob)
    fence = hub.take("bob")["fence"]
    ref = hub.ref("job", fence=fence, claim="c")
    hub.begin("bob", asked["id"], ref)
    first = hub.answer("bob", asked["id"], operation="receiver:job", run=hub.ref("job", fence=fence))
    assert hub.answer("bob", asked["id"], operation="receiver:job", run=hub.ref("job", fence=fence)) == first
    assert hub.stage(asked["id"]) == "answered"
    assert _refused(hub.answer, "bob", asked["id"], run=hub.ref("job", fence=fence)) == (409, "run_finished")


def test_the_hub_sets_the_chain(hub: Desk) -> None:
    bob = hub.agent("bob")
    person, agent = hub.post("owner"), hub.post("bob")
    assert person["chain"] == {"root": person["id"], "hop": 0}
    assert agent["chain"] == {"root": agent["id"], "hop": 1}
    reply = hub.post("owner", reply_to=agent["id"])
    assert reply["chain"] == {"root": agent["id"], "hop": 2}
    asked = hub.ask(bob)
    fence = hub.take("bob")["fence"]
    _, token = hub.begin("bob", asked["id"], hub.ref("job", fence=fence, claim="c"))
    by_job = hub.post(hub.bearer(token), reply_to=agent["id"])
    assert by_job["chain"] == {"root": asked["id"], "hop": 1}
    result = hub.answer("bob", asked["id"], run=hub.ref("job", fence=fence))
    assert result["chain"] == {"root": asked["id"], "hop": 1}


def test_mentions_are_parsed_in_messages_and_never_reach_author_people_or_whom_is_answered(hub: Desk) -> None:
    bob, carol = hub.agent("bob"), hub.agent("carol")
    hub.agent("pat", person=True)
    said = hub.post("bob", "@BOB @carol @pat @owner `@carol`")
    assert said["mentions"] == [carol]
    assert hub.post("carol", "@bob and @carol", reply_to=said["id"])["mentions"] == []
    assert hub.post("owner", "@bob", kind="request", to=carol)["mentions"] == []
    assert hub.post("owner", "nobody named", mentions=(bob, bob))["mentions"] == [bob]
    assert _refused(hub.post, "owner", mentions=("m_nobody",)) == (422, "invalid_value")


def test_only_members_of_the_channel_are_mentioned_or_asked(hub: Desk) -> None:
    other = hub.do(channels.create, hub.actor("owner"), "other")["id"]
    outsider = hub.agent("eve", channel=other)
    assert hub.post("owner", "@eve")["mentions"] == []
    assert _refused(hub.ask, outsider) == (422, "invalid_value")
    assert _refused(hub.post, "eve") == (404, "not_found")
    assert _refused(hub.post, "eve", channel=other, reply_to=hub.post("owner")["id"]) == (422, "invalid_value")


def test_human_means_the_author_of_what_is_answered(hub: Desk) -> None:
    hub.agent("bob")
    owner = hub.actor("owner").id
    asked = hub.post("owner")
    assert hub.post("bob", to="human", reply_to=asked["id"], kind="result")["to"] == owner
    assert _refused(hub.post, "bob", to="human") == (422, "invalid_value")
    assert asked["authorId"] == "human"
    assert asked["author"]["id"] == owner


def test_a_request_needs_someone_else_and_a_time_to_come(hub: Desk) -> None:
    bob = hub.agent("bob")
    assert _refused(hub.post, "owner", kind="request") == (422, "invalid_value")
    assert _refused(hub.ask, bob, expires_at=hub.now) == (422, "expired")
    assert _refused(hub.ask, bob, by="bob") == (422, "invalid_value")
    assert hub.ask(bob)["expiresAt"] is not None


@pytest.mark.parametrize(
    ("outcome", "stage"),
    [
        ("completed", "answered"),
        (None, "answered"),
        ("failed", "failed"),
        ("quiet", "quiet"),
        ("cancelled", "cancelled"),
    ],
)
def test_a_result_sets_the_stage_with_or_without_a_run(hub: Desk, outcome: str | None, stage: str) -> None:
    bob = hub.agent("bob")
    fence = hub.take("bob")["fence"]
    for n, with_run in enumerate((False, True)):
        asked = hub.ask(bob)
        ref = hub.ref(f"job{n}", fence=fence, claim="c")
        if with_run:
            hub.begin("bob", asked["id"], ref)
        hub.answer("bob", asked["id"], outcome=outcome, run=ref if with_run else None)
        assert hub.stage(asked["id"]) == stage


def test_the_first_end_stands_and_only_the_one_asked_sets_it(hub: Desk) -> None:
    bob, _ = hub.agent("bob"), hub.agent("carol")
    asked = hub.ask(bob)
    hub.answer("carol", asked["id"])
    assert hub.stage(asked["id"]) == "stored"
    hub.answer("bob", asked["id"], outcome="failed")
    hub.answer("bob", asked["id"], outcome="completed")
    assert hub.stage(asked["id"]) == "failed"
    assert [each["stage"] for each in hub.events("message.stage")] == ["failed"]


def test_a_notice_makes_the_outcome_unknown_until_it_is_known(hub: Desk) -> None:
    bob = hub.agent("bob")
    asked = hub.ask(bob)
    ref = hub.ref("job", fence=hub.take("bob")["fence"], claim="c")
    assert _refused(hub.post, "bob", notice="job") == (404, "unknown_run")
    hub.begin("bob", asked["id"], ref)
    told = hub.post("bob", "@bob I cannot tell", notice="job", reply_to=asked["id"])
    assert told["notice"] == {"requestId": "job"}
    assert told["mentions"] == []
    assert hub.stage(asked["id"]) == "unknown"
    assert hub.begin("bob", asked["id"], ref)[0]["stage"] == "unknown"
    hub.answer("bob", asked["id"], run=ref)
    assert hub.stage(asked["id"]) == "answered"
    assert _refused(hub.post, "bob", notice="job") == (409, "run_finished")


def test_withdrawal_before_during_and_after_a_run(hub: Desk) -> None:
    bob = hub.agent("bob")
    ref = hub.ref("job", fence=hub.take("bob")["fence"], claim="c")
    queued, running = hub.ask(bob), hub.ask(bob)
    owner = hub.actor("owner")
    assert hub.do(messages.withdraw, owner, queued["id"]) is True
    assert hub.do(messages.withdraw, owner, queued["id"]) is True
    assert hub.stage(queued["id"]) == "withdrawn"
    assert _refused(hub.begin, "bob", queued["id"], hub.ref("other", fence=ref.fence, claim="d")) == (409, "withdrawn")
    hub.begin("bob", running["id"], ref)
    assert hub.do(messages.withdraw, owner, running["id"]) is False
    assert hub.do(messages.withdraw, owner, running["id"]) is False
    [cancel] = hub.events("message.cancel")
    assert cancel["message"] == running["id"]
    assert hub.take("bob")["run"]["cancelRequested"] is True
    hub.answer("bob", running["id"], outcome="cancelled", run=ref)
    assert _refused(hub.do, messages.withdraw, owner, running["id"]) == (409, "ended")
    assert _refused(hub.do, messages.withdraw, hub.actor("bob"), running["id"]) == (403, "forbidden")


def test_a_withdrawn_request_that_its_receiver_gives_back_is_never_run(hub: Desk) -> None:
    bob = hub.agent("bob")
    ref = hub.ref("job", fence=hub.take("bob")["fence"], claim="c")
    asked = hub.ask(bob)
    hub.begin("bob", asked["id"], ref)
    hub.do(messages.withdraw, hub.actor("owner"), asked["id"])
    hub.finish("bob", ref, "not-accepted")
    assert hub.stage(asked["id"]) == "withdrawn"
    assert _refused(hub.begin, "bob", asked["id"], hub.ref("job", fence=ref.fence, claim="d")) == (409, "withdrawn")


def test_expiry_by_the_hubs_clock_needs_no_receiver_and_leaves_open_runs_alone(hub: Desk) -> None:
    bob = hub.agent("bob")
    ref = hub.ref("job", fence=hub.take("bob")["fence"], claim="c")
    lone, held, late = (hub.ask(bob, expires_at=hub.now + 10) for _ in range(3))
    hub.begin("bob", held["id"], ref)
    hub.now += 10
    assert hub.delivery(lone["id"])["stage"] == "expired"
    assert _refused(hub.begin, "bob", late["id"], hub.ref("late", fence=ref.fence, claim="d")) == (409, "expired")
    assert hub.store.read_now(receipts.any_overdue, hub.now)
    assert hub.store.write_now(receipts.expire, hub.now) == 2
    assert not hub.store.read_now(receipts.any_overdue, hub.now)
    assert {each["message"] for each in hub.events("message.stage") if each["stage"] == "expired"} == {
        lone["id"],
        late["id"],
    }
    assert hub.begin("bob", held["id"], ref)[0]["state"] == "open"
    hub.answer("bob", held["id"], run=ref)
    assert hub.stage(held["id"]) == "answered"
    hub.answer("bob", lone["id"])
    assert hub.stage(lone["id"]) == "expired"


def test_received_is_proven_by_the_receivers_own_subscription_with_its_place_in_line(hub: Desk) -> None:
    bob = hub.agent("bob")
    by_hand, receivers = hub.subscribe("bob"), hub.subscribe("bob")
    first, second, third = (hub.ask(bob) for _ in range(3))
    hub.take("bob", subscription=receivers)
    hub.acknowledge("bob", by_hand, third["event"])
    assert hub.stage(first["id"]) == "stored"
    hub.acknowledge("bob", receivers, second["event"])
    assert [hub.stage(each["id"]) for each in (first, second, third)] == ["received", "received", "stored"]
    assert [hub.delivery(each["id"])["position"] for each in (first, second, third)] == [0, 1, 2]
    assert len(hub.events("message.stage")) == 2
    hub.answer("bob", first["id"])
    assert hub.delivery(second["id"])["position"] == 0


def test_history_goes_both_ways_and_its_cursor_is_where_a_stream_goes_on(hub: Desk) -> None:
    said = [hub.post("owner", str(n)) for n in range(7)]

    def page(**wanted: Any) -> Any:
        named = {"after": None, "before": None, "limit": 3, **wanted}
        return hub.store.read_now(message_views.history, hub.workspace, hub.lab, **named)

    latest = page()
    assert [each["content"] for each in latest["messages"]] == ["4", "5", "6"]
    assert latest["more"]
    older = page(before=said[4]["event"])
    assert [each["content"] for each in older["messages"]] == ["1", "2", "3"]
    forwards = page(after=said[1]["event"])
    assert [each["content"] for each in forwards["messages"]] == ["2", "3", "4"]
    assert forwards["cursor"].startswith(f"{said[4]['event']}.")
    last = page(after=said[4]["event"])
    assert [last["more"], last["cursor"]] == [False, latest["cursor"]]
    assert last["prunedThrough"] == 0


def test_a_job_posts_in_its_channel_and_chain_and_nothing_else(hub: Desk) -> None:
    bob = hub.agent("bob")
    other = hub.do(channels.create, hub.actor("owner"), "other")["id"]
    asked = hub.ask(bob)
    ref = hub.ref("job", fence=hub.take("bob")["fence"], claim="c")
    _, token = hub.begin("bob", asked["id"], ref)
    job = hub.bearer(token)
    assert (job.is_person, job.channels) == (False, frozenset({hub.lab}))
    mine = hub.post(job)
    for wrong in (
        {"kind": "result", "reply_to": asked["id"]},
        {"run": ref},
        {"notice": "job"},
        {"operation": "receiver:job"},
    ):
        assert _refused(hub.post, job, **wrong) == (403, "inside_a_job")
    assert _refused(hub.post, job, channel=other) == (404, "not_found")
    assert _refused(hub.do, messages.withdraw, job, hub.post("bob")["id"]) == (403, "forbidden")
    assert hub.do(messages.withdraw, job, mine["id"]) is True
    hub.answer("bob", asked["id"], run=ref)
    assert _refused(hub.post, job) == (401, "unauthorized")
