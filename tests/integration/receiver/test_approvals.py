"""Questions to people through a receiver's own parts: what is committed before what, and what is never used."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from support_parts import Bench, RememberingHub, message, refused

from relay_receiver.client.errors import HubAway
from relay_receiver.journal import approvals, waiting
from relay_receiver.journal.approvals import Approval
from relay_receiver.journal.tables import ApprovalState
from relay_receiver.receiver import approvals as asking
from relay_receiver.receiver import intake
from relay_receiver.testing.adapter import Asks, Play, ScriptedAgent
from relay_receiver.wire.message import seconds

ANN = {"id": "p_ann", "name": "Ann"}
AWAY = HubAway("The hub is away.", sent=True)
FORM = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}


class Case:
    """A bench whose agent asks."""

    def __init__(self, folder: Path, play: Play | None = None, **binding: Any) -> None:
        self.folder = folder
        self.agent = ScriptedAgent(lambda _: play or Asks())
        self.hub = RememberingHub()
        self.binding = binding

    def bench(self) -> Bench:
        return Bench(self.folder, agent=self.agent, hub=self.hub, **self.binding)

    def request(self, number: int = 0) -> dict[str, Any]:
        return list(self.hub.requests_made.values())[number]

    def answer(self, decision: Any, number: int = 0, **more: Any) -> dict[str, Any]:
        request = self.request(number)
        request.update({"state": "answered", "answer": decision, "answeredBy": ANN, **more})
        return dict(request)


def rows(bench: Bench) -> list[Approval]:
    job = bench.runner.job
    found = bench.journal.read_now(lambda conn: [row[0] for row in conn.exec_driver_sql("SELECT id FROM approval")])
    assert job is None or found is not None
    return [row for each in found if (row := bench.journal.read_now(approvals.get, each)) is not None]


def tell(bench: Bench, request: dict[str, Any]) -> list[str]:
    """As intake does with an event, in the transaction of the cursor."""
    unused = bench.journal.write_now(intake._store, [], [], [request], cursor="9", watermark=9, at=bench.clock)
    bench.runner.kick()
    return unused


async def waits(bench: Bench, case: Case, count: int = 1) -> None:
    await bench.until(lambda: len(case.hub.requests_made) == count and bench.jobs() == {"m1": "waiting"})


def run(case: Case, check: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
    async def live() -> None:
        async with case.bench() as bench:
            bench.arrive(message(1))
            await check(bench)

    asyncio.run(live())


@pytest.mark.parametrize(
    ("decision", "state"), [("accept", ApprovalState.APPROVED), ("decline", ApprovalState.DECLINED)]
)
def test_a_decision_reaches_the_agent_once_and_is_applied(tmp_path: Path, decision: str, state: ApprovalState) -> None:
    case = Case(tmp_path)

    async def check(bench: Bench) -> None:
        await waits(bench, case)
        body = next(said for name, said in case.hub.log if name == "ask")
        assert body["operationId"] == f"ask:{bench.runner.job.id}.1:{bench.runner.job.id}.1/0"  # type: ignore[union-attr]
        assert body["kind"] == "approval"
        assert body["action"] == {"kind": "command", "command": "do 0", "agentSays": "please"}
        assert seconds(body["expiresAt"]) == pytest.approx(bench.clock + 86400, abs=1)
        told = case.answer({"decision": decision})
        assert tell(bench, told) == []
        assert tell(bench, told) == []
        await bench.until(lambda: bench.jobs() == {"m1": "done"})
        assert [said for _, said in case.agent.answers] == [{"decision": decision}]
        await bench.until(lambda: "close" in case.hub.names())
        assert case.request()["state"] == "applied"
        await bench.until(lambda: rows(bench)[0].settled)
        assert (rows(bench)[0].state, rows(bench)[0].decided_by) == (state, "Ann (p_ann)")

    run(case, check)


def test_an_input_goes_back_as_its_form_was_filled_in(tmp_path: Path) -> None:
    case = Case(tmp_path, Asks(schema=FORM))

    async def check(bench: Bench) -> None:
        await waits(bench, case)
        assert (case.request()["kind"], case.request()["schema"]) == ("form", FORM)
        tell(bench, case.answer({"colour": "red"}))
        await bench.until(lambda: bench.jobs() == {"m1": "done"})
        assert [said for _, said in case.agent.answers] == [{"decision": "accept", "answers": {"colour": "red"}}]

    run(case, check)


@pytest.mark.parametrize(
    "forged",
    [
        {"actionHash": "0" * 64},
        {"id": "req_other"},
        {"author": {"id": "a_other"}},
        {"channel": "elsewhere"},
        {"operationId": "ask:other.1:q"},
        {"answer": {"decision": "acceptForSession"}},
        {"answeredBy": {"id": "a_me", "name": "me"}},
        {"partial": True, "answer": None},
    ],
)
def test_an_answer_that_does_not_fit_is_not_used_and_the_question_stays_open(
    tmp_path: Path, forged: dict[str, Any]
) -> None:
    case = Case(tmp_path)

    async def check(bench: Bench) -> None:
        await waits(bench, case)
        before = dict(case.request())
        told = {**before, "state": "answered", "answer": {"decision": "accept"}, "answeredBy": ANN, **forged}
        tell(bench, told)
        await bench.runner.ask(_nothing)
        assert rows(bench)[0].state is ApprovalState.OPEN
        assert case.agent.answers == []
        assert bench.jobs() == {"m1": "waiting"}
        tell(bench, case.answer({"decision": "decline"}))
        await bench.until(lambda: bench.jobs() == {"m1": "done"})

    run(case, check)


async def _nothing() -> None:
    """Runs between two steps: what came before it was heard."""


def test_only_the_approvers_of_the_moment_when_it_was_asked_decide(tmp_path: Path) -> None:
    case = Case(tmp_path, approvers=("p_bob",))

    async def check(bench: Bench) -> None:
        await waits(bench, case)
        assert case.request()["approvers"] == ["p_bob"]
        [why] = tell(bench, case.answer({"decision": "accept"}))
        assert "p_ann" in why
        assert case.agent.answers == []
        tell(bench, case.answer({"decision": "accept"}, answeredBy={"id": "p_bob", "name": "Bob"}))
        await bench.until(lambda: bench.jobs() == {"m1": "done"})

    run(case, check)


def test_two_questions_wait_for_both_answers(tmp_path: Path) -> None:
    case = Case(tmp_path, Asks(count=2))

    async def check(bench: Bench) -> None:
        await waits(bench, case, 2)
        tell(bench, case.answer({"decision": "accept"}, 1))
        await bench.until(lambda: len(case.agent.answers) == 1)
        await bench.until(lambda: any(each.told for each in rows(bench)))
        assert bench.jobs() == {"m1": "waiting"}
        tell(bench, case.answer({"decision": "decline"}, 0))
        await bench.until(lambda: bench.jobs() == {"m1": "done"})
        assert case.hub.posts()[0]["content"] == '"accept", "decline"'

    run(case, check)


def test_a_hub_that_is_away_is_asked_again_under_the_same_operation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "CEILING", 0.01)
    case = Case(tmp_path)
    case.hub.fail["ask"] = [AWAY, refused("internal", status=500), refused("too_many_open"), None]

    async def check(bench: Bench) -> None:
        await waits(bench, case)
        bodies = [said for name, said in case.hub.log if name == "ask"]
        assert len(bodies) == 4
        assert all(body == bodies[0] for body in bodies)

    run(case, check)


def test_nobody_who_could_be_asked_in_time_is_a_decline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "CEILING", 0.01)
    case = Case(tmp_path, approval_time=60.0)
    case.hub.fail["ask"] = [AWAY] * 10_000

    async def check(bench: Bench) -> None:
        await bench.until(lambda: bench.jobs() == {"m1": "waiting"} and "ask" in case.hub.names())
        bench.clock += 61
        await bench.until(lambda: bench.jobs() == {"m1": "done"})
        [(_, said)] = case.agent.answers
        assert said["decision"] == "decline"
        assert "in time" in said["note"]

    run(case, check)


@pytest.mark.parametrize("error", [refused("run_settled"), refused("invalid_value", status=422)])
def test_what_the_hub_will_never_take_is_declined_with_the_reason(tmp_path: Path, error: Exception) -> None:
    case = Case(tmp_path)
    case.hub.fail["ask"] = [error]

    async def check(bench: Bench) -> None:
        await bench.until(lambda: bench.jobs() == {"m1": "done"})
        [(_, said)] = case.agent.answers
        assert (said["decision"], "nobody could be asked" in said["note"]) == ("decline", True)

    run(case, check)


def test_an_expired_request_declines_with_a_note(tmp_path: Path) -> None:
    case = Case(tmp_path)

    async def check(bench: Bench) -> None:
        await waits(bench, case)
        case.request().update(state="expired")
        tell(bench, dict(case.request()))
        await bench.until(lambda: bench.jobs() == {"m1": "done"})
        [(_, said)] = case.agent.answers
        assert (said["decision"], "in time" in said["note"]) == ("decline", True)

    run(case, check)


def test_a_request_that_a_restored_hub_has_lost_is_made_again(tmp_path: Path) -> None:
    case = Case(tmp_path)

    async def check(bench: Bench) -> None:
        await waits(bench, case)
        case.hub.requests_made.clear()
        bench.approvals.look_soon()
        await bench.until(lambda: len(case.hub.requests_made) == 1)
        tell(bench, case.answer({"decision": "accept"}))
        await bench.until(lambda: bench.jobs() == {"m1": "done"})

    run(case, check)


def test_a_missed_event_is_made_up_for_by_a_look(tmp_path: Path) -> None:
    case = Case(tmp_path)

    async def check(bench: Bench) -> None:
        await waits(bench, case)
        case.answer({"decision": "accept"})
        bench.approvals.look_soon()
        await bench.until(lambda: bench.jobs() == {"m1": "done"})
        assert [said for _, said in case.agent.answers] == [{"decision": "accept"}]

    run(case, check)


def test_a_cancel_closes_what_was_asked_and_a_late_answer_changes_nothing(tmp_path: Path) -> None:
    case = Case(tmp_path)

    async def check(bench: Bench) -> None:
        await waits(bench, case)
        job = bench.runner.job
        assert job is not None
        await bench.runner.ask(lambda: bench.runner.cancel(job.id, "os:me"))
        await bench.until(lambda: bench.jobs() == {"m1": "cancelled"})
        await bench.until(lambda: case.request()["state"] == "superseded")
        tell(bench, case.answer({"decision": "accept"}))
        await bench.runner.ask(_nothing)
        assert case.agent.answers == []
        assert rows(bench)[0].state is ApprovalState.CLOSED

    run(case, check)


def test_a_receiver_that_asks_nobody_declines_and_keeps_nothing(tmp_path: Path) -> None:
    case = Case(tmp_path, approvals="decline")

    async def check(bench: Bench) -> None:
        await bench.until(lambda: bench.jobs() == {"m1": "done"})
        assert rows(bench) == []
        assert "ask" not in case.hub.names()
        assert case.agent.answers[0][1]["decision"] == "decline"

    run(case, check)


@pytest.mark.parametrize("answered", ["before", "away", "after"])
def test_the_next_process_goes_on_waiting_for_the_same_answer(tmp_path: Path, answered: str) -> None:
    case = Case(tmp_path)

    async def first() -> None:
        async with case.bench() as bench:
            bench.arrive(message(1))
            await waits(bench, case)
            case.agent.listen(lambda _: None)
            if answered == "before":
                bench.journal.write_now(
                    intake._store,
                    [],
                    [],
                    [case.answer({"decision": "accept"})],
                    cursor="9",
                    watermark=9,
                    at=bench.clock,
                )

    async def second() -> None:
        if answered == "away":
            case.answer({"decision": "accept"})
        async with case.bench() as bench:
            if answered == "after":
                await bench.until(lambda: "look" in case.hub.names())
                tell(bench, case.answer({"decision": "accept"}))
            await bench.until(lambda: bench.jobs() == {"m1": "done"})
            assert [said for _, said in case.agent.answers] == [{"decision": "accept"}]
            assert case.agent.starts == [f"{case.request()['job']}.1"]
            assert len(case.hub.requests_made) == 1

    asyncio.run(first())
    asyncio.run(second())


@pytest.mark.parametrize("restarted", [False, True])
def test_the_time_that_a_job_waits_does_not_count_against_its_ceiling(tmp_path: Path, *, restarted: bool) -> None:
    case = Case(tmp_path, Asks(goes_on=True), ceiling=100.0)

    async def goes_on(bench: Bench) -> None:
        tell(bench, case.answer({"decision": "accept"}))
        await bench.until(lambda: bench.jobs() == {"m1": "running"})
        await bench.runner.ask(_nothing)
        assert bench.jobs() == {"m1": "running"}
        case.agent.end(case.agent.running()[0], text="in time")
        await bench.until(lambda: bench.jobs() == {"m1": "done"})
        assert case.hub.posts()[0]["content"] == "in time"

    async def first() -> None:
        async with case.bench() as bench:
            bench.arrive(message(1))
            await waits(bench, case)
            bench.clock += 5000
            if restarted:
                case.agent.listen(lambda _: None)
            else:
                await goes_on(bench)

    async def second() -> None:
        async with case.bench() as bench:
            bench.clock += 6000
            job = await bench.until(lambda: bench.runner.job)
            await bench.runner.ask(_nothing)
            assert await bench.parts.journal.read(waiting.waited, job, at=bench.clock) == pytest.approx(6000, abs=1)
            await goes_on(bench)

    asyncio.run(first())
    if restarted:
        asyncio.run(second())
