"""Four bugs, made on purpose: the simulation catches each of them."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from simulation.judge import Broken
from simulation.machine import History

from relay_receiver.journal import chain
from relay_receiver.journal.tables import ApprovalState
from relay_receiver.receiver import approvals, results
from relay_receiver.receiver.hand import Hand
from relay_receiver.receiver.handover import Handover
from relay_receiver.receiver.intake import Intake

HISTORIES = 600
"""So many are enough, whatever the seed; each bug is found in the first few dozen."""


def acknowledge_before_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    commit = Intake._commit

    async def hasty(self: Intake, feed: Any, batch: Any) -> None:
        subscription = self._parts.binding.subscription
        if batch.events and subscription is not None:
            await self._acknowledge(feed, subscription, batch.cursor)
        await commit(self, feed, batch)

    monkeypatch.setattr(Intake, "_commit", hasty)


def count_the_chain_after_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    call, count = Handover.call, chain.count_turn

    async def late(self: Handover, job: Any) -> Any:
        handed = await call(self, job)
        if job.by_agent and not job.counted:
            await self._parts.write(count)
        return handed

    monkeypatch.setattr(chain, "count_turn", lambda _: None)
    monkeypatch.setattr(Handover, "call", late)


def post_before_output(monkeypatch: pytest.MonkeyPatch) -> None:
    finish = Hand.finish

    async def eager(self: Hand, end: results.Ending, **more: Any) -> None:
        job = self.held()
        if results.is_posted(job, end.outcome):
            said = results.body(job, self._parts.binding.channel, end, run=job.run_claim is not None)
            await self._parts.hub.post_message(json.loads(json.dumps(said)))
        await finish(self, end, **more)

    monkeypatch.setattr(Hand, "finish", eager)


def take_silence_for_a_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    decision = approvals.decision

    def eager(of: approvals.Approval) -> dict[str, Any]:
        return {"decision": "accept"} if of.state is ApprovalState.EXPIRED else decision(of)

    monkeypatch.setattr(approvals, "decision", eager)


@pytest.mark.parametrize(
    ("bug", "promise"),
    [
        (acknowledge_before_commit, "P1"),
        (count_the_chain_after_the_call, "P7"),
        (post_before_output, "P3"),
        (take_silence_for_a_yes, "P11"),
    ],
)
def test_a_deliberate_bug_is_caught(
    monkeypatch: pytest.MonkeyPatch, bug: Callable[[pytest.MonkeyPatch], None], promise: str
) -> None:
    bug(monkeypatch)
    with pytest.raises(Broken, match=f"(?m)^{promise}:"):
        run_state_machine_as_test(
            seed(1)(type(f"With{promise}", (History,), {})),
            settings=settings(
                max_examples=HISTORIES,
                stateful_step_count=12,
                deadline=None,
                database=None,
                report_multiple_bugs=False,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            ),
        )
