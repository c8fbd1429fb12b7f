"""After a hub was restored from a backup: results that it has lost are posted again, under the same operation ids."""

import json

from relay_receiver.client.errors import HubError
from relay_receiver.jobs.job import Job
from relay_receiver.journal import jobs
from relay_receiver.receiver.parts import Parts

RECENT = 200
"""Jobs that are looked at, the newest first."""


async def repost(parts: Parts) -> int:
    """Find results that the hub no longer has, though it has their requests, and queue them for the outbox.

    Called after the feed has healed. Returns how many were queued.

    Raises:
        HubAway, HubError: the hub could not be asked; what was found until then is queued.
    """
    found = 0
    for job in await parts.journal.read(jobs.list_jobs, limit=RECENT):
        if job.result is None or job.body is None:
            continue
        if await _has(parts, job.result) or not await _has(parts, job.message):
            continue
        await parts.write(jobs.set_columns, job.id, result=None, body=_without_run(job))
        await parts.write(jobs.note, job.id, at=parts.now(), who="hub", why="the hub has lost the result; posted again")
        found += 1
    return found


async def _has(parts: Parts, message: str) -> bool:
    try:
        await parts.hub.message(message)
    except HubError as error:
        if error.status == 404:
            return False
        raise
    return True


def _without_run(job: Job) -> str:
    body = json.loads(job.body or "{}")
    body.pop("run", None)
    return json.dumps(body)
