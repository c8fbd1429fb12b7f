"""P1: nothing is acknowledged that is not committed, whatever the journal does meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from support_parts import Bench, message

from relay_receiver.client.errors import Displaced, HubAway, Unauthorized
from relay_receiver.client.stream import Batch
from relay_receiver.journal import messages
from relay_receiver.journal.errors import JournalUnavailable
from relay_receiver.receiver import intake as intakes
from relay_receiver.receiver.intake import Intake
from relay_receiver.receiver.lease import Lease
from relay_receiver.receiver.pruning import Pruning
from relay_receiver.receiver.situation import LeaseState


class ScriptedFeed:
    """Yields what the script has, remembers acknowledgements, then waits."""

    script: list[Any]
    acknowledged: list[tuple[str, str]]
    opened: int
    on_acknowledge: Callable[[], None]

    def __init__(self, *_: object, **__: object) -> None:
        type(self).opened += 1

    async def items(self) -> AsyncIterator[Any]:
        while self.script:
            item = self.script.pop(0)
            if isinstance(item, Exception):
                raise item
            yield item
        await asyncio.Event().wait()

    async def acknowledge(self, subscription: str, cursor: str) -> None:
        type(self).on_acknowledge()
        self.acknowledged.append((subscription, cursor))

    async def close(self) -> None: ...


@pytest.fixture
def feed(monkeypatch: pytest.MonkeyPatch) -> type[ScriptedFeed]:
    ScriptedFeed.script, ScriptedFeed.acknowledged, ScriptedFeed.opened = [], [], 0
    ScriptedFeed.on_acknowledge = lambda: None
    monkeypatch.setattr(intakes, "Feed", ScriptedFeed)
    return ScriptedFeed


def event(number: int, **more: Any) -> dict[str, Any]:
    told = {
        "id": f"m{number}",
        "event": number,
        "channel": "c",
        "authorId": "human",
        "author": {"id": "p_1", "name": "p", "kind": "human"},
        "kind": "request",
        "content": "x",
        "to": "a_me",
        "createdAt": "2026-01-01T00:00:00.000Z",
        **more,
    }
    return {"id": number, "type": "message.created", "data": {"message": told}}


def batch(*events: dict[str, Any]) -> Batch:
    last = events[-1]["id"]
    return Batch(events=list(events), cursor=f"{last}.aa", watermark=last)


def stored(bench: Bench) -> set[str]:
    return set(bench.jobs())


async def at_work(bench: Bench, check: Callable[[], Any], *, unavailable: int = 0) -> None:
    """Run intake alone until `check` holds."""
    lease = Lease(bench.parts, state=lambda: "ready", reconcile=lambda _: None)
    lease.held.set()
    write, left = bench.journal.write, unavailable

    async def failing(fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        nonlocal left
        if left:
            left -= 1
            raise JournalUnavailable("The disk is full.", code="journal_unavailable")
        return await write(fn, *args, **kwargs)

    bench.journal.write = failing  # type: ignore[method-assign,assignment]
    task = asyncio.create_task(Intake(bench.parts, lease, Pruning(bench.parts), changed=lambda: None).run())
    try:
        await bench.until(check)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_the_acknowledgement_comes_after_the_commit(tmp_path: Path, feed: type[ScriptedFeed]) -> None:
    bench = Bench(tmp_path)
    seen: list[set[str]] = []
    feed.on_acknowledge = lambda: seen.append(stored(bench))
    feed.script = [batch(event(1), event(2))]
    asyncio.run(at_work(bench, lambda: feed.acknowledged))
    assert feed.acknowledged == [("s1", "2.aa")]
    assert seen == [{"m1", "m2"}]


def test_without_room_nothing_is_acknowledged_and_with_room_it_goes_on(
    tmp_path: Path, feed: type[ScriptedFeed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relay_receiver.receiver.backoff.Ladder.failed", lambda *_, **__: 0.001)
    bench = Bench(tmp_path)
    feed.on_acknowledge = lambda: None
    feed.script = [batch(event(1))]
    asyncio.run(at_work(bench, lambda: feed.acknowledged, unavailable=3))
    assert feed.acknowledged == [("s1", "1.aa")]
    assert stored(bench) == {"m1"}
    assert bench.parts.situation.last_error == "The disk is full."


def test_an_event_that_cannot_be_read_is_passed_over_and_the_rest_goes_on(
    tmp_path: Path, feed: type[ScriptedFeed]
) -> None:
    bench = Bench(tmp_path)
    broken = [
        {"id": 1, "type": "message.created"},
        {"id": 2, "type": "message.created", "data": None},
        {"id": 3, "type": "message.created", "data": {"message": {"id": 7}}},
        {"id": 4, "type": "something.new", "data": 5},
        {"id": 5, "type": "message.cancel", "data": []},
    ]
    feed.script = [batch(*broken, event(6))]
    asyncio.run(at_work(bench, lambda: feed.acknowledged))
    assert stored(bench) == {"m6"}


def test_a_withdrawn_message_leaves_the_queue(tmp_path: Path, feed: type[ScriptedFeed]) -> None:
    bench = Bench(tmp_path)
    feed.script = [batch(event(1), {"id": 2, "type": "message.cancel", "data": {"message": "m1"}})]
    asyncio.run(at_work(bench, lambda: feed.acknowledged))
    assert bench.jobs() == {"m1": "withdrawn"}


@pytest.mark.parametrize(
    "cut", [Displaced("newer", status=409, code="displaced"), Unauthorized("gone", status=401, code="unauthorized")]
)
def test_a_lost_feed_waits_for_the_lease_before_it_comes_back(
    tmp_path: Path, feed: type[ScriptedFeed], cut: Exception
) -> None:
    bench = Bench(tmp_path)
    feed.script = [batch(event(1)), cut, batch(event(2))]
    asyncio.run(at_work(bench, lambda: stored(bench) == {"m1"} and len(feed.script) == 1))
    assert feed.opened == 1


def test_without_the_lease_a_batch_is_neither_stored_nor_acknowledged(tmp_path: Path, feed: type[ScriptedFeed]) -> None:
    bench = Bench(tmp_path)
    bench.parts.situation.lease_until = 0.0
    feed.script = [batch(event(1))]

    async def scenario() -> None:
        lease = Lease(bench.parts, state=lambda: "ready", reconcile=lambda _: None)
        lease.held.set()
        task = asyncio.create_task(Intake(bench.parts, lease, Pruning(bench.parts), changed=lambda: None).run())
        await bench.until(lambda: not lease.held.is_set())
        assert stored(bench) == set()
        assert feed.acknowledged == []
        bench.parts.situation.lease = LeaseState.HELD
        lease.held.set()
        await bench.until(lambda: feed.acknowledged)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(scenario())


def test_a_failing_acknowledgement_is_made_good_by_the_next(tmp_path: Path, feed: type[ScriptedFeed]) -> None:
    bench = Bench(tmp_path)
    fails = [HubAway("cut", sent=True)]

    def fail_once() -> None:
        if fails:
            raise fails.pop()

    feed.on_acknowledge = fail_once
    feed.script = [batch(event(1)), batch(event(2))]
    asyncio.run(at_work(bench, lambda: feed.acknowledged))
    assert feed.acknowledged == [("s1", "2.aa")]


def test_a_full_journal_takes_nothing_in_until_there_is_room(
    tmp_path: Path, feed: type[ScriptedFeed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intakes, "ROOM_BYTES", 0)
    monkeypatch.setattr(intakes, "FULL_SECONDS", 0.001)
    monkeypatch.setattr(intakes, "JOURNAL_BYTES", 1)
    bench = Bench(tmp_path)
    feed.script = [batch(event(1))]

    async def scenario() -> None:
        lease = Lease(bench.parts, state=lambda: "ready", reconcile=lambda _: None)
        lease.held.set()
        task = asyncio.create_task(Intake(bench.parts, lease, Pruning(bench.parts), changed=lambda: None).run())
        await bench.until(lambda: bench.parts.situation.last_error == intakes.FULL)
        assert stored(bench) == set()
        assert feed.acknowledged == []
        monkeypatch.setattr(intakes, "JOURNAL_BYTES", 2**40)
        await bench.until(lambda: feed.acknowledged)
        assert bench.parts.situation.last_error is None
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(scenario())


def test_what_arrives_twice_is_one_job(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    for _ in range(2):
        bench.journal.write_now(messages.intake, [message(1)], cursor="1.aa", watermark=1, at=1.0)
    assert bench.jobs() == {"m1": "queued"}


def test_what_the_agent_said_itself_is_stored_at_once_and_acknowledged_with_what_comes_next(
    tmp_path: Path, feed: type[ScriptedFeed]
) -> None:
    bench = Bench(tmp_path)
    own = event(2, kind="result", author={"id": "a_me", "name": "me", "kind": "agent"}, to="human")
    feed.script = [batch(event(1)), batch(own), batch(event(3))]
    asyncio.run(at_work(bench, lambda: len(feed.acknowledged) == 2))
    assert feed.acknowledged == [("s1", "1.aa"), ("s1", "3.aa")]
    assert bench.journal.read_now(messages.known, "m2", 2)
