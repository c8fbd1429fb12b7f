"""The order of things, on a real journal: intent before the call, body before the post, one job at a time."""

import asyncio
from pathlib import Path

import pytest
from support_parts import Bench, message, refused

from relay_receiver.adapters.base import (
    Finished,
    HandoverLost,
    NeverStarted,
    Refused,
    Result,
    Scope,
    Started,
    Unprovable,
)
from relay_receiver.client.errors import HubAway
from relay_receiver.jobs.job import job_id
from relay_receiver.journal import binding as bindings
from relay_receiver.receiver.settle import Verb, settle


def run(scenario: object) -> None:
    asyncio.run(scenario)  # type: ignore[arg-type]


def test_the_intent_is_committed_before_the_adapter_is_called_and_the_body_before_the_post(tmp_path: Path) -> None:
    seen: dict[str, dict[str, str]] = {}

    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            b.adapter.on_submit = lambda _: seen.__setitem__("submit", b.jobs())
            b.hub.on_call = lambda name: seen.__setitem__(name, b.jobs())
            b.arrive(message(1))
            await b.until(lambda: b.jobs() == {"m1": "done"})
            assert b.hub.names() == ["begin", "post"]

    run(scenario())
    assert seen == {"begin": {"m1": "queued"}, "submit": {"m1": "submitting"}, "post": {"m1": "output"}}


def test_a_refusal_of_the_binding_keeps_the_order_and_closes_the_run(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            b.adapter.answers = [Refused(scope=Scope.BINDING, reason="busy")]
            b.arrive(message(1), message(2))
            await b.until(lambda: "finish" in b.hub.names())
            assert b.hub.log[-1][1]["state"] == "not-accepted"
            assert b.parts.situation.refused == "busy"
            b.clock += 600
            b.runner.kick()
            await b.until(lambda: b.jobs() == {"m1": "done", "m2": "done"})
            assert [work.message for work in b.adapter.works] == ["m1", "m1", "m2"]
            claims = [said["claim"] for name, said in b.hub.log if name == "begin"]
            assert len(set(claims)) == 3

    run(scenario())


def test_a_refusal_of_the_job_ends_it_as_failed_and_the_queue_goes_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            b.adapter.answers = [Refused(scope=Scope.JOB, reason="too large")]
            b.arrive(message(1), message(2))
            await b.until(lambda: b.jobs() == {"m1": "failed", "m2": "done"})
            assert "too large" in b.hub.posts()[0]["content"]

    run(scenario())


def test_a_lost_hand_over_is_unknown_told_once_and_blocks_the_next_job(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            b.adapter.answers = [HandoverLost("the pipe broke")]
            b.adapter.recovery = Unprovable(reason="nobody knows")
            b.arrive(message(1), message(2))
            await b.until(b.hub.posts)
            b.clock += 3600
            b.runner.kick()
            await b.until(b.runner.rest.is_set)
            assert b.jobs() == {"m1": "unknown", "m2": "queued"}
            [notice] = b.hub.posts()
            assert notice["kind"] == "message"
            assert notice["notice"]
            assert notice["operationId"].startswith("receiver-notice:")
            assert len(b.adapter.works) == 1

    run(scenario())


def test_proof_that_turns_up_later_frees_an_unknown_job(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            b.adapter.answers = [HandoverLost("the pipe broke")]
            b.adapter.recovery = Unprovable(reason="nobody knows")
            b.arrive(message(1))
            await b.until(b.hub.posts)
            key = f"{job_id('w', 'a_me', 'c', 'm1')}.1"
            b.runner.take(Finished(key=key, result=Result.COMPLETED, text="after all"))
            await b.until(lambda: b.jobs() == {"m1": "done"})
            assert b.hub.posts()[-1]["content"] == "after all"

    run(scenario())


@pytest.mark.parametrize(
    ("verb", "end", "said"),
    [(Verb.ACCEPT, "done", "was done"), (Verb.ABANDON, "abandoned", "Given up"), (Verb.RETRY, "done", "done")],
)
def test_a_person_settles_an_unknown_job(tmp_path: Path, verb: Verb, end: str, said: str) -> None:
    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            b.adapter.answers = [HandoverLost("the pipe broke")]
            b.adapter.recovery = Unprovable(reason="nobody knows")
            b.arrive(message(1), message(2))
            await b.until(b.hub.posts)

            async def settled() -> None:
                await b.parts.write(
                    settle,
                    job_id("w", "a_me", "c", "m1"),
                    verb,
                    channel="c",
                    text="it was done",
                    reason="seen",
                    who="os:me",
                    at=b.clock,
                )
                await b.runner.reload()

            await b.runner.ask(settled)
            await b.until(lambda: b.jobs() == {"m1": end, "m2": "done"})
            results = [post for post in b.hub.posts() if post["kind"] == "result" and post["replyTo"] == "m1"]
            assert len(results) == 1
            assert said in results[0]["content"]
            assert [work.message for work in b.adapter.works].count("m1") == (2 if verb is Verb.RETRY else 1)

    run(scenario())


def test_a_job_in_flight_is_never_handed_over_again_without_proof(tmp_path: Path) -> None:
    async def first() -> None:
        async with Bench(tmp_path) as b:
            b.adapter.answers = [None]
            b.arrive(message(1))
            await b.until(lambda: b.jobs() == {"m1": "running"})

    async def second(recovery: object, works: int) -> dict[str, str]:
        async with Bench(tmp_path) as b:
            b.adapter.recovery = recovery  # type: ignore[assignment]
            await b.until(lambda: b.runner.rest.is_set() and b.jobs()["m1"] != "running")
            assert len(b.adapter.works) == works
            return b.jobs()

    run(first())
    assert asyncio.run(second(Unprovable(reason="?"), 0)) == {"m1": "unknown"}
    assert asyncio.run(second(NeverStarted(proof="the claim is ours"), 1)) == {"m1": "done"}


def test_the_same_body_is_posted_again_when_its_answer_was_lost(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            b.hub.fail["post"] = [HubAway("cut", sent=True), refused("internal", status=503)]
            b.arrive(message(1))
            await b.until(lambda: len(b.hub.posts()) == 1)
            for count in (2, 3):
                b.clock += 60
                b.runner.kick()
                await b.until(lambda count=count: len(b.hub.posts()) == count)
            await b.until(lambda: b.jobs() == {"m1": "done"})
            assert b.hub.posts()[0] == b.hub.posts()[1] == b.hub.posts()[2]
            assert len(b.adapter.works) == 1

    run(scenario())


def test_a_result_that_the_hub_refuses_for_good_fails_keeps_its_text_and_the_queue_goes_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            b.hub.fail["post"] = [refused("invalid", status=422)]
            b.arrive(message(1), message(2))
            await b.until(lambda: b.jobs() == {"m1": "failed", "m2": "done"})
            assert "finish" in b.hub.names()

            async def settled() -> None:
                await b.parts.write(
                    settle,
                    job_id("w", "a_me", "c", "m1"),
                    Verb.ACCEPT,
                    channel="c",
                    text=None,
                    reason=None,
                    who="os:me",
                    at=b.clock,
                )
                await b.runner.reload()

            await b.runner.ask(settled)
            await b.until(lambda: len(b.hub.posts()) == 3)
            assert b.hub.posts()[2]["content"] == "done"

    run(scenario())


@pytest.mark.parametrize(
    ("code", "status", "state"),
    [
        ("run_finished", 409, "done_elsewhere"),
        ("withdrawn", 409, "withdrawn"),
        ("expired", 409, "expired"),
        ("not_found", 404, "withdrawn"),
    ],
)
def test_what_the_run_guard_refuses_is_never_run_here(tmp_path: Path, code: str, status: int, state: str) -> None:
    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            b.hub.fail["begin"] = [refused(code, status=status)]
            b.arrive(message(1))
            await b.until(lambda: b.jobs() == {"m1": state})
            assert b.adapter.works == []
            assert b.hub.posts() == []

    run(scenario())


def test_begin_is_repeated_with_the_same_claim_while_the_hub_is_away(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            b.hub.fail["begin"] = [HubAway("gone", sent=True)]
            b.arrive(message(1))
            await b.until(lambda: b.hub.names() == ["begin"])
            b.clock += 60
            b.runner.kick()
            await b.until(lambda: b.jobs() == {"m1": "done"})
            first, second = (said["claim"] for name, said in b.hub.log if name == "begin")
            assert first == second

    run(scenario())


def test_the_ceiling_interrupts_and_an_unconfirmed_interrupt_is_unknown(tmp_path: Path) -> None:
    async def scenario(*, confirmed: bool) -> dict[str, str]:
        folder = tmp_path / str(confirmed)
        folder.mkdir()
        async with Bench(folder) as b:
            b.adapter.answers = [None]
            b.adapter.interrupts = confirmed
            b.adapter.recovery = Unprovable(reason="?")
            b.arrive(message(1))
            await b.until(lambda: b.jobs() == {"m1": "running"})
            b.clock += 3601
            b.runner.kick()
            await b.until(lambda: b.jobs()["m1"] not in {"running", "output"})
            return b.jobs()

    assert asyncio.run(scenario(confirmed=True)) == {"m1": "failed"}
    assert asyncio.run(scenario(confirmed=False)) == {"m1": "unknown"}


def test_the_first_item_of_the_agent_is_committed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            b.adapter.answers = [None]
            b.arrive(message(1))
            await b.until(lambda: b.adapter.works)
            b.runner.take(Started(key=b.adapter.works[0].key))
            await b.until(lambda: b.runner.job is not None and b.runner.job.started_at)

    run(scenario())


def test_results_that_a_restored_hub_has_lost_are_posted_again_under_the_same_operation_id(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            b.arrive(message(1), message(2))
            await b.until(lambda: b.jobs() == {"m1": "done", "m2": "done"})
            lost = refused("not_found", status=404)
            b.hub.fail["message"] = [lost, lost, lost, None]  # m1's result, m1, m2's result, m2
            await b.runner.ask(b.runner.post_again)
            await b.until(lambda: len(b.hub.posts()) == 3)
            first, again = (p for p in b.hub.posts() if p["replyTo"] == "m2")
            assert "run" not in again
            assert {**again, "run": first["run"]} == first
            assert len(b.adapter.works) == 2

    run(scenario())


def test_mending_after_a_restore_is_tried_until_the_hub_could_be_asked(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            b.arrive(message(1))
            await b.until(lambda: b.jobs() == {"m1": "done"})
            b.journal.write_now(bindings.mend, 0)
            b.hub.fail["acknowledge"] = [HubAway("gone", sent=False), refused("not_found", status=404)]
            b.hub.fail["message"] = [refused("not_found", status=404)]
            await b.runner.ask(b.runner.post_again)
            await b.until(lambda: len(b.hub.posts()) == 2)
            assert b.hub.names().count("acknowledge") == 2
            found = b.journal.read_now(bindings.get)
            assert found is not None
            assert found.subscription == b.parts.binding.subscription != "s1"
            assert b.parts.lease_in_doubt.is_set()

    run(scenario())


def test_a_result_whose_run_the_hub_has_forgotten_is_posted_by_itself(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            b.hub.fail["post"] = [refused("unknown_run", status=404)]
            b.arrive(message(1))
            await b.until(lambda: b.jobs() == {"m1": "done"})
            first, again = b.hub.posts()
            assert {**again, "run": first["run"]} == first
            assert "run" not in again

    run(scenario())


def test_without_the_lease_nothing_is_begun(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            b.parts.situation.reconciled = False
            b.arrive(message(1))
            await b.until(b.runner.rest.is_set)
            assert b.hub.names() == []
            b.parts.situation.reconciled = True
            b.runner.kick()
            await b.until(lambda: b.jobs() == {"m1": "done"})

    run(scenario())


def test_quiet_posts_nothing_to_an_ordinary_message_and_ends_a_request_visibly(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            b.adapter.answers = ["COLLABORATION_QUIET\n", "  "]
            b.arrive(message(1, kind="message", mentions=("a_me",)), message(2))
            await b.until(lambda: b.jobs() == {"m1": "quiet", "m2": "quiet"})
            [post] = b.hub.posts()
            assert post["replyTo"] == "m2"
            assert post["outcome"] == "quiet"
            assert b.hub.names().count("finish") == 1

    run(scenario())


def test_a_claim_that_the_hub_had_back_before_the_journal_knew_is_replaced_and_the_job_runs_once(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            b.hub.fail["begin"] = [refused("claim_freed")]
            b.arrive(message(1))
            await b.until(lambda: b.jobs() == {"m1": "done"})
            first, second = [said["claim"] for name, said in b.hub.log if name == "begin"]
            assert first != second
            assert len(b.adapter.works) == 1

    run(scenario())
