"""The chain guard's memory: how many turns agents drove here, and from which hop each chain counts (P7)."""

import secrets

from sqlalchemy import Connection, bindparam, delete, or_, select, text, update
from sqlalchemy.dialects.sqlite import insert

from relay_receiver.jobs.chain import Chain, bases_after_resume
from relay_receiver.journal import history
from relay_receiver.journal.tables import OPEN_JOB, QUEUED_JOB, binding, chain_base, job

BASES = 1000
"""Chains that wait nowhere here of which it is remembered from where they count."""

_LIMIT_AND_COUNT = select(binding.c.chain_limit, binding.c.chain_count)
_BASES = select(chain_base.c.root, chain_base.c.base)
_BASE = _BASES.where(chain_base.c.root == bindparam("chain"))
_COUNT = update(binding).values(chain_count=binding.c.chain_count + 1)
_PAUSE = select(binding.c.chain_pause)
_RESET = (
    update(binding)
    .where(or_(binding.c.chain_count != 0, bindparam("waits")))
    .values(chain_count=0, chain_pause=bindparam("fresh"))
)
_WAITING = select(job.c.root, job.c.hop).where(text(QUEUED_JOB), job.c.by_agent)


def load(conn: Connection, *, root: str | None = None) -> Chain:
    """What the guard decides from.

    Args:
        root: only the base of this chain; every one unless given.
    """
    limit, count = conn.execute(_LIMIT_AND_COUNT).one()
    rows = conn.execute(_BASES) if root is None else conn.execute(_BASE, {"chain": root})
    return Chain(limit=limit, count=count, bases={row.root: row.base for row in rows})


def pause(conn: Connection) -> str:
    """What the pause of now is called, if it is one: it changes whenever the guard is let go."""
    return str(conn.execute(_PAUSE).scalar_one())


def count_turn(conn: Connection) -> None:
    """Count one more turn that an agent triggered."""
    conn.execute(_COUNT)


def reset(conn: Connection, *, at: float) -> None:
    """Let agents' chains go on: the count is 0, and each chain that waits in the queue counts from here."""
    bases = bases_after_resume((row.root, row.hop) for row in conn.execute(_WAITING))
    conn.execute(_RESET, {"waits": bool(bases), "fresh": secrets.token_hex(8)})
    if not bases:
        return
    base = insert(chain_base)
    conn.execute(
        base.on_conflict_do_update(index_elements=["root"], set_={"base": base.excluded.base, "at": base.excluded.at}),
        [{"root": root, "base": hop, "at": at} for root, hop in bases.items()],
    )


def resume(conn: Connection, *, at: float, who: str) -> None:
    """`reset` on a person's word, noted with the job that waited longest.

    Args:
        who: which person.
    """
    oldest = conn.execute(
        select(job.c.id, job.c.state, job.c.attempt)
        .where(text(QUEUED_JOB), job.c.by_agent)
        .order_by(job.c.event, job.c.id)
        .limit(1)
    ).one_or_none()
    reset(conn, at=at)
    if oldest is not None:
        history.append(
            conn,
            oldest.id,
            source=oldest.state,
            target=oldest.state,
            attempt=oldest.attempt,
            at=at,
            who=who,
            why="agents' chains may go on",
        )


def prune(conn: Connection, *, before: float) -> int:
    """Forget the bases of chains that wait nowhere here, older than `before` or not among the newest; how many went."""
    ordered = select(chain_base.c.at).order_by(chain_base.c.at.desc())
    beyond = conn.execute(ordered.offset(BASES).limit(1)).scalar_one_or_none()
    before = before if beyond is None else max(before, beyond)
    waiting = select(job.c.root).where(text(OPEN_JOB), job.c.by_agent)
    return conn.execute(delete(chain_base).where(chain_base.c.at <= before, chain_base.c.root.not_in(waiting))).rowcount
