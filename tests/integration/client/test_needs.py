"""Looking at a hub on and on for what needs a person."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from support_time import WITHIN

from relay_receiver.client.errors import HubError, Unauthorized
from relay_receiver.client.hub import Hub
from relay_receiver.client.needs import Seen, follow, look
from relay_receiver.client.rest import Rest
from relay_receiver.testing.hub import Answer, Call, FakeHub


class Place:
    """A hub with one channel, in which things come to need somebody."""

    def __init__(self, fake: FakeHub) -> None:
        self.fake = fake
        self.requests: list[dict[str, Any]] = []
        self.report: dict[str, Any] = {}
        fake.on("GET", "/channels", lambda _: Answer(json={"channels": [{"id": "c1", "name": "lab"}]}))
        fake.on("GET", "/channels/c1/members", self._members)
        fake.on("GET", "/requests", self._requests)

    def _members(self, _: Call) -> Answer:
        receiver = {"state": "ready", "detail": None, "report": self.report}
        return Answer(json={"members": [{"id": "b1", "name": "bob", "kind": "agent", "receiver": receiver}]})

    def _requests(self, call: Call) -> Answer:
        assert call.params["state"] == "open"
        return Answer(json={"requests": self.requests})

    def ask(self, name: str) -> None:
        author = {"id": "b1", "name": "bob", "kind": "agent"}
        asked = {"id": name, "channel": "c1", "kind": "input", "title": name, "author": author, "state": "open"}
        self.requests.append({**asked, "approvers": None, "expiresAt": name})
        self.fake.tell("request.created", {"request": asked})


Case = Callable[[FakeHub, Place, Hub], Awaitable[None]]


def run(case: Case) -> None:
    async def main() -> None:
        async with FakeHub() as fake, Rest(fake.url, "s3cret") as rest:
            await case(fake, Place(fake), Hub(rest, patient=False))

    asyncio.run(main())


async def _soon(_: float) -> None:
    await asyncio.sleep(0)


def ids(seen: Seen) -> list[str]:
    return [each.id for each in seen.needs or ()]


def test_requests_come_first_and_receivers_that_stand_still_after_them() -> None:
    async def case(_: FakeHub, place: Place, hub: Hub) -> None:
        place.ask("one")
        place.report = {"needs": [{"what": "paused"}], "chain": {"pause": "p"}}
        assert [each.id for each in await look(hub, "me")] == ["request:one", "paused:b1:c1:p"]

    run(case)


def test_it_looks_again_when_something_happened_and_not_before() -> None:
    async def case(fake: FakeHub, place: Place, hub: Hub) -> None:
        seen = follow(hub, "me", sleep=_soon, clock=lambda: 0.0)
        assert ids(await anext(seen)) == []
        assert ids(await anext(seen)) == []
        third = asyncio.ensure_future(anext(seen))
        await fake.until(lambda: fake.polls == 1)
        fake.message("chat")
        looks = sum(call.path == "/requests" for call in fake.calls)
        place.ask("one")
        async with asyncio.timeout(WITHIN):
            assert ids(await third) == ["request:one"]
        assert sum(call.path == "/requests" for call in fake.calls) == looks + 1
        await seen.aclose()

    run(case)


def test_a_hub_that_goes_away_is_said_and_what_came_meanwhile_is_seen() -> None:
    async def case(fake: FakeHub, place: Place, hub: Hub) -> None:
        seen = follow(hub, "me", sleep=_soon)
        await anext(seen)
        await anext(seen)
        await fake.refuse()
        gone = await anext(seen)
        assert (gone.needs, bool(gone.away)) == (None, True)
        place.ask("meanwhile")
        await fake.listen()
        async for now in seen:
            if now.needs is not None:
                assert ids(now) == ["request:meanwhile"]
                break
        await seen.aclose()

    run(case)


def test_a_hub_that_was_restored_is_looked_at_anew() -> None:
    async def case(fake: FakeHub, place: Place, hub: Hub) -> None:
        fake.message("before")
        seen = follow(hub, "me", sleep=_soon)
        await anext(seen)
        await anext(seen)
        fake.restore(0)
        place.ask("after")
        assert ids(await anext(seen)) == ["request:after"]
        await seen.aclose()

    run(case)


@pytest.mark.parametrize(("status", "error"), [(401, Unauthorized), (403, HubError)])
def test_a_refusal_for_good_ends_it(status: int, error: type[Exception]) -> None:
    async def case(fake: FakeHub, _: Place, hub: Hub) -> None:
        fake.fail("GET /requests", Answer(status=status, json={"error": "No.", "code": "no"}))
        seen = follow(hub, "me", sleep=_soon)
        with pytest.raises(error):
            await anext(seen)

    run(case)
