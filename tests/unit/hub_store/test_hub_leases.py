import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support_hubstore import Desk, desk

from relay_receiver.hub import declarations, leases
from relay_receiver.hub.errors import Refusal
from relay_receiver.hub.live import Live
from relay_receiver.hub.store import Store


class Time:
    """Monotonic time that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
def hub(tmp_path: Path, clock: Time) -> Iterator[Desk]:
    with desk(tmp_path) as made:
        made.store.live = Live(clock=clock)
        made.agent("bob")
        yield made


def _release(hub: Desk, holder: str) -> bool:
    return asyncio.run(leases.release(hub.store, hub.actor("bob"), hub.lab, holder))


def _view(hub: Desk, store: Store | None = None) -> Any:
    used = store or hub.store
    return used.read_now(leases.view, used, hub.actor("bob").id, hub.lab)


def _commits(store: Store) -> int:
    """How often the file was written: what an idle hub must leave alone."""
    wal = store.path.with_name(store.path.name + "-wal")
    return wal.stat().st_size + wal.stat().st_mtime_ns


def test_one_holder_at_a_time_and_the_same_takes_it_at_once(hub: Desk, clock: Time) -> None:
    fence = hub.take("bob", "a")["fence"]
    assert hub.take("bob", "a")["fence"] == fence
    with pytest.raises(Refusal) as refusal:
        hub.take("bob", "b")
    assert (refusal.value.status, refusal.value.code) == (409, "lease_held")
    clock.now += 29
    hub.take("bob", "a")
    clock.now += 29
    with pytest.raises(Refusal):
        hub.take("bob", "b")
    clock.now += 1
    assert hub.take("bob", "b")["fence"] != fence
    with pytest.raises(Refusal):
        hub.take("bob", "a")


def test_a_renewal_in_which_nothing_is_new_writes_nothing(hub: Desk) -> None:
    hub.take("bob", "a")
    before = _commits(hub.store)
    for _ in range(5):
        hub.take("bob", "a")
    assert _commits(hub.store) == before
    assert len(hub.events("receiver.updated")) == 1


def test_a_changed_state_is_told_once(hub: Desk) -> None:
    for state in ("ready", "busy", "busy", "ready"):
        hub.take("bob", "a", state=state)
    assert [each["state"] for each in hub.events("receiver.updated")] == ["ready", "busy", "ready"]


def test_a_released_lease_is_free_and_comes_back_to_its_holder_with_its_fence(hub: Desk) -> None:
    fence = hub.take("bob", "a")["fence"]
    assert [_release(hub, "b"), _release(hub, "a"), _release(hub, "a")] == [False, True, False]
    assert _view(hub) is None
    assert hub.take("bob", "a")["fence"] == fence
    _release(hub, "a")
    assert hub.take("bob", "b")["fence"] != fence


def test_an_open_run_is_shown_whatever_becomes_of_the_lease(hub: Desk, clock: Time) -> None:
    asked = hub.ask(hub.actor("bob").id)
    fence = hub.take("bob", "a")["fence"]
    hub.begin("bob", asked["id"], hub.ref("job", holder="a", fence=fence, claim="c"))
    clock.now += 31
    assert (_view(hub)["requestId"], _view(hub)["state"]) == ("job", "offline")
    _release(hub, "a")
    assert (_view(hub)["requestId"], _view(hub)["holderId"]) == ("job", None)
    told = hub.take("bob", "b")
    assert (told["requestId"], told["run"]["claim"], told["run"]["holderId"]) == ("job", "c", "a")


def test_after_a_start_of_the_hub_a_stored_lease_gets_its_time_again(hub: Desk, tmp_path: Path) -> None:
    fence = hub.take("bob", "a")["fence"]
    again = Store.open(tmp_path)
    now = Time()
    again.live = Live(clock=now)
    other = Desk.__new__(Desk)
    other.__dict__.update(hub.__dict__, store=again)
    now.now += 29
    with pytest.raises(Refusal):
        other.take("bob", "b")
    assert other.take("bob", "a")["fence"] == fence
    again.close()


def test_a_lease_that_runs_out_is_told_once(hub: Desk, clock: Time) -> None:
    hub.take("bob", "a")
    clock.now += 31
    for _ in range(2):
        asyncio.run(leases.tell_lapsed(hub.store))
    assert [each["state"] for each in hub.events("receiver.updated")] == ["ready", "offline"]
    assert leases.state_of(hub.store, hub.actor("bob").id, hub.lab) is None


def test_people_and_jobs_are_no_receivers(hub: Desk) -> None:
    with pytest.raises(Refusal, match="Only an agent"):
        leases.need_agent(hub.actor("owner"))
    asked = hub.ask(hub.actor("bob").id)
    ref = hub.ref("job", fence=hub.take("bob")["fence"], claim="c")
    _, token = hub.begin("bob", asked["id"], ref)
    with pytest.raises(Refusal, match="A job"):
        leases.need_agent(hub.bearer(token))


def test_64_holders_at_once_make_one(hub: Desk, clock: Time) -> None:
    actor = hub.actor("bob")
    clock.now += 1000

    async def one(n: int) -> str:
        wish = leases.Wish(
            scope=hub.lab, holder=f"h{n}", subscription=None, session=None, runtime="", state="ready", detail=None
        )
        try:
            await leases.take(hub.store, actor, wish)
        except Refusal as refusal:
            return refusal.code
        return "taken"

    async def main() -> list[str]:
        return await asyncio.gather(*map(one, range(64)))

    assert sorted(asyncio.run(main())) == ["lease_held"] * 63 + ["taken"]


def test_declarations_have_a_rev_and_a_time_that_pings_renew_without_a_write(hub: Desk, clock: Time) -> None:
    actor, live = hub.actor("bob"), hub.store.live

    def put(rev: int | None, mode: str = "available") -> Any:
        return hub.do(declarations.put, actor, hub.lab, live, rev=rev, mode=mode, text="here")

    def ping(rev: int | None) -> Any:
        return hub.store.read_now(declarations.ping, actor, hub.lab, live, rev=rev)

    assert ping(None)["renewed"] is False
    assert put(0)["rev"] == 1
    assert put(0)["rev"] == 1
    assert put(1, "paused")["rev"] == 2
    with pytest.raises(Refusal) as refusal:
        put(1)
    assert (refusal.value.code, refusal.value.data["rev"]) == ("stale_rev", 2)
    before = _commits(hub.store)
    clock.now += 80
    assert [ping(1)["renewed"], ping(2)["renewed"]] == [False, True]
    clock.now += 80
    assert live.declaration_left((actor.id, hub.lab)) == 10
    assert _commits(hub.store) == before
    assert [each["status"]["rev"] for each in hub.events("status.updated")] == [1, 2]


def test_a_renewal_that_names_no_subscription_keeps_the_one_it_had(hub: Desk) -> None:
    def subscription() -> Any:
        seen = asyncio.run(hub.store.read(leases.view, hub.store, hub.actor("bob").id, hub.lab))
        assert seen is not None
        return seen["subscription"]

    mine = hub.subscribe("bob")
    hub.take("bob", "a", subscription=mine)
    hub.take("bob", "a")
    assert subscription() == mine
    hub.store.live = Live(clock=hub.store.live.clock)
    hub.take("bob", "a")
    assert subscription() == mine
    hub.take("bob", "a", state="busy")
    assert subscription() == mine
    assert _release(hub, "a")
    hub.take("bob", "b")
    assert subscription() is None
