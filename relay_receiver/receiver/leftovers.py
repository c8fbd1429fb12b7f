"""What a job of unknown outcome left running: ended before anything else begins beside it (P6)."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from relay_receiver.jobs.job import Job
from relay_receiver.jobs.state import JobState
from relay_receiver.journal import jobs
from relay_receiver.processes.ending import end_child, left_by, living
from relay_receiver.processes.kept import Kept
from relay_receiver.receiver.parts import Parts
from relay_receiver.wire.errors import RelayError

GRACE_SECONDS = 2.0
"""Between TERM and KILL."""


def find(job: Job, spool: Path) -> list[int]:
    """The processes of an unknown job that still run, found by identity and by the nonce that they carry."""
    return living(_kept(job, spool)) if job.state is JobState.UNKNOWN else []


def end(job: Job, spool: Path, *, note: Callable[[str], None]) -> list[int]:
    """End them: TERM, grace, KILL, each process by its identity; which ones there were.

    Args:
        note: writes down what is about to be ended.

    Raises:
        RelayError: something still lives.
    """
    found = find(job, spool)
    if found:
        note(told(found))
        _end(job, spool)
    return found


async def end_beside(parts: Parts, job: Job, *, who: str) -> list[int]:
    """`end`, while the receiver does other things."""
    found = await asyncio.to_thread(find, job, parts.spool)
    if found:
        await parts.write(jobs.note, job.id, at=parts.now(), who=who, why=told(found))
        parts.log.info("ending what a job left running", extra={"job": job.id, "processes": found})
        await asyncio.to_thread(_end, job, parts.spool)
    return found


def told(found: Sequence[int]) -> str:
    """What is ended, in words."""
    which = "process" if len(found) == 1 else "processes"
    return f"ends what it left running: {which} {', '.join(map(str, found))}"


def _kept(job: Job, spool: Path) -> Kept | None:
    return left_by(spool, f"{job.id}.{job.attempt}", job.keeper)


def _end(job: Job, spool: Path) -> None:
    kept = _kept(job, spool)
    if kept is not None and not end_child(kept, grace=GRACE_SECONDS):
        alive = ", ".join(map(str, living(kept)))
        raise RelayError(
            f"What job {job.id} left running could not be ended (process {alive}): nothing else begins beside it.",
            code="still_running",
            hint=f"End it, then settle the job again; relay receiver job {job.id} shows what lives",
        )
