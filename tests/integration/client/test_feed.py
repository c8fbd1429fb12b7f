import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import pytest

from relay_receiver.client.errors import Displaced, Unauthorized
from relay_receiver.client.feed import Batch, Feed, Gap, Transport
from relay_receiver.client.hub import Hub
from relay_receiver.client.rest import Rest
from relay_receiver.testing.clock import FakeClock
from relay_receiver.testing.hub import Answer, FakeHub, Fault, Reset

T = TypeVar("T")
Item = Batch | Transport | Gap
Case = Callable[[FakeHub, "Reader"], Awaitable[None]]
Prepare = Callable[[FakeHub, "Reader"], None]

NO_SOCKETS = Answer(status=404, json={"error": "No.", "code": "not_found"})


class Reader:
    """A feed and what came out of it, with a memory such as a journal has."""

    def __init__(self, fake: FakeHub, *, cursor: str | None = None, configured_at: float = 0.0, **more: Any) -> None:
        self.fake, self.clock = fake, FakeClock()
        self.rest = Rest(fake.url, "s3cret")
        self.items: list[Item] = []
        self.memory: dict[str, int] = {}
        self.feed = Feed(
            Hub(self.rest),
            channel="c1",
            types=("message.created",),
            cursor=cursor,
            known=self.known,
            configured_at=configured_at,
            clock=self.clock.clock(),
            **more,
        )

    async def known(self, message: str, event: int) -> bool:
        return self.memory.get(message) == event

    async def follow(self) -> None:
        async with contextlib.aclosing(self.feed.items()) as items:
            async for item in items:
                if isinstance(item, Batch):
                    for event in item.events:
                        self.memory.setdefault(event["data"]["message"]["id"], event["id"])
                self.items.append(item)
                self.fake._notify()

    @property
    def contents(self) -> list[str]:
        return [each["data"]["message"]["content"] for item in self.of(Batch) for each in item.events]

    @property
    def transports(self) -> list[tuple[str, str]]:
        return [(each.name, each.why) for each in self.of(Transport)]

    def of(self, kind: type[T]) -> list[T]:
        return [each for each in self.items if isinstance(each, kind)]

    async def has(self, *contents: str) -> None:
        try:
            await self.fake.until(lambda: self.contents == list(contents))
        except TimeoutError:
            assert self.contents == list(contents)
            raise


@contextlib.asynccontextmanager
async def reading(fake: FakeHub, **more: Any) -> AsyncIterator[Reader]:
    reader = Reader(fake, **more)
    task = asyncio.ensure_future(reader.follow())
    try:
        yield reader
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await reader.feed.close()
        await reader.rest.close()


def run(case: Case, **more: Any) -> None:
    async def main() -> None:
        async with FakeHub() as fake:
            fake.message("before")
            more.setdefault("cursor", fake.cursor())
            async with reading(fake, **more) as reader:
                await case(fake, reader)
            assert fake.most <= 1

    asyncio.run(main())


def test_events_arrive_on_the_socket() -> None:
    async def case(fake: FakeHub, reader: Reader) -> None:
        await fake.until(lambda: fake.sockets == 1)
        fake.message("one")
        fake.message("two")
        await reader.has("one", "two")
        assert reader.transports == [("websocket", "")]
        last = reader.of(Batch)[-1]
        assert (last.cursor, last.watermark, last.healed) == (fake.cursor(), fake.head, False)
        assert fake.polls == 0

    run(case)


def test_the_socket_of_a_loopback_hub_goes_through_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    async def case(fake: FakeHub, _: object) -> None:
        await fake.until(lambda: fake.sockets == 1)

    run(case)


def test_the_greeting_says_who_and_what() -> None:
    async def case(fake: FakeHub, _: object) -> None:
        await fake.until(lambda: fake.sockets == 1)
        assert fake.frames[0] == {
            "t": "hello",
            "resume": fake.cursor(),
            "channel": "c1",
            "types": ["message.created"],
            "holder": "h1",
            "fence": 7,
        }

    run(case, holder="h1", fence=7)


def test_without_a_cursor_it_starts_at_now() -> None:
    async def case(fake: FakeHub, reader: Reader) -> None:
        await fake.until(lambda: len(reader.of(Batch)) == 1)
        assert reader.feed.cursor == fake.cursor()
        fake.message("new")
        await reader.has("new")

    run(case, cursor=None)


def test_what_came_while_away_is_read_first() -> None:
    async def main() -> None:
        async with FakeHub() as fake:
            cursor = fake.cursor()
            fake.message("missed")
            async with reading(fake, cursor=cursor) as reader:
                await reader.has("missed")

    asyncio.run(main())


def test_a_hub_without_sockets_is_polled_and_never_asked_again() -> None:
    async def main() -> None:
        async with FakeHub() as fake:
            fake.refuse_sockets = NO_SOCKETS
            async with reading(fake, cursor=fake.cursor()) as reader:
                for number in range(4):
                    fake.message(str(number))
                    await reader.has(*map(str, range(number + 1)))
                    reader.clock.advance(10_000)
            assert [call.path for call in fake.calls].count("/ws") == 1
            assert reader.transports == [("longpoll", "the hub serves no sockets")]
            assert fake.most == 1

    asyncio.run(main())


def test_a_dropped_socket_is_replaced_at_once_with_the_cursor_in_hand() -> None:
    async def case(fake: FakeHub, reader: Reader) -> None:
        await fake.until(lambda: fake.sockets == 1)
        fake.message("one")
        await reader.has("one")
        fake.drop()
        fake.message("two")
        await reader.has("one", "two")
        poll = next(call for call in fake.calls if call.path == "/updates")
        assert poll.params["cursor"] == reader.of(Batch)[0].cursor
        assert reader.transports[1] == ("longpoll", "the connection was cut")

    run(case)


def test_events_that_no_cursor_closed_come_again() -> None:
    async def case(fake: FakeHub, reader: Reader) -> None:
        await fake.until(lambda: fake.sockets == 1)
        fake.hold_cursors = True
        fake.message("half")
        fake.send({"t": "strange", "and": "ignored"})
        await asyncio.sleep(0)
        assert reader.contents == []
        fake.drop()
        await reader.has("half")
        assert len(reader.of(Batch)) == 1

    run(case)


def test_the_socket_comes_back_when_its_time_has_come() -> None:
    async def case(fake: FakeHub, reader: Reader) -> None:
        await fake.until(lambda: fake.sockets == 1)
        fake.drop(4003)
        await fake.until(lambda: fake.polls == 1)
        assert reader.transports[-1] == ("longpoll", "the hub is going away")
        reader.clock.advance(3.7)
        fake.message("one")
        await fake.until(lambda: reader.transports[-1] == ("websocket", ""))
        await reader.has("one")

    run(case)


def test_too_many_requests_on_the_upgrade_are_backed_off_from() -> None:
    async def main() -> None:
        async with FakeHub() as fake:
            fake.upgrades.append(Answer(status=429, headers={"Retry-After": "120"}))
            async with reading(fake, cursor=fake.cursor()) as reader:
                await fake.until(lambda: fake.polls == 1)
                assert reader.feed._ladder.left() == 120
                fake.message("one")
                await reader.has("one")
                reader.clock.advance(121)
                fake.message("two")
                await fake.until(lambda: fake.sockets == 1)
                await reader.has("one", "two")

    asyncio.run(main())


@pytest.mark.parametrize(("code", "error"), [(4000, Displaced), (4001, Unauthorized)])
def test_some_closes_end_the_feed(code: int, error: type[Exception]) -> None:
    async def main() -> None:
        async with FakeHub() as fake, Rest(fake.url, "s3cret") as rest:
            feed = Feed(Hub(rest), channel="c1", types=(), cursor=fake.cursor())
            items = feed.items()
            assert (await anext(items)).name == "websocket"
            fake.drop(code)
            with pytest.raises(error):
                await anext(items)
            await feed.close()

    asyncio.run(main())


@pytest.mark.parametrize("where", ["upgrade", "poll"])
def test_a_credential_that_does_not_count_ends_the_feed(where: str) -> None:
    async def main() -> None:
        refusal = Answer(status=401, json={"error": "No.", "code": "unauthorized"})
        async with FakeHub() as fake, Rest(fake.url, "s3cret") as rest:
            fake.refuse_sockets = refusal if where == "upgrade" else NO_SOCKETS
            fake.fail("GET /updates", refusal)
            with pytest.raises(Unauthorized):
                async for _ in Feed(Hub(rest), channel="c1", types=(), cursor="0").items():
                    pass

    asyncio.run(main())


def test_a_hub_that_is_away_is_shown_and_waited_for() -> None:
    async def case(fake: FakeHub, reader: Reader) -> None:
        await fake.until(lambda: fake.sockets == 1)
        await fake.refuse()
        await fake.until(lambda: [name for name, _ in reader.transports[-1:]] == ["offline"])
        assert "cannot be reached" in reader.transports[-1][1]
        await fake.listen()
        fake.message("back")
        await reader.has("back")
        assert reader.clock.slept[0] < 2

    run(case)


@pytest.mark.parametrize("fault", [Reset(), Answer(status=500), Answer(body=b"<html>"), Answer(json={"events": []})])
def test_a_poll_that_fails_is_made_again_from_the_same_cursor(fault: Fault) -> None:
    async def main() -> None:
        async with FakeHub() as fake:
            fake.refuse_sockets = NO_SOCKETS
            fake.fail("GET /updates", fault, fault)
            cursor = fake.cursor()
            async with reading(fake, cursor=cursor) as reader:
                fake.message("one")
                await reader.has("one")
                polls = [call.params["cursor"] for call in fake.calls if call.path == "/updates"]
                assert polls[:3] == [cursor] * 3
                first, second = reader.clock.slept
                assert 0.5 <= first < second

    asyncio.run(main())


def test_a_poll_told_to_come_later_waits_that_long() -> None:
    async def main() -> None:
        async with FakeHub() as fake:
            fake.refuse_sockets = NO_SOCKETS
            fake.fail("GET /updates", Answer(status=429, headers={"Retry-After": "77"}))
            async with reading(fake, cursor=fake.cursor()) as reader:
                fake.message("one")
                await reader.has("one")
                assert reader.clock.slept == [77]

    asyncio.run(main())


def test_polls_that_fail_do_not_hold_back_the_socket() -> None:
    async def case(fake: FakeHub, reader: Reader) -> None:
        await fake.until(lambda: fake.sockets == 1)
        fake.fail("GET /updates", *[Reset()] * 9)
        fake.drop()
        await fake.until(lambda: len(reader.transports) > 1 and reader.transports[-1][0] == "websocket")
        assert sum(reader.clock.slept) == pytest.approx(3)

    run(case)


def test_resets_over_and_over_are_slowed_down() -> None:
    async def main() -> None:
        async with FakeHub() as fake:
            left = ["diverged"] * 5
            fake._reset_reason = lambda _: left.pop() if left else None  # type: ignore[method-assign]  # a hub gone mad
            async with reading(fake, cursor="0") as reader:
                await fake.until(lambda: fake.sockets == 1)
                assert len(reader.clock.slept) == 4
                assert reader.clock.slept == sorted(set(reader.clock.slept))

    asyncio.run(main())


def test_empty_answers_at_once_are_not_asked_for_in_a_loop() -> None:
    async def main() -> None:
        async with FakeHub() as fake:
            fake.refuse_sockets = NO_SOCKETS
            empty = Answer(json={"cursor": fake.cursor(), "events": []})
            fake.fail("GET /updates", *[empty] * 5)
            async with reading(fake, cursor=fake.cursor()) as reader:
                fake.message("one")
                await reader.has("one")
                assert len(reader.clock.slept) == 5

    asyncio.run(main())


def test_an_acknowledgement_goes_over_the_socket_and_again_when_that_was_cut() -> None:
    async def case(fake: FakeHub, reader: Reader) -> None:
        await fake.until(lambda: fake.sockets == 1)
        fake.message("one")
        await reader.has("one")
        await reader.feed.acknowledge("s1", reader.feed.cursor)
        await fake.until(lambda: len(fake.frames) == 2)
        assert fake.frames[1] == {"t": "ack", "subscription": "s1", "cursor": reader.feed.cursor}
        fake.refuse_sockets = NO_SOCKETS
        fake.drop()
        fake.message("two")
        await reader.has("one", "two")
        patch = next(call for call in fake.calls if call.method == "PATCH")
        assert (patch.path, patch.json) == ("/subscriptions/s1", {"cursor": fake.frames[1]["cursor"]})

    run(case)


def test_what_the_hub_says_before_it_closes_is_shown() -> None:
    async def case(fake: FakeHub, reader: Reader) -> None:
        await fake.until(lambda: fake.sockets == 1)
        fake.send({"t": "error", "code": "too_slow", "message": "You read too slowly."})
        fake.drop(4004)
        fake.message("one")
        await reader.has("one")
        assert reader.transports[1] == ("longpoll", "the hub says: You read too slowly")

    run(case)


def test_the_token_is_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def case(fake: FakeHub, reader: Reader) -> None:
        await fake.until(lambda: fake.sockets == 1)
        fake.refuse_sockets = NO_SOCKETS
        fake.drop()
        fake.message("one")
        await reader.has("one")
        assert caplog.records
        assert "s3cret" not in caplog.text

    run(case)


def test_garbage_on_the_socket_ends_it_and_loses_nothing() -> None:
    async def case(fake: FakeHub, reader: Reader) -> None:
        await fake.until(lambda: fake.sockets == 1)
        fake.send([1])
        fake.message("one")
        await reader.has("one")
        assert reader.transports[1] == ("longpoll", "the hub sent what cannot be read")

    run(case)


class TestHealing:
    """After a reset: the history first, then the stream from where the last page ended."""

    @pytest.fixture(params=["socket", "poll"])
    def refusal(self, request: pytest.FixtureRequest) -> Answer | None:
        return None if request.param == "socket" else NO_SOCKETS

    def heal(self, refusal: Answer | None, prepare: Prepare, check: Case, *, configured_at: float = 0.0) -> None:
        async def main() -> None:
            async with FakeHub() as fake:
                fake.refuse_sockets = refusal
                reader = Reader(fake, configured_at=configured_at)
                prepare(fake, reader)
                task = asyncio.ensure_future(reader.follow())
                try:
                    await check(fake, reader)
                    fake.message("after")
                    await reader.fake.until(lambda: reader.contents[-1:] == ["after"])
                    assert not reader.of(Batch)[-1].healed
                    assert fake.most == 1
                finally:
                    task.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await task
                    await reader.feed.close()
                    await reader.rest.close()

        asyncio.run(main())

    def test_a_cursor_too_old_is_healed_by_id_and_number(self, refusal: Answer | None) -> None:
        def prepare(fake: FakeHub, reader: Reader) -> None:
            known = fake.message("known")
            reader.memory[known["id"]] = known["event"]
            reader.feed.cursor, reader.feed.watermark = fake.cursor(), fake.head
            for number in range(120):
                fake.message(str(number))
            fake.forget(fake.head - 2)

        async def check(_fake: FakeHub, reader: Reader) -> None:
            await reader.has(*map(str, range(120)))
            healed = reader.of(Batch)
            assert [each.healed for each in healed[:3]] == [True] * 3
            assert [each.events for each in healed[3:]] in ([], [[]])
            assert reader.of(Gap) == []

        self.heal(refusal, prepare, check)

    def test_a_restored_hub_is_read_from_where_both_agree(self, refusal: Answer | None) -> None:
        def prepare(fake: FakeHub, reader: Reader) -> None:
            for number in range(3):
                known = fake.message(f"known {number}")
                reader.memory[known["id"]] = known["event"]
            lost = fake.message("lost")
            reader.memory[lost["id"]] = lost["event"]
            reader.feed.cursor, reader.feed.watermark = fake.cursor(), fake.head
            fake.restore(2)
            fake.message("new 3")
            fake.message("new 4")
            fake.message("new 5")

        async def check(fake: FakeHub, reader: Reader) -> None:
            await reader.has("new 3", "new 4", "new 5")
            assert reader.of(Gap) == []
            assert reader.of(Batch)[-1].watermark == 5 == fake.head

        self.heal(refusal, prepare, check)

    def test_a_hub_restored_behind_the_cursor_is_noticed(self, refusal: Answer | None) -> None:
        def prepare(fake: FakeHub, reader: Reader) -> None:
            for number in range(5):
                known = fake.message(str(number))
                reader.memory[known["id"]] = known["event"]
            reader.feed.cursor, reader.feed.watermark = fake.cursor(), fake.head
            fake.restore(2)

        async def check(fake: FakeHub, reader: Reader) -> None:
            await fake.until(lambda: reader.feed.cursor == fake.cursor(2))
            assert reader.contents == []

        self.heal(refusal, prepare, check)

    def test_what_is_gone_is_told(self, refusal: Answer | None) -> None:
        def prepare(fake: FakeHub, reader: Reader) -> None:
            fake.message("known")
            reader.feed.cursor, reader.feed.watermark = fake.cursor(), fake.head
            for number in range(10):
                fake.message(str(number))
            fake.prune(5)
            fake.forget(8)

        async def check(_fake: FakeHub, reader: Reader) -> None:
            await reader.has("4", "5", "6", "7", "8", "9")
            assert reader.of(Gap) == [Gap(first=2, last=5)]

        self.heal(refusal, prepare, check)

    def test_nothing_from_before_configure_is_replayed(self, refusal: Answer | None) -> None:
        def prepare(fake: FakeHub, reader: Reader) -> None:
            for number in range(80):
                fake.message(str(number), createdAt="2026-01-01T00:00:00.000Z")
            fake.message("mine", createdAt="2026-01-03T00:00:00.000Z")
            reader.feed.cursor = "3.0000"

        async def check(_fake: FakeHub, reader: Reader) -> None:
            await reader.has("mine")
            assert reader.of(Gap) == []

        # 2026-01-02
        self.heal(refusal, prepare, check, configured_at=1_767_312_000.0)

    def test_a_hub_that_fails_meanwhile_is_healed_from_later(self, refusal: Answer | None) -> None:
        def prepare(fake: FakeHub, reader: Reader) -> None:
            reader.feed.cursor = fake.cursor()
            for number in range(3):
                fake.message(str(number))
            fake.forget(2)
            fake.fail("GET /messages", Answer(status=500), *[Reset()] * 4, Answer(json={"messages": [{"id": 1}]}))

        async def check(_fake: FakeHub, reader: Reader) -> None:
            await reader.has("0", "1", "2")

        self.heal(refusal, prepare, check)
