from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support_hubstore import Desk, desk

from relay_receiver.hub import runs
from relay_receiver.hub.auth import digest, find
from relay_receiver.hub.errors import Refusal


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Desk]:
    with desk(tmp_path) as made:
        made.agent("bob")
        yield made


@pytest.fixture
def fence(hub: Desk) -> str:
    return str(hub.take("bob")["fence"])


@pytest.fixture
def asked(hub: Desk) -> str:
    return str(hub.ask(hub.actor("bob").id)["id"])


def _refused(call: Any, *args: Any, **kwargs: Any) -> tuple[int, str]:
    with pytest.raises(Refusal) as refusal:
        call(*args, **kwargs)
    return refusal.value.status, refusal.value.code


def _settle(hub: Desk, outcome: str, *, by: str = "owner", request: str = "job") -> dict[str, Any]:
    said = {"agent": hub.actor("bob").id, "request": request, "channel": None, "outcome": outcome, "reason": "gone"}
    return dict(hub.do(runs.settle, hub.actor(by), **said))


def test_the_same_claim_is_answered_the_same_and_earlier_credentials_stay_valid(
    hub: Desk, fence: str, asked: str
) -> None:
    ref = hub.ref("job", fence=fence, claim="c")
    first, one = hub.begin("bob", asked, ref)
    second, two = hub.begin("bob", asked, ref)
    assert first == second
    assert hub.stage(asked) == "starting"
    assert hub.bearer(one).job == hub.bearer(two).job
    hub.finish("bob", ref, "failed")
    assert [hub.store.read_now(find, digest(token)) for token in (one, two)] == [None, None]


def test_of_begins_that_race_one_claim_wins(hub: Desk, fence: str, asked: str) -> None:
    def one(n: int) -> str:
        try:
            hub.begin("bob", asked, hub.ref("job", fence=fence, claim=f"c{n}"))
        except Refusal as refusal:
            return refusal.code
        return "open"

    with ThreadPoolExecutor(16) as pool:
        told = list(pool.map(one, range(16)))
    assert sorted(told) == ["open"] + ["run_unresolved"] * 15


def test_a_finished_message_is_never_begun_again_by_any_claim_or_name(hub: Desk, fence: str, asked: str) -> None:
    ref = hub.ref("job", fence=fence, claim="c")
    hub.begin("bob", asked, ref)
    hub.finish("bob", ref, outcome="failed")
    for again in (ref, hub.ref("job", fence=fence, claim="d"), hub.ref("other", fence=fence, claim="e")):
        assert _refused(hub.begin, "bob", asked, again) == (409, "run_finished")
    assert hub.finish("bob", ref, "completed")["outcome"] == "failed"


def test_not_accepted_frees_the_message_for_a_new_claim_only(hub: Desk, fence: str, asked: str) -> None:
    ref = hub.ref("job", fence=fence, claim="c")
    hub.begin("bob", asked, ref)
    hub.finish("bob", ref, "not-accepted")
    hub.finish("bob", ref, "not-accepted")
    assert hub.stage(asked) == "received"
    assert _refused(hub.begin, "bob", asked, ref) == (409, "claim_freed")
    assert hub.begin("bob", asked, hub.ref("job", fence=fence, claim="d"))[0]["claim"] == "d"
    assert _refused(hub.finish, "bob", ref, "not-accepted") == (404, "unknown_run")
    assert hub.take("bob")["run"]["claim"] == "d"


def test_a_credential_does_not_come_back_with_the_next_run_of_its_message(hub: Desk, fence: str, asked: str) -> None:
    ref = hub.ref("job", fence=fence, claim="c")
    _, old = hub.begin("bob", asked, ref)
    hub.finish("bob", ref, "not-accepted")
    _, new = hub.begin("bob", asked, hub.ref("job", fence=fence, claim="d"))
    assert hub.store.read_now(find, digest(old)) is None
    assert hub.bearer(new).job is not None


def test_one_run_is_open_in_a_channel(hub: Desk, fence: str, asked: str) -> None:
    other = hub.ask(hub.actor("bob").id)["id"]
    ref = hub.ref("job", fence=fence, claim="c")
    hub.begin("bob", asked, ref)
    assert _refused(hub.begin, "bob", other, hub.ref("job2", fence=fence, claim="d")) == (409, "run_unresolved")
    assert _refused(hub.begin, "bob", other, hub.ref("job", fence=fence, claim="c")) == (409, "operation_reused")
    hub.finish("bob", ref)
    hub.begin("bob", other, hub.ref("job2", fence=fence, claim="d"))


def test_without_the_lease_or_with_an_old_fence_nothing_begins(hub: Desk, fence: str, asked: str) -> None:
    for wrong in (hub.ref("job", holder="other", fence=fence), hub.ref("job", fence=int(fence) + 1)):
        assert _refused(hub.begin, "bob", asked, wrong) == (409, "fenced")
    ref = hub.ref("job", fence=fence, claim="c")
    hub.begin("bob", asked, ref)
    hub.store.live.clock = lambda: 1e12
    assert hub.take("bob", holder="new")["run"]["holderId"] == "h"
    assert _refused(hub.begin, "bob", asked, ref) == (409, "fenced")
    hub.answer("bob", asked, run=ref)
    assert hub.stage(asked) == "answered"


def test_finishing_needs_the_holder_and_fence_of_the_begin(hub: Desk, fence: str, asked: str) -> None:
    ref = hub.ref("job", fence=fence, claim="c")
    hub.begin("bob", asked, ref)
    for wrong in (hub.ref("job", holder="x", fence=fence), hub.ref("job", fence=1)):
        assert _refused(hub.finish, "bob", wrong) == (409, "fenced")
        assert _refused(hub.answer, "bob", asked, run=wrong) == (409, "fenced")
    assert _refused(hub.finish, "bob", hub.ref("never", fence=fence)) == (404, "unknown_run")


def test_messages_that_are_not_there_are_not_begun(hub: Desk, fence: str) -> None:
    assert _refused(hub.begin, "bob", "msg_none", hub.ref("job", fence=fence, claim="c")) == (404, "not_found")


def test_a_client_that_names_only_its_request(hub: Desk) -> None:
    hub.take("bob", scope="")
    ref = runs.Ref(scope="", holder="h", request="job")
    told, _ = hub.begin("bob", None, ref)
    assert hub.begin("bob", None, ref)[0] == told
    assert hub.take("bob", scope="")["requestId"] == "job"
    hub.finish("bob", ref, "not-accepted")
    hub.begin("bob", None, ref)
    hub.finish("bob", ref)
    hub.finish("bob", ref)
    assert _refused(hub.begin, "bob", None, ref) == (409, "run_finished")


def test_stages_are_shown_and_late_ones_are_no_error(hub: Desk, fence: str, asked: str) -> None:
    ref = hub.ref("job", fence=fence, claim="c")
    hub.begin("bob", asked, ref)

    def stage(state: str, *, of: runs.Ref = ref, detail: str | None = None) -> dict[str, Any]:
        return dict(hub.do(runs.tell_stage, hub.actor("bob"), of, state=state, detail=detail))

    stage("running", of=hub.ref("job", fence=fence, claim="old"))
    assert hub.stage(asked) == "starting"
    for state, detail in (("running", None), ("running", None), ("waiting", "on a person"), ("running", None)):
        stage(state, detail=detail)
    told = [(each["stage"], each["detail"]) for each in hub.events("message.stage")]
    assert told == [("starting", None), ("running", None), ("waiting", "on a person"), ("running", None)]
    hub.finish("bob", ref, "failed", reason="it broke")
    assert stage("running")["open"] is False
    assert stage("running", of=hub.ref("never"))["open"] is False
    assert (hub.stage(asked), hub.delivery(asked)["reason"]) == ("failed", "it broke")


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        ("completed", "answered"),
        ("failed", "failed"),
        ("cancelled", "cancelled"),
        ("quiet", "quiet"),
        ("unknown", "unknown"),
    ],
)
def test_a_run_that_ends_without_a_result_ends_its_request(
    hub: Desk, fence: str, asked: str, state: str, shown: str
) -> None:
    ref = hub.ref("job", fence=fence, claim="c")
    hub.begin("bob", asked, ref)
    hub.finish("bob", ref, state)
    assert hub.stage(asked) == shown


def test_a_person_settles_and_the_machine_that_comes_back_learns_it(hub: Desk, fence: str, asked: str) -> None:
    ref = hub.ref("job", fence=fence, claim="c")
    hub.begin("bob", asked, ref)
    with pytest.raises(Refusal) as refusal:
        _settle(hub, "abandoned", request="never")
    assert refusal.value.status == 404
    _settle(hub, "abandoned", request=asked)
    _settle(hub, "abandoned")
    assert hub.stage(asked) == "failed"
    told = hub.events("message.stage")[-1]
    assert (told["settledBy"], told["reason"]) == (hub.actor("owner").id, "gone")
    assert _refused(hub.finish, "bob", ref) == (409, "run_settled")
    assert _refused(hub.answer, "bob", asked, run=ref) == (409, "run_settled")
    assert _refused(hub.post, "bob", notice="job") == (409, "run_settled")
    assert _refused(hub.begin, "bob", asked, ref) == (409, "run_finished")
    late = hub.do(runs.tell_stage, hub.actor("bob"), ref, state="running", detail=None)
    assert late["settled"]["outcome"] == "abandoned"


def test_a_person_lets_it_run_again(hub: Desk, fence: str, asked: str) -> None:
    ref = hub.ref("job", fence=fence, claim="c")
    hub.begin("bob", asked, ref)
    _settle(hub, "not-accepted")
    assert _refused(hub.finish, "bob", ref) == (409, "run_settled")
    assert _refused(hub.answer, "bob", asked, run=ref) == (409, "run_settled")
    hub.begin("bob", asked, hub.ref("job", fence=fence, claim="d"))
    hub.answer("bob", asked, run=hub.ref("job", fence=fence))
    assert hub.stage(asked) == "answered"
    assert _refused(_settle, hub, "abandoned") == (409, "run_finished")


def test_settling_the_run_of_an_ordinary_message_is_told_too(hub: Desk, fence: str) -> None:
    said = hub.post("owner", "@bob")
    hub.begin("bob", said["id"], hub.ref("job", fence=fence, claim="c"))
    _settle(hub, "abandoned")
    [told] = hub.events("message.stage")
    assert (told["message"], told["settledBy"]) == (said["id"], hub.actor("owner").id)
    assert hub.take("bob")["run"] is None
