"""What the simulation has found, each as the shortest history that shows it."""

import asyncio
from pathlib import Path

import pytest
from support_parts import Bench, message

from relay_receiver.adapters.base import NeverStarted
from relay_receiver.client.errors import HubAway, HubError
from relay_receiver.jobs.job import job_id
from relay_receiver.journal import binding as bindings
from relay_receiver.receiver.intake import _store as store
from relay_receiver.receiver.reconcile import reconcile


def run(scenario: object) -> None:
    asyncio.run(scenario)  # type: ignore[arg-type]


def test_a_person_frees_a_run_at_the_hub_while_its_answer_is_on_its_way(tmp_path: Path) -> None:
    """The answer is posted: the request would wait for ever for another one."""
    freed = HubError("A person has settled this run.", status=409, code="run_settled", data={"outcome": "not-accepted"})

    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            b.hub.fail["post"] = [freed]
            b.arrive(message(1))
            await b.until(lambda: b.jobs() == {"m1": "done"})
            assert ["run" in post for post in b.hub.posts()] == [True, False]

    run(scenario())


def open_run(holder: str, claim: str, attempt: int = 1) -> dict[str, object]:
    job = job_id("w", "a_me", "c", "m1")
    return {"requestId": job, "message": "m1", "holderId": holder, "fence": 7, "claim": claim, "attempt": attempt}


def test_the_open_run_of_another_holder_is_not_freed_for_a_job_that_waits_here(tmp_path: Path) -> None:
    """Two machines make the same job of a message; what the other one has begun may be running there."""

    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            b.parts.situation.reconciled = False
            b.arrive(message(1))
            run = open_run("h_other", "theirs")
            await b.runner.ask(lambda: reconcile(b.parts, b.runner, run))
            b.runner.kick()
            await b.until(b.runner.rest.is_set)
            assert b.hub.names() == []
            assert b.parts.situation.foreign_run == run
            assert b.jobs() == {"m1": "queued"}

    run(scenario())


def test_a_claim_that_was_given_back_is_not_used_again(tmp_path: Path) -> None:
    """The answer of a begin is lost, and its run is found open at the next renewal of the lease."""

    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            b.hub.fail["begin"] = [HubAway("no answer", sent=True)]
            b.arrive(message(1))
            await b.until(lambda: "begin" in b.hub.names())
            claim = b.hub.log[0][1]["claim"]
            await b.runner.ask(lambda: reconcile(b.parts, b.runner, open_run("h1", claim)))
            await b.runner.ask(b.runner.reload)
            await b.until(lambda: b.jobs() == {"m1": "done"})
            assert b.hub.names() == ["begin", "finish", "begin", "post"]
            assert b.hub.log[2][1]["claim"] != claim

    run(scenario())


@pytest.mark.parametrize(("holder", "state", "starts"), [("h1", "done", 1), ("h2", "unknown", 0)])
def test_an_adopted_journal_proves_nothing_of_what_was_at_the_agent(
    tmp_path: Path, holder: str, state: str, starts: int
) -> None:
    """The job was in flight when the journal was copied; where the copy is, nobody has claimed it."""

    async def first() -> None:
        async with Bench(tmp_path) as b:
            b.adapter.answers = [None]
            b.arrive(message(1))
            await b.until(lambda: b.jobs() == {"m1": "running"})
            b.journal.write_now(bindings.change, holder=holder)

    async def second() -> None:
        async with Bench(tmp_path) as b:
            b.adapter.recovery = NeverStarted(proof="nobody has claimed it here")
            await b.until(lambda: b.runner.rest.is_set() and b.jobs()["m1"] != "running")
            assert b.jobs() == {"m1": state}
            assert len(b.adapter.works) == starts

    run(first())
    run(second())


def test_a_job_that_is_withdrawn_while_the_hub_is_asked_is_let_go(tmp_path: Path) -> None:
    """Its run is closed as withdrawn before the next one is begun; the runner does not stumble."""

    async def scenario() -> None:
        async with Bench(tmp_path) as b:

            def withdrawn(call: str) -> None:
                if call == "begin" and b.jobs()["m1"] == "queued":
                    b.journal.write_now(store, [], ["m1"], cursor="9", watermark=9, at=b.clock)

            b.hub.on_call = withdrawn
            b.arrive(message(1), message(2))
            await b.parts.lease_in_doubt.wait()
            run = open_run("h1", b.hub.log[0][1]["claim"])
            await b.runner.ask(lambda: reconcile(b.parts, b.runner, run))
            await b.until(lambda: b.jobs() == {"m1": "withdrawn", "m2": "done"})
            assert b.hub.names() == ["begin", "finish", "begin", "post"]
            assert (b.hub.log[1][1]["state"], b.hub.log[1][1]["outcome"]) == ("withdrawn", None)

    run(scenario())


def test_the_result_goes_out_under_the_fence_of_its_begin(tmp_path: Path) -> None:
    """The lease is lost and taken anew between begin and the commit of the intent."""

    async def scenario() -> None:
        async with Bench(tmp_path) as b:

            def taken_anew(call: str) -> None:
                if call == "begin":
                    b.parts.situation.fence = "8"

            b.hub.on_call = taken_anew
            b.arrive(message(1))
            await b.until(lambda: b.jobs() == {"m1": "done"})
            assert b.hub.log[0][1]["fence"] == b.hub.posts()[0]["run"]["fence"] == "7"

    run(scenario())
