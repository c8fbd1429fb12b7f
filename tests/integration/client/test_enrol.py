import asyncio
import json
import stat
from pathlib import Path

import pytest

from relay_receiver.client import profiles
from relay_receiver.client.enrol import enrol, import_connection, profile_name, refresh
from relay_receiver.client.errors import HubAway, HubError
from relay_receiver.client.profiles import Profile
from relay_receiver.testing.hub import Answer, Call, FakeHub, Reset
from relay_receiver.wire.errors import RelayError

CODES = {"code-1": "c1", "code-2": "c2"}


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("RELAY_PROFILE", raising=False)


class Members:
    """What a hub keeps of enrolments: codes count once, for the secrets that used them."""

    def __init__(self, fake: FakeHub) -> None:
        self.used: dict[str, tuple[str, str]] = {}
        self.channels: dict[str, list[str]] = {}
        fake.on("POST", "/enroll", self._enroll)
        fake.on("GET", "/state", self._state)

    def _enroll(self, call: Call) -> Answer:
        said = call.json
        secrets = said["clientSecret"], said["identitySecret"]
        if said["invite"] not in CODES or self.used.setdefault(said["invite"], secrets) != secrets:
            return Answer(status=403, json={"error": "This code does not count.", "code": "bad_code"})
        channel = CODES[said["invite"]]
        mine = self.channels.setdefault(secrets[0], [])
        if channel not in mine:
            mine.append(channel)
        return Answer(json={"agentId": "a1", "workspace": "w1", "channel": channel})

    def _state(self, call: Call) -> Answer:
        mine = self.channels.get(call.headers["authorization"].removeprefix("Bearer "))
        if mine is None:
            return Answer(status=401, json={"error": "No.", "code": "unauthorized"})
        channels = [{"id": each, "name": f"#{each}"} for each in reversed(mine)]
        actor = {"id": "a1", "role": "agent", "name": "Bob"}
        return Answer(json={"actor": actor, "workspace": "w1", "workspaceName": "Lab", "channels": channels})


def test_joining_makes_a_profile_whose_secrets_are_private() -> None:
    async def main() -> tuple[Profile, Members]:
        async with FakeHub() as fake:
            members = Members(fake)
            return await enrol(fake.url + "/", "code-1", name="Bob", profile="bob"), members

    made, members = asyncio.run(main())
    assert made == profiles.load("bob") == profiles.resolve()
    assert (made.agent, made.workspace_name, made.channels) == ("a1", "Lab", (("c1", "#c1"),))
    assert list(members.channels) == [made.token()]
    assert len(made.token()) >= 43
    assert made.token() != made.identity()
    assert made.token() not in repr(made)
    for path in [made.directory, *made.directory.iterdir()]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    assert sorted(each.name for each in made.directory.iterdir()) == ["profile.json", "secrets.json"]


def test_a_lost_answer_is_asked_for_again_with_the_same_secrets() -> None:
    async def main() -> None:
        async with FakeHub() as fake:
            Members(fake)
            fake.fail("POST /enroll", *[Reset(applied=True)] * 4)
            with pytest.raises(HubAway):
                await enrol(fake.url, "code-1", name="Bob", profile="bob")
            assert profiles.names() == []
            made = await enrol(fake.url, "code-1", name="Bob", profile="bob")
            sent = {call.json["clientSecret"] for call in fake.calls if call.path == "/enroll"}
            assert sent == {made.token()}

    asyncio.run(main())


def test_secrets_are_stored_before_they_are_sent() -> None:
    async def main() -> None:
        async with FakeHub() as fake:
            stored: list[bool] = []

            def look(call: Call) -> Answer:
                begun = profiles.pending("bob")
                stored.append(begun is not None and begun.token == call.json["clientSecret"])
                return Answer(status=403, json={"error": "No.", "code": "bad_code"})

            fake.on("POST", "/enroll", look)
            with pytest.raises(HubError):
                await enrol(fake.url, "code-1", name="Bob", profile="bob")
            assert stored == [True]

    asyncio.run(main())


def test_the_same_line_again_is_the_same_membership() -> None:
    async def main() -> None:
        async with FakeHub() as fake:
            members = Members(fake)
            first = await enrol(fake.url, "code-1", name="Bob", profile="bob")
            token = first.token()
            assert await enrol(fake.url, "code-1", name="Bob", profile="bob") == first
            assert list(members.channels) == [token] == [first.token()]

    asyncio.run(main())


def test_a_fresh_code_adds_its_channel_which_comes_last() -> None:
    async def main() -> None:
        async with FakeHub() as fake:
            members = Members(fake)
            await enrol(fake.url, "code-1", name="Bob", profile="bob")
            made = await enrol(fake.url, "code-2", name="Bob", profile="bob")
            assert made.channels == (("c1", "#c1"), ("c2", "#c2"))
            assert len(members.channels) == 1
            assert (await enrol(fake.url, "code-1", name="Bob", profile="bob")).channels[-1] == ("c1", "#c1")
            assert set((await refresh(made)).channels) == set(made.channels)

    asyncio.run(main())


def test_secrets_never_go_to_another_hub() -> None:
    async def main() -> None:
        async with FakeHub() as one, FakeHub() as two:
            Members(one), Members(two)
            await enrol(one.url, "code-1", name="Bob", profile="bob")
            with pytest.raises(RelayError) as caught:
                await enrol(two.url, "code-1", name="Bob", profile="bob")
            assert caught.value.code == "profile_taken"
            one.fail("POST /enroll", *[Answer(status=403)] * 2)
            two.fail("POST /enroll", *[Answer(status=403)] * 2)
            for hub in (one, two):
                with pytest.raises(HubError):
                    await enrol(hub.url, "code-1", name="Ann", profile="ann")
            assert one.calls[-1].json["clientSecret"] != two.calls[-1].json["clientSecret"]

    asyncio.run(main())


def test_a_membership_that_ended_is_replaced() -> None:
    async def main() -> None:
        async with FakeHub() as fake:
            members = Members(fake)
            old = (await enrol(fake.url, "code-1", name="Bob", profile="bob")).token()
            members.channels.clear()
            made = await enrol(fake.url, "code-2", name="Bob", profile="bob")
            assert made.token() != old

    asyncio.run(main())


def test_a_wrong_code_leaves_no_profile_behind() -> None:
    async def main() -> None:
        async with FakeHub() as fake:
            Members(fake)
            with pytest.raises(HubError) as caught:
                await enrol(fake.url, "wrong", name="Bob", profile="bob")
            assert caught.value.status == 403
            assert len(fake.calls) == 1

    asyncio.run(main())
    assert profiles.names() == []


def test_a_connection_file_makes_the_default_profile() -> None:
    async def main() -> Profile:
        async with FakeHub() as fake:
            Members(fake)
            return await import_connection(json.dumps({"url": fake.url, "code": "code-1", "workspace": "w1"}))

    assert asyncio.run(main()).name == "default"


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", '{"url": 1, "code": "x"}', "[" * 100_000])
def test_what_is_no_connection_file_is_said(text: str) -> None:
    with pytest.raises(RelayError) as caught:
        asyncio.run(import_connection(text))
    assert caught.value.code == "usage"


@pytest.mark.parametrize(
    ("name", "profile"),
    [("bob", "bob"), ("Bob Smith", "Bob-Smith"), ("../../x", "x"), ("...", "default"), ("Žofie", "-ofie".lstrip("-"))],
)
def test_any_name_makes_a_profile_name(name: str, profile: str) -> None:
    assert profile_name(name) == profile
