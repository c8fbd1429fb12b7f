import asyncio
import datetime as dt
import email.utils
import json
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from relay_receiver.client.hub import Hub
from relay_receiver.client.rest import HubAway, HubError, Rest, Unauthorized
from relay_receiver.testing.clock import FakeClock
from relay_receiver.testing.hub import Answer, FakeHub, Fault, Reset, Stall

Case = Callable[[FakeHub, Rest, FakeClock], Awaitable[Any]]

STATE = {"protocol": 1}


def run(coroutine_function: Case) -> Any:
    async def main() -> Any:
        async with FakeHub() as fake:
            fake.on("GET", "/state", lambda _: Answer(json=STATE))
            clock = FakeClock()
            async with rest_of(fake, clock) as rest:
                return await coroutine_function(fake, rest, clock)

    return asyncio.run(main())


def rest_of(fake: FakeHub, clock: FakeClock) -> Rest:
    now = clock.clock()
    return Rest(fake.url, "s3cret", sleep=now.sleep, jitter=now.jitter, now=now.wall)


def test_a_call_carries_the_token_and_reads_json() -> None:
    async def case(fake: FakeHub, rest: Rest, _: object) -> None:
        assert await rest.call("GET", "/state") == STATE
        assert fake.calls[0].headers["authorization"] == "Bearer s3cret"

    run(case)


def test_one_connection_is_kept() -> None:
    async def case(fake: FakeHub, rest: Rest, _: object) -> None:
        for _each in range(5):
            await rest.call("GET", "/state")
        assert len(fake._writers) == 1

    run(case)


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"])
def test_a_loopback_hub_is_reached_whatever_proxies_say(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert run(lambda _fake, rest, _clock: rest.call("GET", "/state")) == STATE


def test_other_hubs_go_through_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with FakeHub() as proxy:
            monkeypatch.setenv("HTTP_PROXY", proxy.url)
            monkeypatch.delenv("NO_PROXY", raising=False)
            monkeypatch.delenv("no_proxy", raising=False)
            async with Rest("http://hub.invalid:7423", "s3cret") as rest:
                with pytest.raises(HubError) as caught:
                    await rest.call("GET", "/state")
        assert caught.value.status == 404
        assert "hub.invalid" in proxy.calls[0].path or proxy.calls[0].headers["host"].startswith("hub.invalid")

    asyncio.run(main())


def test_a_refused_connection_certainly_sent_nothing() -> None:
    async def case(fake: FakeHub, rest: Rest, _: object) -> None:
        await fake.refuse()
        with pytest.raises(HubAway) as caught:
            await rest.call("POST", "/invites", json={})
        assert caught.value.sent is False
        assert caught.value.code == "hub_away"

    run(case)


@pytest.mark.parametrize("fault", [Reset(), Reset(applied=True)])
def test_a_cut_call_may_have_been_done(fault: Fault) -> None:
    async def case(fake: FakeHub, rest: Rest, _: object) -> None:
        fake.fail("GET /state", fault)
        with pytest.raises(HubAway) as caught:
            await rest.call("GET", "/state")
        assert caught.value.sent is True

    run(case)


def test_a_stalling_hub_ends_at_the_time_limit() -> None:
    async def case(fake: FakeHub, rest: Rest, _: object) -> None:
        await rest.call("GET", "/state")  # so that the connection is there already
        fake.fail("GET /state", Stall())
        with pytest.raises(HubAway) as caught:
            await rest.call("GET", "/state", timeout=0.05)
        assert caught.value.sent is True
        assert await rest.call("GET", "/state") == STATE

    run(case)


def test_an_error_is_told_with_all_its_data() -> None:
    async def case(fake: FakeHub, rest: Rest, _: object) -> None:
        body = {"error": "Someone has it.", "code": "lease_held", "holder": "x"}
        fake.fail("GET /state", Answer(status=409, json=body))
        with pytest.raises(HubError) as caught:
            await rest.call("GET", "/state", retry=True)
        error = caught.value
        assert (error.status, error.code, error.sentence, error.data) == (
            409,
            "lease_held",
            "Someone has it.",
            {"holder": "x"},
        )
        assert len(fake.calls) == 1

    run(case)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b"[" * 100_000, b'{"error": 7, "code": []}'])
def test_an_error_that_no_hub_wrote_is_still_one_sentence(body: bytes) -> None:
    async def case(fake: FakeHub, rest: Rest, _: object) -> None:
        fake.fail("GET /state", Answer(status=502, body=body))
        with pytest.raises(HubError) as caught:
            await rest.call("GET", "/state")
        assert (caught.value.status, caught.value.code) == (502, "http_502")
        assert fake.url in caught.value.sentence

    run(case)


@pytest.mark.parametrize("body", [b"<html>", b"[" * 100_000, b"\xff"])
def test_an_answer_that_is_not_json_is_no_hub(body: bytes) -> None:
    async def case(fake: FakeHub, rest: Rest, _: object) -> None:
        fake.fail("GET /state", Answer(body=body))
        with pytest.raises(HubError) as caught:
            await rest.call("GET", "/state")
        assert caught.value.code == "not_a_hub"

    run(case)


def test_a_redirect_is_not_followed_with_the_token() -> None:
    async def case(fake: FakeHub, rest: Rest, _: object) -> None:
        fake.fail("GET /state", Answer(status=302, headers={"Location": "http://127.0.0.1:9/"}))
        with pytest.raises(HubError) as caught:
            await rest.call("GET", "/state")
        assert caught.value.code == "redirected"

    run(case)


def test_a_credential_that_does_not_count_is_not_tried_again() -> None:
    async def case(fake: FakeHub, rest: Rest, _: object) -> None:
        fake.fail("GET /state", Answer(status=401, json={"error": "No.", "code": "unauthorized"}))
        with pytest.raises(Unauthorized):
            await rest.call("GET", "/state", retry=True)
        assert len(fake.calls) == 1

    run(case)


def test_an_answer_over_the_limit_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relay_receiver.client.rest.ANSWER_BYTES", 100)

    async def case(fake: FakeHub, rest: Rest, _: object) -> None:
        fake.fail("GET /state", Answer(json="x" * 1000))
        with pytest.raises(HubError) as caught:
            await rest.call("GET", "/state")
        assert caught.value.code == "answer_too_large"

    run(case)


@pytest.mark.parametrize("fault", [Reset(), Answer(status=500), Answer(status=503), Answer(status=429)])
def test_an_idempotent_call_is_made_again(fault: Fault) -> None:
    async def case(fake: FakeHub, rest: Rest, clock: FakeClock) -> None:
        fake.fail("GET /state", fault, fault)
        assert await rest.call("GET", "/state", retry=True) == STATE
        assert len(fake.calls) == 3
        assert clock.slept == sorted(clock.slept)

    run(case)


@pytest.mark.parametrize("fault", [Reset(), Answer(status=500), Answer(status=503)])
def test_a_call_that_may_have_been_done_is_not_done_twice(fault: Fault) -> None:
    async def case(fake: FakeHub, rest: Rest, _: object) -> None:
        fake.fail("POST /invites", fault)
        with pytest.raises((HubAway, HubError)):
            await rest.call("POST", "/invites", json={}, retry=True)
        assert len(fake.calls) == 1

    run(case)


def test_a_call_that_certainly_was_not_done_is_made_again() -> None:
    async def case(fake: FakeHub, rest: Rest, _: object) -> None:
        fake.on("POST", "/invites", lambda _: Answer(json={"code": "c"}))
        fake.fail("POST /invites", Answer(status=429))
        assert await rest.call("POST", "/invites", json={}, retry=True) == {"code": "c"}

    run(case)


def test_it_gives_up_after_a_few_tries() -> None:
    async def case(fake: FakeHub, rest: Rest, clock: FakeClock) -> None:
        fake.fail("GET /state", *[Reset()] * 9)
        with pytest.raises(HubAway):
            await rest.call("GET", "/state", retry=True)
        assert len(fake.calls) == 4
        assert sum(clock.slept) < 3

    run(case)


def test_retry_after_in_seconds_is_waited_for() -> None:
    async def case(fake: FakeHub, rest: Rest, clock: FakeClock) -> None:
        fake.fail("GET /state", Answer(status=429, headers={"Retry-After": "4"}))
        assert await rest.call("GET", "/state", retry=True) == STATE
        assert clock.slept == [4.0]

    run(case)


def test_retry_after_as_a_date_is_waited_for() -> None:
    async def case(fake: FakeHub, rest: Rest, clock: FakeClock) -> None:
        when = dt.datetime.fromtimestamp(clock.wall + 3, tz=dt.UTC)
        fake.fail(
            "GET /state", Answer(status=503, headers={"Retry-After": email.utils.format_datetime(when, usegmt=True)})
        )
        assert await rest.call("GET", "/state", retry=True) == STATE
        assert clock.slept == [3.0]

    run(case)


def test_a_long_retry_after_is_told_instead() -> None:
    async def case(fake: FakeHub, rest: Rest, clock: FakeClock) -> None:
        fake.fail("GET /state", Answer(status=429, headers={"Retry-After": "20"}))
        with pytest.raises(HubError) as caught:
            await rest.call("GET", "/state", retry=True)
        assert caught.value.retry_after == 20
        assert clock.slept == []

    run(case)


@pytest.mark.parametrize("fault", [Reset(applied=True), Reset(), Answer(status=500)])
def test_a_message_whose_answer_is_lost_is_posted_once(fault: Fault) -> None:
    async def case(fake: FakeHub, rest: Rest, _: object) -> None:
        fake.fail("POST /messages", fault)
        stored = await Hub(rest).post_message({"channel": "c1", "content": "hello", "kind": "message"})
        posts = [json.loads(call.body) for call in fake.calls]
        assert len(posts) == 2
        assert posts[0] == posts[1]
        assert [each["id"] for each in fake._messages] == [stored["id"]]

    run(case)


def test_a_given_operation_id_is_kept() -> None:
    async def case(fake: FakeHub, rest: Rest, _: object) -> None:
        await Hub(rest).post_message({"channel": "c1", "content": "x", "kind": "message", "operationId": "mine"})
        assert fake.calls[0].json["operationId"] == "mine"

    run(case)


def test_an_impatient_hub_leaves_repeating_to_its_caller() -> None:
    async def case(fake: FakeHub, rest: Rest, _: object) -> None:
        fake.fail("GET /state", Reset())
        with pytest.raises(HubAway):
            await Hub(rest, patient=False).state()

    run(case)


def test_ids_in_paths_are_one_part() -> None:
    async def case(fake: FakeHub, rest: Rest, _: object) -> None:
        with pytest.raises(HubError):
            await Hub(rest).message("../state?x#y")
        assert fake.calls[0].path == "/messages/../state?x#y"

    run(case)


def test_no_secret_is_shown() -> None:
    async def case(fake: FakeHub, rest: Rest, _: object) -> None:
        fake.fail("GET /state", Answer(status=500), Reset())
        assert "s3cret" not in repr(rest)
        for _each in range(2):
            with pytest.raises((HubAway, HubError)) as caught:
                await rest.call("GET", "/state")
            said = "".join(traceback.format_exception(caught.value))
            assert "s3cret" not in f"{said} {caught.value!r} {vars(caught.value)}"

    run(case)


def test_an_unusable_proxy_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "strange://127.0.0.1:9")
    with pytest.raises(Exception, match="proxy that the environment names") as caught:
        Rest("http://hub.invalid", "s3cret")
    assert caught.value.code == "bad_proxy"


def test_all_tries_together_keep_the_time_limit() -> None:
    async def case(fake: FakeHub, rest: Rest, _: object) -> None:
        await rest.call("GET", "/state")  # so that the connection is there already
        fake.fail("GET /state", Stall(), Stall())
        with pytest.raises(HubAway):
            await rest.call("GET", "/state", retry=True, timeout=0.05)
        await fake.until(lambda: len(fake.calls) == 2)
        assert len(fake.faults["GET /state"]) == 1

    run(case)
