"""What the hub holds open for this binding against what the journal knows: neither side is left hanging."""

from typing import Any

from relay_receiver.client.errors import HubAway, HubError
from relay_receiver.jobs.job import Job
from relay_receiver.jobs.outcome import WIRE_OUTCOME, Outcome
from relay_receiver.jobs.state import AT_THE_AGENT, TERMINAL, JobState
from relay_receiver.jobs.transitions import JobEvent
from relay_receiver.journal import jobs
from relay_receiver.receiver import leftovers
from relay_receiver.receiver.parts import Parts
from relay_receiver.receiver.repost import look, look_at_unseen
from relay_receiver.receiver.runner import Runner
from relay_receiver.wire.errors import RelayError


async def reconcile(parts: Parts, runner: Runner, run: dict[str, Any] | None) -> None:
    """Settle what can be settled. Called between two steps of the runner, after each renewal of the lease.

    Args:
        run: the run that the hub holds open for this binding, as the lease call returned it.
    """
    parts.situation.foreign_run = None
    if not parts.situation.reconciled:
        runner.hub_is_back()
    try:
        if run is None:
            await _closed_at_hub(parts, runner)
        else:
            await _open_at_hub(parts, runner, run)
        if await look_at_unseen(parts):
            await runner.post_again()
    except HubAway as error:
        parts.situation.hub_error = error.sentence
        return
    except HubError as error:
        parts.situation.last_error = error.sentence
        parts.log.warning("reconciliation refused", extra={"why": error.sentence, "code": error.code})
    parts.situation.reconciled = True


async def _open_at_hub(parts: Parts, runner: Runner, run: dict[str, Any]) -> None:
    job = await parts.journal.read(jobs.get, str(run.get("requestId")))
    if job is None or not _is_ours(parts, job, run):
        parts.situation.foreign_run = run
        parts.log.warning(
            "a run that this journal does not know is open at the hub", extra={"run": run.get("requestId")}
        )
        return
    if job.state in TERMINAL:
        # Where it was posted, that closed the run: the hub was restored, and has lost the result with the end.
        await look(parts, job)
        await _finish(parts, job, run, state=_end(job), outcome=_outcome(job))
    elif job.state is JobState.QUEUED:
        await _finish(parts, job, run, state="not-accepted", outcome=None)
        await parts.write(jobs.run_closed, job.id, claim=run.get("claim"))
    elif run.get("cancelRequested") and job.state in AT_THE_AGENT and job.cancel is None:
        await runner.cancel(job.id, "the requester")


def _is_ours(parts: Parts, job: Job, run: dict[str, Any]) -> bool:
    """Whether this journal knows what became of the run. Job ids are the same on every machine; holders are not.

    What another holder has begun may be at its agent now: freeing it would run it twice.
    """
    holder = run.get("holderId")
    if holder == parts.binding.holder:
        return True
    if holder != job.holder:
        return False
    # Begun by this journal before it was adopted. A copy of it may have gone on, but not behind what is known here.
    if job.state is JobState.QUEUED:
        return run.get("claim") == job.run_claim
    return bool(job.attempt >= int(run.get("attempt") or 0))


async def _closed_at_hub(parts: Parts, runner: Runner) -> None:
    """A job in flight here whose run is closed there was settled by a person, or its result is already stored."""
    job = runner.job
    if job is None or job.run_claim is None or job.state is JobState.OUTPUT:
        return
    told = await parts.hub.stage(
        channel=parts.binding.channel,
        holder=job.holder or parts.binding.holder,
        fence=job.fence,
        request_id=job.id,
        claim=job.run_claim,
        state="unknown" if job.state is JobState.UNKNOWN else "running",
        detail=None,
    )
    settled = (told or {}).get("settled")
    if not settled:
        return
    freed = settled.get("outcome") == "not-accepted"
    if job.state in AT_THE_AGENT:
        # Nothing else begins while the agent works on it. What was freed to be done is being done: its answer counts.
        if not freed and job.cancel is None:
            await runner.cancel(job.id, "a person at the hub")
        return
    why = f"a person settled it at the hub: {settled.get('reason') or settled.get('outcome')}"
    try:
        await leftovers.end_beside(parts, job, who="hub")
    except RelayError as error:
        # It stays unknown, and blocks the queue: nothing begins beside what still runs.
        parts.situation.last_error = error.sentence
        return
    if freed:
        await parts.write(jobs.requeue, job.id, JobEvent.RETRY, at=parts.now(), who="hub", why=why)
        await parts.write(jobs.run_closed, job.id)
        await runner.reload()
        return
    event = JobEvent.ABANDON if settled.get("outcome") in {"abandoned", "failed"} else JobEvent.ELSEWHERE
    await parts.write(jobs.move, job.id, event, at=parts.now(), who="hub", why=why)
    await runner.reload()


async def _finish(parts: Parts, job: Job, run: dict[str, Any], *, state: str, outcome: str | None) -> None:
    await parts.hub.finish(
        channel=parts.binding.channel,
        holder=str(run.get("holderId") or job.holder or parts.binding.holder),
        fence=str(run.get("fence") or job.fence or parts.situation.fence),
        request_id=job.id,
        claim=run.get("claim"),
        state=state,
        outcome=outcome,
        reason=job.error,
    )


def _end(job: Job) -> str:
    if job.state in {JobState.WITHDRAWN, JobState.EXPIRED}:
        return job.state.value
    return "completed" if job.state in {JobState.DONE, JobState.QUIET} else "failed"


def _outcome(job: Job) -> str | None:
    if job.state in {JobState.WITHDRAWN, JobState.EXPIRED}:
        return None
    return WIRE_OUTCOME[Outcome(job.outcome)] if job.outcome else "failed"
