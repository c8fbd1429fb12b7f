"""After a hub was restored from a backup: results that it has lost are posted again, under the same operation ids."""

from relay_receiver.client.errors import HubError
from relay_receiver.jobs.job import Job
from relay_receiver.journal import binding as bindings
from relay_receiver.journal import jobs
from relay_receiver.journal.journal import Connection
from relay_receiver.receiver import results
from relay_receiver.receiver.parts import Parts


async def mend(parts: Parts) -> int:
    """Compare results with what the hub has, and queue those that it has lost for the outbox; how many those are.

    All are compared that it gave a number past the last event on which it and the journal agree, or which the stream
    has not shown yet. A process that dies in between does it when it starts.

    Raises:
        HubAway, HubError: the hub could not be asked; what was found until then is queued.
    """
    stored = await parts.journal.read(bindings.get)
    if stored is None:
        return 0
    if stored.mend_after is not None:
        await subscribe_again(parts)
    after = parts.unseen.after(parts.binding.watermark or 0)
    if stored.mend_after is not None:
        after = min(after, stored.mend_after)
    found = 0
    while posted := await parts.journal.read(jobs.posted_after, after):
        for job in posted:
            found += await look(parts, job)
            after = job.result_event or after
    parts.unseen.clear()
    if stored.mend_after is not None:
        await parts.write(bindings.mended, stored.mend_after)
    return found


async def look(parts: Parts, job: Job) -> bool:
    """Queue the result of one job again, where the hub has lost it and still has what it answers. True if so.

    Raises:
        HubAway, HubError: the hub could not be asked.
    """
    if job.result is None or job.body is None:
        return False
    if await _has(parts, job.result) or not await _has(parts, job.message):
        return False
    await parts.write(_post_again, job, at=parts.now())
    return True


async def look_at_unseen(parts: Parts) -> bool:
    """Whether the hub has lost results that the stream has not shown yet: it has all, or not even the newest.

    Raises:
        HubAway, HubError: the hub could not be asked.
    """
    return bool(parts.unseen) and not await _has(parts, parts.unseen.newest())


def _post_again(conn: Connection, job: Job, *, at: float) -> None:
    body = results.without_run(job.body or "{}")
    jobs.set_columns(conn, job.id, result=None, result_event=None, body=body)
    jobs.note(conn, job.id, at=at, who="hub", why="the hub has lost the result; posted again")


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
