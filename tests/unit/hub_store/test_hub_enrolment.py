import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from support_hubstore import Desk

from relay_receiver.hub import channels, enrolment, members, runs
from relay_receiver.hub.auth import Credentials, digest
from relay_receiver.hub.errors import Refusal


def _code(hub: Desk, *, channel: str | None = None, person: bool = False) -> str:
    return str(hub.do(enrolment.invite, hub.actor("owner"), channel or hub.lab, person=person).code)


def _enroll(hub: Desk, code: str, secret: str, identity: str = "identity", name: str = "bob") -> Any:
    return hub.do(enrolment.enroll, code=code, client_secret=secret, identity_secret=identity, name=name)


def _refused(call: Any, *args: Any, **kwargs: Any) -> tuple[int, str, str]:
    with pytest.raises(Refusal) as refusal:
        call(*args, **kwargs)
    return refusal.value.status, refusal.value.code, refusal.value.sentence


def test_a_lost_answer_is_asked_for_again_also_after_the_code_expired(hub: Desk) -> None:
    code = _code(hub)
    first = _enroll(hub, code, "secret")
    hub.now += 3600
    assert _enroll(hub, code, "secret") == first
    assert _enroll(hub, code.upper(), "secret") == first


def test_wrong_used_and_expired_codes_get_one_answer(hub: Desk) -> None:
    used, expired = _code(hub), _code(hub)
    _enroll(hub, used, "secret")
    told = {
        _refused(_enroll, hub, used, "other"),
        _refused(_enroll, hub, used, "secret", "other identity"),
        _refused(_enroll, hub, "wrong", "secret"),
    }
    hub.now += 600
    told.add(_refused(_enroll, hub, expired, "secret"))
    assert len(told) == 1
    assert told.pop()[:2] == (403, "invite_invalid")


def test_of_two_that_use_a_code_at_once_one_joins(hub: Desk) -> None:
    code = _code(hub)

    def one(n: int) -> bool:
        try:
            _enroll(hub, code, f"secret{n}", f"identity{n}")
        except Refusal:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(one, range(8))) == 1


def test_the_same_secret_with_a_fresh_code_gains_the_channel(hub: Desk) -> None:
    other = hub.do(channels.create, hub.actor("owner"), "other")["id"]
    first, second = _enroll(hub, _code(hub), "secret"), _enroll(hub, _code(hub, channel=other), "secret")
    assert first["agentId"] == second["agentId"]
    assert hub.bearer("secret").channels == {hub.lab, other}


def test_an_agents_secret_never_becomes_a_persons(hub: Desk) -> None:
    _enroll(hub, _code(hub), "secret")
    assert _refused(_enroll, hub, _code(hub, person=True), "secret")[:2] == (403, "other_kind")
    owners = hub.do(enrolment.owner_code).code
    assert _refused(_enroll, hub, owners, "secret")[:2] == (403, "other_kind")
    assert hub.bearer("secret").role == "agent"


def test_only_people_invite(hub: Desk) -> None:
    hub.agent("bob")
    hub.agent("pat", person=True)
    assert _refused(hub.do, enrolment.invite, hub.actor("bob"), hub.lab, person=False)[:2] == (403, "person_needed")
    assert hub.do(enrolment.invite, hub.actor("pat"), hub.lab, person=False).expires_at == hub.now + 600


def test_no_secret_is_stored(hub: Desk) -> None:
    code = _code(hub)
    _enroll(hub, code, "a-secret-of-somebody", "an-identity-of-somebody")
    hub.store.close()
    stored = b"".join(path.read_bytes() for path in hub.store.path.parent.iterdir() if path.is_file())
    for secret in (code, "a-secret-of-somebody", "an-identity-of-somebody", *hub.tokens.values()):
        assert secret.encode() not in stored
    hub.store = type(hub.store).open(hub.store.path)
    hub.store.close()


def test_leaving_ends_what_the_membership_could_see(hub: Desk) -> None:
    hub.agent("bob")
    actor = hub.actor("bob")
    assert hub.do(channels.leave, actor, hub.lab) is True
    assert hub.do(channels.leave, actor, hub.lab) is False
    assert hub.actor("bob").channels == frozenset()
    assert hub.events("member.updated")[-1]["left"] is True


def test_an_identity_is_changed_by_its_rev_and_its_members_take_the_name(hub: Desk) -> None:
    _enroll(hub, _code(hub), "secret")
    key = digest("identity")
    change = {"name": "Robert", "signature": "does things"}
    told = hub.do(members.change_identity, key, rev=1, changes=change)
    assert (told["rev"], told["name"]) == (2, "Robert")
    with pytest.raises(Refusal) as refusal:
        hub.do(members.change_identity, key, rev=1, changes=change)
    assert (refusal.value.status, refusal.value.data["identity"]["rev"]) == (409, 2)
    assert hub.bearer("secret").name == "Robert"


def test_remembered_credentials_end_with_the_commit_that_ends_them(hub: Desk) -> None:
    bob = hub.agent("bob")
    credentials = Credentials(hub.store)
    asked = hub.ask(bob)
    ref = hub.ref("job", fence=hub.take("bob")["fence"], claim="c")
    _, token = hub.begin("bob", asked["id"], ref)

    async def main() -> None:
        assert credentials.actor(token) is credentials.actor(token)
        await hub.store.write(
            runs.finish,
            hub.actor("bob"),
            ref,
            state="failed",
            outcome=None,
            reason=None,
            at=hub.now,
        )
        assert credentials.actor(token) is None

    asyncio.run(main())
