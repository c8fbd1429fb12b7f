import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from support_time import WITHIN

from relay_receiver.client.errors import HubAway, HubError, Unauthorized
from relay_receiver.client.hub import Hub
from relay_receiver.client.rest import Rest
from relay_receiver.client.wait import wait
from relay_receiver.testing.clock import FakeClock
from relay_receiver.testing.hub import Answer, Call, FakeHub, Fault, Reset
from relay_receiver.wire.errors import RelayError


class Asked:
    """A request at the fake hub, and its stage."""

    def __init__(self, fake: FakeHub, kind: str = "request") -> None:
        self.fake = fake
        self.request = fake.message("do it", kind=kind, to="bob")
        self.stage = "stored"
        fake.on("GET", f"/messages/{self.request['id']}", self._get)

    def _get(self, _: Call) -> Answer:
        return Answer(json={**self.request, "delivery": {"stage": self.stage, "since": "x", "job": "j1"}})

    @property
    def looks(self) -> int:
        return sum(call.path == f"/messages/{self.request['id']}" for call in self.fake.calls)

    def move(self, stage: str) -> None:
        self.stage = stage
        self.fake.tell("message.stage", {"message": self.request["id"], "stage": stage})

    def answer(self, stage: str = "answered") -> dict[str, Any]:
        self.stage = stage
        return self.fake.message("done", kind="result", replyTo=self.request["id"])


Case = Callable[[FakeHub, Asked, Hub], Awaitable[None]]


def run(case: Case) -> None:
    async def main() -> None:
        async with FakeHub() as fake, Rest(fake.url, "s3cret") as rest:
            await case(fake, Asked(fake), Hub(rest))

    asyncio.run(main())


def test_a_request_that_ended_is_told_at_once() -> None:
    async def case(fake: FakeHub, asked: Asked, hub: Hub) -> None:
        result = asked.answer()
        answer = await wait(hub, asked.request["id"], 5)
        assert answer["delivery"]["stage"] == "answered"
        assert answer["result"] == result
        assert answer["request"] == asked.request
        assert [call.path for call in fake.calls] == [f"/messages/{asked.request['id']}", "/messages"]

    run(case)


def test_it_listens_instead_of_asking_over_and_over() -> None:
    async def case(fake: FakeHub, asked: Asked, hub: Hub) -> None:
        stages: list[str] = []

        def progress(delivery: Mapping[str, Any]) -> None:
            stages.append(delivery["stage"])

        waiting = asyncio.ensure_future(wait(hub, asked.request["id"], 5, progress=progress))
        await fake.until(lambda: fake.polls == 1)
        for number in range(5):
            fake.message(f"chat {number}")
        await fake.until(lambda: fake.calls[-1].params.get("cursor") == fake.cursor())
        assert asked.looks == 1
        for stage in ("received", "running"):
            asked.move(stage)
            await fake.until(lambda stage=stage: stages[-1] == stage)  # type: ignore[misc]  # a default binds the loop variable
        result = asked.answer()
        answer = await waiting
        assert (answer["delivery"]["stage"], answer["result"]) == ("answered", result)
        assert stages == ["stored", "received", "running", "answered"]
        assert asked.looks == 4

    run(case)


def test_what_changes_the_reason_or_the_position_is_looked_at_and_nothing_else() -> None:
    async def case(fake: FakeHub, asked: Asked, hub: Hub) -> None:
        waiting = asyncio.ensure_future(wait(hub, asked.request["id"], WITHIN))
        await fake.until(lambda: fake.polls == 1)
        about = (
            ("receiver.updated", {"agent": "bob", "channel": "c1", "state": "paused"}),
            ("message.stage", {"message": "another", "to": "bob", "stage": "answered"}),
            ("request.created", {"request": {"id": "ask", "message": asked.request["id"]}}),
        )
        for number, (kind, data) in enumerate(about, 2):
            fake.tell(kind, data)
            await fake.until(lambda number=number: asked.looks == number)  # type: ignore[misc]  # a default binds the loop variable
        for kind, data in (
            ("receiver.updated", {"agent": "carl", "channel": "c1", "state": "paused"}),
            ("message.stage", {"message": "another", "to": "bob", "stage": "running"}),
            ("request.created", {"request": {"id": "ask", "message": "another"}}),
        ):
            fake.tell(kind, data)
            await fake.until(lambda: fake.calls[-1].params.get("cursor") == fake.cursor())
        assert asked.looks == 4
        asked.answer()
        await waiting

    run(case)


@pytest.mark.parametrize("stage", ["expired", "withdrawn", "unknown"])
def test_ends_without_a_result(stage: str) -> None:
    async def case(fake: FakeHub, asked: Asked, hub: Hub) -> None:
        waiting = asyncio.ensure_future(wait(hub, asked.request["id"], 5))
        await fake.until(lambda: fake.polls == 1)
        asked.move(stage)
        answer = await waiting
        assert (answer["delivery"]["stage"], answer["result"]) == (stage, None)

    run(case)


def test_time_that_is_over_leaves_what_is_known() -> None:
    async def case(_: FakeHub, asked: Asked, hub: Hub) -> None:
        answer = await wait(hub, asked.request["id"], 0.2)
        assert (answer["delivery"]["stage"], answer["result"]) == ("stored", None)

    run(case)


def test_whoever_will_not_wait_is_told_how_far_it_is() -> None:
    async def case(_: FakeHub, asked: Asked, hub: Hub) -> None:
        asked.stage = "running"
        answer = await wait(hub, asked.request["id"], 0)
        assert answer["delivery"]["stage"] == "running"

    run(case)


def test_an_end_between_look_and_poll_is_not_missed() -> None:
    async def case(fake: FakeHub, asked: Asked, hub: Hub) -> None:
        real = asked._get

        def late(call: Call) -> Answer:
            answer = real(call)
            if asked.stage == "stored":
                asked.answer()
            return answer

        fake.on("GET", f"/messages/{asked.request['id']}", late)
        assert (await wait(hub, asked.request["id"], 2))["result"]["content"] == "done"
        assert fake.calls[1].params["cursor"] == str(asked.request["event"])

    run(case)


@pytest.mark.parametrize(
    "fault",
    [
        Reset(),
        Answer(status=500),
        Answer(status=409, json={"error": "x", "code": "cursor_expired"}),
        Answer(status=503),
    ],
)
def test_a_hub_that_fails_meanwhile_is_asked_again(fault: Fault) -> None:
    async def case(fake: FakeHub, asked: Asked, hub: Hub) -> None:
        fake.fail("GET /updates", fault)
        waiting = asyncio.ensure_future(wait(hub, asked.request["id"], 5, sleep=FakeClock().sleep))
        await fake.until(lambda: asked.looks == 2)
        result = asked.answer()
        assert (await waiting)["result"] == result

    run(case)


def test_a_result_far_behind_is_found() -> None:
    async def case(fake: FakeHub, asked: Asked, hub: Hub) -> None:
        for number in range(450):
            fake.message(str(number))
        result = asked.answer()
        assert (await wait(hub, asked.request["id"], 5))["result"] == result

    run(case)


def test_what_is_no_request_has_no_end() -> None:
    async def main() -> None:
        async with FakeHub() as fake, Rest(fake.url, "s3cret") as rest:
            asked = Asked(fake, kind="message")
            with pytest.raises(RelayError) as caught:
                await wait(Hub(rest), asked.request["id"], 5)
            assert caught.value.code == "usage"

    asyncio.run(main())


def test_an_unknown_message_and_a_dead_credential_end_the_wait() -> None:
    async def case(fake: FakeHub, asked: Asked, hub: Hub) -> None:
        with pytest.raises(HubError) as caught:
            await wait(hub, "mx", 5)
        assert caught.value.status == 404
        fake.fail("GET /updates", Answer(status=401, json={"error": "No.", "code": "unauthorized"}))
        with pytest.raises(Unauthorized):
            await wait(hub, asked.request["id"], 5)

    run(case)


def test_a_hub_that_was_never_reached_is_said() -> None:
    async def case(fake: FakeHub, asked: Asked, hub: Hub) -> None:
        await fake.refuse()
        with pytest.raises(HubAway):
            await wait(Hub(hub.rest, patient=False), asked.request["id"], 0.1)

    run(case)
