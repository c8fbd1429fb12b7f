"""A busy channel straight into a journal: messages, their jobs from begin to end, and pruning as a receiver does it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from relay_receiver.jobs.transitions import JobEvent
from relay_receiver.journal import binding as bindings
from relay_receiver.journal import chain, jobs, messages, space
from relay_receiver.journal.journal import Connection, Journal
from relay_receiver.wire.message import Message, iso

PAGE = 50
PRUNED_EVERY = 500
SECONDS_APART = 10.0
"""Between two messages: 100,000 of them take eleven days."""
_WORDS = "It says what has to be done, and how, and what for. " * 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """What the journal takes after so many messages, in bytes."""

    messages: int
    file: int
    """Its pages; the file follows at the next checkpoint."""
    wal: int
    """The most that its log had so far."""


def flow(journal: Journal, count: int, *, keep: int) -> Iterator[Size]:
    """Have so many messages come, every fifth a request that is worked off; the size after each `PRUNED_EVERY`.

    Args:
        keep: the newest messages that are kept.
    """
    binding = journal.read_now(bindings.get)
    me = "" if binding is None else binding.agent
    wal = journal.path.with_name(f"{journal.path.name}-wal")
    largest = 0
    for last in range(PAGE, count + 1, PAGE):
        said = [_said(number, me) for number in range(last - PAGE + 1, last + 1)]
        journal.write_now(_worked_off, said)
        largest = max(largest, wal.stat().st_size)
        if last % PRUNED_EVERY == 0:
            while journal.write_now(messages.prune, keep_count=keep, keep_age=None, at=last * SECONDS_APART):
                pass
            while journal.write_now(space.give_back):
                pass
            largest = max(largest, wal.stat().st_size)
            yield Size(messages=last, file=journal.read_now(space.whole_bytes), wal=largest)


def _worked_off(conn: Connection, said: Sequence[Message]) -> None:
    at = said[-1].event * SECONDS_APART
    messages.intake(conn, said, cursor=f"{said[-1].event}.aa", watermark=said[-1].event, at=at)
    chain.reset(conn, at=at)
    while (job := jobs.next_queued(conn).job) is not None:
        jobs.submit(conn, job.id, holder="h", fence="1", run_claim=job.claim, at=at)
        jobs.move(conn, job.id, JobEvent.OUTPUT, at=at, who="adapter", outcome="completed", text=_WORDS, body="{}")
        jobs.posted(conn, job.id, result=f"r{job.event}", at=at)
        chain.reset(conn, at=at)


def _said(number: int, me: str) -> Message:
    request = number % 5 == 0
    return Message.parse(
        {
            "id": f"m{number}",
            "event": number,
            "channel": "c",
            "author": {"id": "a_other", "name": "Other", "kind": "agent"},
            "kind": "request" if request else "message",
            "content": _WORDS,
            "to": me if request else None,
            "chain": {"root": f"m{number}", "hop": 1},
            "createdAt": iso(number * SECONDS_APART),
        }
    )
