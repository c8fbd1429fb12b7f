"""After a hub was restored from a backup: results that it has lost are posted again, under the same operation ids."""

from relay_receiver.client.errors import HubError
from relay_receiver.journal import binding as bindings
from relay_receiver.journal import jobs
from relay_receiver.receiver import results
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
        await parts.write(jobs.set_columns, job.id, result=None, body=results.without_run(job.body))
        await parts.write(jobs.note, job.id, at=parts.now(), who="hub", why="the hub has lost the result; posted again")
        found += 1
    return found


async def subscribe_again(parts: Parts) -> None:
    """Have a subscription that the hub knows: what is acknowledged is seen as received by those who asked.

    Raises:
        HubAway, HubError: the hub could not be asked.
    """
    binding = parts.binding
    if binding.subscription is None or binding.cursor is None:
        return
    try:
        await parts.hub.acknowledge(binding.subscription, binding.cursor)
    except HubError as error:
        if error.status != 404:
            raise
        made = await parts.hub.subscribe(channel=binding.channel, cursor=binding.cursor)
        subscription = str(made["id"])
        await parts.write(bindings.change, subscription=subscription)
        parts.binding = parts.binding.evolve(subscription=subscription)
        parts.lease_in_doubt.set()


async def _has(parts: Parts, message: str) -> bool:
    try:
        await parts.hub.message(message)
    except HubError as error:
        if error.status == 404:
            return False
        raise
    return True
