"""Jobs in the journal: who is next, and the guarded moves. Nothing else changes a job's state."""

import json
import secrets
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, delete, false, func, or_, select, text, update

from relay_receiver.jobs.job import Job
from relay_receiver.jobs.state import OPEN, TERMINAL, JobState
from relay_receiver.jobs.text import clean
from relay_receiver.jobs.transitions import JobEvent, TransitionError, advance, posted_state
from relay_receiver.journal import approvals, chain, history, room
from relay_receiver.journal.errors import MissedTransition
from relay_receiver.journal.tables import (
    IN_FLIGHT_JOB,
    OPEN_JOB,
    POSTED_JOB,
    QUEUED_JOB,
    UNPOSTED_JOB,
    WAITING_FOR_ROOM,
    approval,
    job,
    job_event,
    message,
)

AT_ONCE = 100
"""Rows that one look for expired or unposted jobs returns at the most."""
RECEIVED_SHOWN = 10_000
"""Wakes that wait for room are counted up to here."""

REPOSTED = 200
"""The newest jobs, which stay whatever the policy: a restored hub may have lost their results."""
CHAIN_SECONDS = 30 * 86400.0
"""How long it is remembered from where a chain counts that waits nowhere here."""
PRUNE_WINDOW = 2000
"""Oldest jobs that one pruning looks at: more than can be open, so that it always gets on."""

_JOB = select(*(job.c[field.name] for field in fields(Job)))
# Built once: building a statement costs more than SQLite takes for it.
_GET = _JOB.where(job.c.id == bindparam("job_id"))
_OF_MESSAGE = _JOB.where(job.c.message == bindparam("message_id"))
_IN_FLIGHT = _JOB.where(text(IN_FLIGHT_JOB))
_OLDEST = _JOB.where(text(QUEUED_JOB), job.c.by_agent == bindparam("agents")).order_by(job.c.event, job.c.id).limit(1)
_NEWEST = _JOB.order_by(job.c.event.desc(), job.c.id.desc()).limit(bindparam("most"))
_NEWEST_OPEN = _JOB.where(text(OPEN_JOB)).order_by(text("+event DESC"), job.c.id.desc()).limit(bindparam("most"))
"""The plus keeps SQLite from walking all jobs in order for the few that are open."""
_UNPOSTED = _JOB.where(text(UNPOSTED_JOB)).order_by(job.c.event).limit(AT_ONCE)
_EXPIRED = _JOB.where(text(QUEUED_JOB), job.c.expires_at <= bindparam("now")).order_by(job.c.expires_at).limit(AT_ONCE)
_POSTED_AFTER = (
    _JOB.where(text(POSTED_JOB), job.c.result_event > bindparam("after")).order_by(job.c.result_event).limit(AT_ONCE)
)
_CHANGE = update(job).where(job.c.id == bindparam("job_id"))
_MOVE = _CHANGE.where(job.c.state == bindparam("source"))

_NEW_ATTEMPT: dict[str, Any] = dict.fromkeys(
    ("execution", "keeper", "text", "outcome", "error", "evidence", "body", "usage", "started_at", "ended_at")
)
"""What an attempt left behind goes before the next one; its history stays in `job_event`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Next:
    """Which job is next."""

    job: Job | None
    paused: bool
    """Agents' jobs wait for a person (P7)."""


def get(conn: Connection, job_id: str) -> Job | None:
    """The job of that id."""
    return _one(conn, _GET, job_id=job_id)


def of_message(conn: Connection, message_id: str) -> Job | None:
    """The job that a message made."""
    return _one(conn, _OF_MESSAGE, message_id=message_id)


def in_flight(conn: Connection) -> Job | None:
    """The one job that is neither queued nor at its end."""
    return _one(conn, _IN_FLIGHT)


def next_queued(conn: Connection) -> Next:
    """The oldest queued job; while the chain guard holds agents' jobs back, the oldest of a person."""
    person, agent = (_one(conn, _OLDEST, agents=agents) for agents in (False, True))
    if agent is None or (person is not None and (person.event, person.id) < (agent.event, agent.id)):
        return Next(job=person, paused=False)
    if chain.load(conn, root=agent.root).allows(agent.root, agent.hop):
        return Next(job=agent, paused=False)
    return Next(job=person, paused=True)


def move(
    conn: Connection,
    /,
    job_id: str,
    event: JobEvent,
    *,
    at: float,
    who: str,
    why: str = "",
    expect: JobState | None = None,
    **columns: Any,  # noqa: ANN401 - any field of its own type
) -> Job:
    """Move a job as the table of transitions says, and change `columns` with it.

    Where it ends, wakes that wait for its room become jobs in the same transaction.

    Args:
        expect: the state that it must be in; the one that it is in unless given.
        who: `receiver`, `adapter`, `hub`, `requester`, or which person.

    Raises:
        MissedTransition: it is not in the expected state, or not there.
        TransitionError: the table has no such move.
    """
    before = _expect(conn, job_id, expect)
    return _move(conn, before, advance(before.state, event), at=at, who=who, why=why, **columns)


def posted(
    conn: Connection,
    job_id: str,
    *,
    result: str | None,
    event: int | None = None,
    at: float,
    deliverable: bool = True,
    why: str = "",
) -> Job:
    """End a job in `output`: its result is at the hub, there is none to post, or the hub will never take it.

    Args:
        result: the id of the result message.
        event: its number at the hub.
        deliverable: False where the hub refused it for good: the job has failed, and keeps its text.

    Raises:
        MissedTransition: it is not in `output`.
    """
    before = _expect(conn, job_id, JobState.OUTPUT)
    target = posted_state(before.state, before.outcome or "", deliverable=deliverable)
    columns: dict[str, Any] = {"result": result, "result_event": event, "run_claim": None}
    if not deliverable:
        columns |= {"body": None, "error": why or before.error}
    return _move(conn, before, target, at=at, who="hub", why=why, **columns)


def submit(conn: Connection, job_id: str, *, holder: str, fence: str | None, run_claim: str | None, at: float) -> Job:
    """Commit the intent to hand a queued job over: a new attempt, counted by the chain guard (P2, P7).

    Args:
        run_claim: the claim of the run that the hub opened for it.

    Raises:
        MissedTransition: it is not queued any more.
    """
    before = _expect(conn, job_id, JobState.QUEUED)
    if not before.by_agent:
        chain.reset(conn, at=at)
    elif not before.counted:
        chain.count_turn(conn)
    return _move(
        conn,
        before,
        advance(before.state, JobEvent.SUBMIT),
        at=at,
        who="receiver",
        why="",
        **_NEW_ATTEMPT,
        attempt=before.attempt + 1,
        counted=True,
        notified=False,
        holder=holder,
        fence=fence,
        run_claim=run_claim,
        submitted_at=at,
    )


def requeue(
    conn: Connection, job_id: str, event: JobEvent, *, at: float, who: str, why: str, keep_run: bool = True
) -> Job:
    """Put a job back into the queue, in its old order, under a new claim.

    Args:
        event: `REFUSED` or `RETRY`.
        keep_run: its run may still be open at the hub; `run_claim` stays until `run_closed`.

    Raises:
        MissedTransition: it is not there.
        TransitionError: it cannot be queued again.
    """
    before = _expect(conn, job_id, None)
    target = advance(before.state, event)
    if target is not JobState.QUEUED:
        raise TransitionError(before.state, event)
    columns: dict[str, Any] = {**_NEW_ATTEMPT, "claim": secrets.token_hex(16), "notified": False}
    if not keep_run:
        columns["run_claim"] = None
    return _move(conn, before, target, at=at, who=who, why=why, **columns)


def run_closed(conn: Connection, job_id: str, *, claim: str | None = None) -> Job:
    """Record that the hub holds no run of this job open any more.

    Args:
        claim: of the run that was given back. Where the job still waits with it, a begin was sent whose answer was
            never acted on; the job gets a new one, since a hub never takes a claim again that was given back.
    """
    closed = set_columns(conn, job_id, run_claim=None)
    spent = closed.state is JobState.QUEUED and closed.claim == claim
    return set_columns(conn, job_id, claim=secrets.token_hex(16)) if spent else closed


def set_columns(conn: Connection, /, job_id: str, **columns: Any) -> Job:  # noqa: ANN401 - any field of its own type
    """Change fields of a job, never its state; what is the same already is not written.

    Raises:
        LookupError: there is no such job.
        ValueError: the state was among the columns.
    """
    if "state" in columns:
        raise ValueError("the state of a job is changed by a move")
    before = get(conn, job_id)
    if before is None:
        raise LookupError(f"there is no job {job_id}")
    changed = {name: value for name, value in _storable(columns).items() if getattr(before, name) != value}
    if changed:
        conn.execute(_CHANGE, {"job_id": job_id, **changed})
    return before.evolve(**changed)


def note(conn: Connection, job_id: str, *, at: float, who: str, why: str) -> None:
    """Write a line into a job's history without moving it.

    Raises:
        LookupError: there is no such job.
    """
    found = get(conn, job_id)
    if found is None:
        raise LookupError(f"there is no job {job_id}")
    history.append(conn, job_id, source=found.state, target=found.state, attempt=found.attempt, at=at, who=who, why=why)


def list_jobs(conn: Connection, *, limit: int, open_only: bool = False) -> list[Job]:
    """The newest jobs by event, newest first."""
    return _all(conn, _NEWEST_OPEN if open_only else _NEWEST, most=limit)


def counts(conn: Connection) -> dict[str, int]:
    """How many jobs are in each open state, and as `received` how many wakes wait for room (up to 10,000)."""
    by_state = dict.fromkeys(sorted(state.value for state in OPEN), 0)
    rows = conn.execute(select(job.c.state, func.count()).where(text(OPEN_JOB)).group_by(job.c.state))
    by_state.update((state, count) for state, count in rows)
    waiting = select(message.c.id).where(text(WAITING_FOR_ROOM)).limit(RECEIVED_SHOWN).subquery()
    by_state["received"] = conn.execute(select(func.count()).select_from(waiting)).scalar_one()
    return by_state


def events(conn: Connection, job_id: str) -> list[history.Entry]:
    """The history of a job, oldest first."""
    return history.of(conn, job_id)


def ahead(conn: Connection, job_id: str) -> int:
    """How many open jobs come before this one in the order of the queue."""
    me = conn.execute(select(job.c.event, job.c.id).where(job.c.id == job_id)).one_or_none()
    if me is None:
        return 0
    earlier = or_(job.c.event < me.event, (job.c.event == me.event) & (job.c.id < me.id), text(IN_FLIGHT_JOB))
    before = select(func.count()).select_from(job).where(text(OPEN_JOB), job.c.id != job_id, earlier)
    return conn.execute(before).scalar_one()


def unposted(conn: Connection) -> list[Job]:
    """Ended jobs whose result is not at the hub: cancelled here, accepted late, or lost there in a restore."""
    return _all(conn, _UNPOSTED)


def posted_after(conn: Connection, event: int) -> list[Job]:
    """The first `AT_ONCE` jobs whose result is at the hub under a higher number than `event`, in that order."""
    return _all(conn, _POSTED_AFTER, after=event)


def expired(conn: Connection, now: float) -> list[Job]:
    """Queued jobs whose request has expired."""
    return _all(conn, _EXPIRED, now=now)


def prune(conn: Connection, *, keep_count: int, keep_age: float | None, at: float, most: int = 500) -> int:
    """Forget old ended jobs with their history; how many jobs went. What is open or has to be posted stays.

    So do the newest `REPOSTED`: a hub that is restored from a backup may need their results again.

    Args:
        keep_count: more than these, the newest, go.
        keep_age: seconds after its end at which a job goes, however few there are; None for never.
    """
    chain.prune(conn, before=at - CHAIN_SECONDS)
    needed, floor = _nth_newest(conn, REPOSTED), _nth_newest(conn, max(REPOSTED, keep_count))
    if needed is None:
        return 0
    oldest = select(job.c.id).where(job.c.event <= needed).order_by(job.c.event, job.c.id).limit(PRUNE_WINDOW)
    too_many = job.c.event <= (-1 if floor is None else floor)
    too_old = false() if keep_age is None else func.coalesce(job.c.ended_at, job.c.created_at) <= at - keep_age
    old = list(
        conn.execute(
            select(job.c.id)
            .where(
                job.c.id.in_(oldest), text(f"NOT ({OPEN_JOB})"), text(f"NOT ({UNPOSTED_JOB})"), or_(too_many, too_old)
            )
            .limit(most)
        ).scalars()
    )
    if old:
        ids = func.json_each(json.dumps(old)).table_valued("value")
        for table, column in ((job_event, job_event.c.job), (approval, approval.c.job), (job, job.c.id)):
            conn.execute(delete(table).where(column.in_(select(ids.c.value))))
    return len(old)


def _nth_newest(conn: Connection, number: int) -> int | None:
    """The event of the newest job of those that are not among the newest `number`."""
    ordered = select(job.c.event).order_by(job.c.event.desc(), job.c.id.desc())
    return conn.execute(ordered.offset(number).limit(1)).scalar_one_or_none()


def _expect(conn: Connection, job_id: str, state: JobState | None) -> Job:
    found = get(conn, job_id)
    if found is None or (state is not None and found.state is not state):
        raise MissedTransition(job_id, expected=state, found=None if found is None else found.state)
    return found


def _move(
    conn: Connection,
    before: Job,
    target: JobState,
    *,
    at: float,
    who: str,
    why: str,
    **columns: Any,  # noqa: ANN401 - any field of its own type
) -> Job:
    """The one place where a state changes: guarded by the state before, and written into the history."""
    if (target in TERMINAL or target is JobState.OUTPUT) and before.state is not JobState.OUTPUT:
        columns.setdefault("ended_at", at)
    changed = {"state": target, **_storable(columns)}
    done = conn.execute(_MOVE, {"job_id": before.id, "source": before.state, **changed})
    if done.rowcount != 1:
        found = get(conn, before.id)
        raise MissedTransition(before.id, expected=before.state, found=None if found is None else found.state)
    moved = before.evolve(**changed)
    history.append(conn, before.id, source=before.state, target=target, attempt=moved.attempt, at=at, who=who, why=why)
    if before.state is JobState.WAITING and target is not JobState.RUNNING:
        approvals.drop(conn, before.id, at=at)
    if target in TERMINAL:
        room.promote(conn, at=at)
    return moved


def _storable(columns: dict[str, Any]) -> dict[str, Any]:
    """Text from anywhere (an error may quote any bytes) as SQLite takes it."""
    return {name: clean(value) if isinstance(value, str) else value for name, value in columns.items()}


def _one(conn: Connection, wanted: Select[Any], **given: object) -> Job | None:
    row = conn.execute(wanted, given).one_or_none()
    return None if row is None else _job(row)


def _all(conn: Connection, wanted: Select[Any], **given: object) -> list[Job]:
    return [_job(row) for row in conn.execute(wanted, given)]


def _job(row: Row[Any]) -> Job:
    values = dict(row._mapping)  # noqa: SLF001 - SQLAlchemy's public name for it
    return Job(**values | {"state": JobState(values["state"])})
