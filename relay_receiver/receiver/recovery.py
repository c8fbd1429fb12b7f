"""Recovery: what became of a job of which this process does not know it."""

from relay_receiver.adapters.base import Accepted, Finished, NeverStarted, Recovery, StillRunning, Unprovable, Work
from relay_receiver.jobs.job import Job
from relay_receiver.jobs.state import JobState
from relay_receiver.jobs.transitions import JobEvent
from relay_receiver.journal.approvals import Approval
from relay_receiver.journal.binding import ASK
from relay_receiver.processes.identity import ProcessIdentity, boot_id
from relay_receiver.receiver import approvals
from relay_receiver.receiver.hand import Hand
from relay_receiver.receiver.parts import Parts
from relay_receiver.receiver.watch import Watch
from relay_receiver.wire import faultpoint


async def ask(parts: Parts, job: Job) -> Recovery:
    """Ask the adapter about a job in flight; one that fails in this cannot prove anything."""
    work = Work(job=job.id, attempt=job.attempt, prompt="", message=job.message, credential=None)
    try:
        faultpoint.hit("adapter.recover.before")
        found = await parts.adapter.recover(job.execution, work)
        faultpoint.hit("adapter.recover.after")
    except Exception as error:
        parts.log.exception("recovery failed", extra={"job": job.id})
        return Unprovable(reason=f"the adapter could not say what became of it: {error!r}")
    return found


async def act(parts: Parts, hand: Hand, watch: Watch, found: Recovery, *, lost: str = "") -> None:
    """Act on the adapter's answer about the job in hand. Never hands it over again without proof.

    Args:
        lost: how the hand-over was lost, where it was.
    """
    job = hand.held()
    parts.log.info("recovered", extra={"job": job.id, "found": type(found).__name__})
    match found:
        case Finished():
            await watch.finished(found)
        case StillRunning():
            await _attached(parts, hand, watch, found)
        case NeverStarted() if job.holder != parts.binding.holder:
            # The journal was copied or restored since: where it comes from, it may have started.
            if job.state is not JobState.UNKNOWN:
                await hand.lose("this journal was adopted while the job was at the agent that it was copied from")
        case NeverStarted(proof=proof):
            await hand.requeue(JobEvent.RETRY, who="receiver", why=f"never started: {proof}")
        case Unprovable(reason=reason, evidence=evidence, suggestion=suggestion):
            if job.state is not JobState.UNKNOWN:
                await hand.lose(f"{lost}; {reason}" if lost else reason, evidence, suggestion)


async def _attached(parts: Parts, hand: Hand, watch: Watch, found: StillRunning) -> None:
    job, memory = hand.held(), hand.memory
    boot, now = parts.boot(), parts.now()
    accepted = Accepted(execution=found.execution, keeper=found.keeper)
    memory.accepted = accepted
    memory.accepted_at = memory.last_event = boot
    began = max(boot - max(0.0, now - (job.submitted_at or now)), _started(accepted.keeper))
    if job.state not in {JobState.RUNNING, JobState.WAITING}:
        await hand.move(
            JobEvent.ACCEPTED,
            who="receiver",
            why="attached again",
            execution=accepted.execution,
            keeper=accepted.keeper,
        )
    waited = await hand.found([] if parts.binding.approvals != ASK else _questions(parts, job, found))
    memory.began = min(boot, began + waited)
    if parts.binding.approvals != ASK:
        for wait in found.waits:
            await watch.give(wait.question, approvals.declined(approvals.NOT_ASKED))


def _questions(parts: Parts, job: Job, found: StillRunning) -> list[Approval]:
    return [approvals.asked(job, wait, parts.binding.approvers, at=parts.hub_now()) for wait in found.waits]


def _started(keeper: str | None) -> float:
    """When its keeper started, in boot time: no job began before that, whatever the wall clock did. 0: not known."""
    try:
        found = ProcessIdentity.from_json(keeper or "")
    except ValueError:
        return 0.0
    return found.started if found.boot == boot_id() else 0.0
