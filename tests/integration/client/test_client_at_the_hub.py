"""The client against the real hub: what it sends is understood, and what comes back is what it reads."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support_hub import LiveHub, Member
from support_time import WITHIN

from relay_receiver.client.enrol import enrol
from relay_receiver.client.errors import Displaced, HubError, Unauthorized
from relay_receiver.client.feed import Batch, Feed, Gap, Transport
from relay_receiver.client.hub import Hub
from relay_receiver.client.longpoll import LongPoll
from relay_receiver.client.rest import Rest
from relay_receiver.client.stream import Reset
from relay_receiver.client.wait import wait
from relay_receiver.hub import enrolment


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveHub]:
    monkeypatch.setenv("RELAY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    hub = LiveHub(tmp_path / "hub").start()
    yield hub
    hub.stop()


class Scene:
    """An owner and an agent in one channel."""

    def __init__(self, live: LiveHub) -> None:
        self.live = live
        self.owner = live.owner()
        self.channel = live.channel(self.owner)
        self.bob = live.agent(self.owner, self.channel, "bob")

    @asynccontextmanager
    async def hub(self, who: Member) -> AsyncIterator[Hub]:
        async with Rest(self.live.url, who.token) as rest:
            yield Hub(rest)

    async def ask(self, hub: Hub, content: str = "do it") -> Any:
        return await hub.post_message(
            {"channel": self.channel, "content": content, "kind": "request", "to": self.bob.id}
        )

    async def lease(self, hub: Hub, subscription: str | None = None) -> Any:
        return await hub.take_lease(
            channel=self.channel,
            holder="h1",
            subscription=subscription,
            session=None,
            runtime="command",
            state="ready",
        )


def run(live: LiveHub, case: Callable[[Scene, Hub, Hub], Awaitable[None]]) -> None:
    async def main() -> None:
        scene = Scene(live)
        async with asyncio.timeout(WITHIN), scene.hub(scene.owner) as owner, scene.hub(scene.bob) as bob:
            await case(scene, owner, bob)

    asyncio.run(main())


def test_two_join_and_one_asks_the_other(live: LiveHub) -> None:
    async def main() -> None:
        code = live.store.write_now(enrolment.owner_code, at=time.time()).code
        owner = await enrol(live.url, code, name="Ann", profile="default")
        assert (owner.role, owner.channels) == ("owner", ())
        assert owner.workspace != owner.workspace_name == "relay"
        async with Rest(owner.url, owner.token()) as rest:
            channel = (await Hub(rest).create_channel("lab"))["id"]
            invite = await Hub(rest).invite(channel)
        bob = await enrol(live.url, invite["code"], name="bob", profile="bob")
        assert (bob.role, bob.agent_name, bob.channels) == ("agent", "bob", ((channel, "lab"),))
        assert await enrol(live.url, invite["code"], name="bob", profile="bob") == bob
        async with Rest(owner.url, owner.token()) as mine, Rest(bob.url, bob.token()) as his:
            ann, agent = Hub(mine), Hub(his)
            assert [each["id"] for each in await ann.channels()] == [channel]
            assert (
                {each["name"] for each in await ann.members(channel)}
                == {"Ann", "bob"}
                == {each["name"] for each in await agent.peers()}
            )
            identity = await agent.identity(bob.identity())
            assert (await agent.change_identity(bob.identity(), rev=identity["rev"], signature="hi"))[
                "signature"
            ] == "hi"
            asked = await ann.post_message({"channel": channel, "content": "do it", "kind": "request", "to": bob.agent})
            waiting = asyncio.ensure_future(wait(ann, asked["id"], 10))
            result = await agent.post_message(
                {"channel": channel, "content": "done", "kind": "result", "replyTo": asked["id"]}
            )
            answer = await waiting
            assert answer["delivery"]["stage"] == "answered"
            assert answer["result"]["id"] == result["id"]

    asyncio.run(main())


def test_a_run_from_lease_to_result(live: LiveHub) -> None:
    async def case(scene: Scene, owner: Hub, bob: Hub) -> None:
        subscription = (await bob.subscribe(scene.channel, cursor=(await bob.state())["cursor"]))["id"]
        asked = await scene.ask(owner)
        leased = await scene.lease(bob, subscription)
        assert (await bob.lease(scene.channel) or {})["fence"] == leased["fence"]
        seen: list[str] = []
        waiting = asyncio.ensure_future(
            wait(owner, asked["id"], 10, progress=lambda delivery: seen.append(delivery["stage"]))
        )
        named: dict[str, Any] = {"channel": scene.channel, "holder": "h1", "fence": leased["fence"], "request_id": "j1"}
        begun = await bob.begin(**named, message=asked["id"], attempt=1, claim="c1")
        assert begun == {**begun, **await bob.begin(**named, message=asked["id"], attempt=1, claim="c1"), **begun}
        await bob.stage(**named, state="running", claim="c1")
        text = b"x" * 100_000
        file = await bob.upload(text, "result.txt", "text/plain", channel=scene.channel)
        body = {
            "channel": scene.channel,
            "content": "done",
            "kind": "result",
            "replyTo": asked["id"],
            "outcome": "completed",
            "attachments": [file["id"]],
            "run": {"holderId": "h1", "fence": leased["fence"], "requestId": "j1"},
            "operationId": "receiver:j1",
        }
        stored = await bob.post_message(body)
        assert (await bob.post_message(body))["id"] == stored["id"]
        await bob.finish(**named, state="completed", claim="c1")
        with pytest.raises(HubError) as caught:
            await bob.begin(**named, message=asked["id"], attempt=2, claim="c2")
        assert caught.value.code == "run_finished"
        await bob.release(channel=scene.channel, holder="h1")
        answer = await waiting
        assert (answer["delivery"]["stage"], answer["result"]["id"]) == ("answered", stored["id"])
        assert seen[-1] == "answered"
        assert await owner.attachment(file["id"]) == text

    run(live, case)


def test_a_person_settles_and_withdraws(live: LiveHub) -> None:
    async def case(scene: Scene, owner: Hub, bob: Hub) -> None:
        asked = await scene.ask(owner)
        leased = await scene.lease(bob)
        named: dict[str, Any] = {"channel": scene.channel, "holder": "h1", "fence": leased["fence"], "request_id": "j1"}
        await bob.begin(**named, message=asked["id"], attempt=1, claim="c1")
        await owner.settle(
            agent=scene.bob.id, request_id="j1", outcome="abandoned", reason="gone", channel=scene.channel
        )
        assert (await wait(owner, asked["id"], 5))["delivery"]["stage"] == "failed"
        other = await scene.ask(owner, "never mind")
        await owner.withdraw(other["id"])
        assert (await wait(owner, other["id"], 5))["delivery"]["stage"] == "withdrawn"

    run(live, case)


def test_declarations_and_contact(live: LiveHub) -> None:
    async def case(scene: Scene, _: Hub, bob: Hub) -> None:
        declared = await bob.declare(scene.channel, rev=0, mode="available", text="here")
        assert (await bob.ping(scene.channel, rev=declared["rev"]))["renewed"] is True
        assert await bob.ping(scene.channel) is not None
        await bob.leave_channel(scene.channel)
        assert await bob.channels() == []

    run(live, case)


def feed(scene: Scene, hub: Hub, cursor: str | None, **more: Any) -> Feed:
    return Feed(hub, channel=scene.channel, types=("message.created", "message.cancel"), cursor=cursor, **more)


def test_the_feed_and_its_acknowledgement(live: LiveHub) -> None:
    async def case(scene: Scene, owner: Hub, bob: Hub) -> None:
        start = (await bob.state())["cursor"]
        subscription = (await bob.subscribe(scene.channel, cursor=start))["id"]
        await scene.lease(bob, subscription)
        asked = await scene.ask(owner)
        reader = feed(scene, bob, start)
        async with aclosing(reader.items()) as items:
            assert await anext(items) == Transport(name="websocket")
            batch = await anext(items)
            assert isinstance(batch, Batch)
            assert [each["data"]["message"]["id"] for each in batch.events] == [asked["id"]]
            assert batch.watermark == asked["event"]
            await reader.acknowledge(subscription, batch.cursor)
            told = await LongPoll(owner, channel=scene.channel, types=("message.stage",)).once(start, 0, most=5)
            assert told.events[0]["data"]["stage"] == "received"
            assert (await bob.inbox())["deliveries"][0]["events"] == []
        await reader.close()
        again = await LongPoll(bob, channel=scene.channel, types=("message.created",)).once(start, 0, most=5)
        assert again.events[0]["id"] == asked["event"]
        with pytest.raises(Reset):
            await LongPoll(bob, channel=scene.channel, types=()).once("99999.0000", 0, most=5)

    run(live, case)


def test_a_newer_connection_displaces_an_older_one(live: LiveHub) -> None:
    async def case(scene: Scene, _: Hub, bob: Hub) -> None:
        leased = await scene.lease(bob)
        one, two = (feed(scene, bob, None, holder="h1", fence=leased["fence"]) for _ in range(2))
        async with aclosing(one.items()) as older, aclosing(two.items()) as newer:
            assert await anext(older) == await anext(newer) == Transport(name="websocket")
            with pytest.raises(Displaced):
                async for _item in older:
                    pass
        await one.close()
        await two.close()

    run(live, case)


@pytest.mark.parametrize("cursor", ["99999", "1.ffffffff"])
def test_healing_reads_the_history_and_then_the_stream(live: LiveHub, cursor: str) -> None:
    async def case(scene: Scene, owner: Hub, bob: Hub) -> None:
        sent = [await scene.ask(owner, str(number)) for number in range(70)]
        kept = {sent[4]["id"]: sent[4]["event"]}

        async def known(message: str, event: int) -> bool:
            return kept.get(message) == event

        reader = feed(scene, bob, cursor, known=known, configured_at=0.0, watermark=sent[4]["event"])
        seen: list[str] = []
        over = 0
        async with aclosing(reader.items()) as items:
            async for item in items:
                assert not isinstance(item, Gap)
                if isinstance(item, Batch):
                    seen += [each["data"]["message"]["content"] for each in item.events]
                    over += not item.healed and not item.events
                    if len(seen) == 65 and item.healed:
                        await scene.ask(owner, "after")
                if seen[-1:] == ["after"]:
                    assert not item.healed  # type: ignore[union-attr]  # only a batch ends so
                    break
        await reader.close()
        assert seen == [*map(str, range(5, 70)), "after"]
        assert over == 1, "the end of healing is told, whether or not anything follows"

    run(live, case)


def test_an_unknown_credential_stops_everything(live: LiveHub) -> None:
    async def main() -> None:
        scene = Scene(live)
        async with Rest(live.url, "x" * 43) as rest:
            with pytest.raises(Unauthorized):
                await Hub(rest).state()
            with pytest.raises(Unauthorized):
                async for _ in feed(scene, Hub(rest), None).items():
                    pass

    asyncio.run(main())
