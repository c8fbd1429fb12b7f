"""What the command line does with receivers: synchronous, and light to import where no receiver has to be opened.

Every verb that changes or reads a receiver asks the running process, or takes the instance lock and does the
same on the journal when none runs.
"""

import getpass
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from relay_receiver.jobs.state import IN_FLIGHT
from relay_receiver.processes import background, environment
from relay_receiver.receiver import control, reach
from relay_receiver.receiver.target import JOURNAL, LOG, SPOOL, Target, targets
from relay_receiver.wire.errors import RelayError
from relay_receiver.wire.message import seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from relay_receiver.client.profiles import Profile

T = TypeVar("T")

START_SECONDS = 60.0
"""How long `start` waits for a receiver to be ready, on a machine that does other things too."""
STOP_SECONDS = 60.0
"""How long `stop` waits for the process to go, past its own grace, before it says so."""


def who() -> str:
    """The person at this machine, as the audit trail records it."""
    return f"os:{getpass.getuser()}"


def configure(
    profile: "Profile",
    *,
    channel: str,
    channel_name: str,
    new_session: bool = False,
    **wishes: Any,  # noqa: ANN401 - fields of Wishes
) -> dict[str, Any]:
    """Bind a profile's agent in a channel, or change its binding; `wishes` are the fields of `configure.Wishes`."""
    import asyncio

    from relay_receiver.receiver import configure as configuring

    return asyncio.run(
        configuring.configure(
            profile,
            channel=channel,
            channel_name=channel_name,
            wishes=configuring.Wishes(**wishes),
            new_session=new_session,
        )
    )


def start(target: Target) -> dict[str, Any]:
    """Start the receiver of a configured binding, in its own session; return once it is ready.

    Returns:
        `{state: "ready", pid}`, or `already_running` with the pid of the one that runs.

    Raises:
        RelayError: it is not configured, or it could not start; the sentence says why.
    """
    target.facts()
    running = reach.running(target)
    if running is not None:
        return {"state": "already_running", "pid": running.pid}
    argv = [sys.executable, "-m", "relay_receiver.receiver.main", target.profile, target.workspace, target.channel]
    return background.spawn(
        argv,
        log=target.folder / "start.log",
        environment=environment.own(),
        seconds=START_SECONDS,
    )


def run(target: Target, *, seconds: float | None, ready: Callable[[dict[str, Any]], None]) -> None:
    """Run the receiver in the foreground until it is stopped."""
    from relay_receiver.client import profiles
    from relay_receiver.receiver.main import run as run_here

    target.facts()
    run_here(target.folder, profiles.load(target.profile), foreground=True, ready=ready, seconds=seconds)


def stop(target: Target, *, now: bool = False) -> dict[str, Any]:
    """Stop the receiver and return once its process and its children are gone.

    Args:
        now: interrupt the job in hand at once, instead of waiting for it up to the grace.
    """
    return _end(target, "now" if now else "grace")


def restart(target: Target) -> dict[str, Any]:
    """Start a new process; a job in hand stays with its keeper and is attached to again."""
    detach(target)
    return start(target)


def detach(target: Target) -> dict[str, Any]:
    """End the process, and leave a job in hand with its keeper."""
    return _end(target, "detach")


def _end(target: Target, how: str) -> dict[str, Any]:
    running = reach.running(target)
    if running is None:
        target.facts()
        return {"state": "stopped"}
    try:
        control.call(target.runtime, "stop", how=how, timeout=10.0)
        asked = True
    except RelayError:
        asked = False
    if not background.stop(running, grace=STOP_SECONDS, signal_first=not asked):
        raise RelayError(
            f"The receiver (process {running.pid}) has not gone yet; it still tries to end the job in hand.",
            code="still_running",
            hint="relay receiver stop --now",
        )
    return {"state": "stopped", "pid": running.pid}


def status(target: Target) -> dict[str, Any]:
    """What runs, what waits, what is wrong. `state` is `stopped` where no process runs."""
    facts = target.facts()
    try:
        return reach.ask(target, "status", timeout=10.0)
    except control.NotRunning:
        from relay_receiver.receiver import views

        stored = reach.on_journal(target, views.stored_status)
        return {"state": "stopped", "pid": None, **facts, **stored}


def list_all() -> dict[str, Any]:
    """Every receiver of this user on this machine."""
    listed = []
    for target in targets():
        running = reach.running(target)
        listed.append(
            {
                **target.facts(),
                "state": "stopped" if running is None else "running",
                "pid": None if running is None else running.pid,
            }
        )
    return {"receivers": listed}


def log_path(target: Target) -> Path:
    """Where the receiver's log is."""
    target.facts()
    return target.folder / LOG


def resume(target: Target) -> dict[str, Any]:
    """Lift the pause of the chain guard."""
    try:
        return reach.ask(target, "resume", who=who())
    except control.NotRunning:
        from relay_receiver.journal import chain

        reach.on_journal(target, lambda conn, _: chain.resume(conn, at=time.time(), who=who()), write=True)
        return status(target)


def jobs(target: Target, *, limit: int = 50, open_only: bool = False) -> dict[str, Any]:
    """The newest jobs: `{jobs: [{id, state, ...}]}`."""
    try:
        return reach.ask(target, "jobs", limit=limit, open_only=open_only)
    except control.NotRunning:
        from relay_receiver.receiver import views

        return reach.on_journal(target, lambda conn, _: views.jobs_view(conn, limit=limit, open_only=open_only))


def job(target: Target, job_id: str) -> dict[str, Any]:
    """The evidence sheet: one job whole, its history, what was kept, and for one in flight what can be seen now."""
    try:
        sheet = reach.ask(target, "job", id=job_id)
        directory = reach.ask(target, "status")["directory"]
    except control.NotRunning:
        from relay_receiver.receiver import views

        kept, directory = reach.on_journal(
            target, lambda conn, binding: (views.job_sheet(conn, job_id), binding.directory)
        )
        if kept is None:
            raise RelayError(
                f"There is no job {job_id} here.", code="unknown_job", hint="relay receiver jobs"
            ) from None
        sheet = kept
    if sheet["state"] not in {state.value for state in IN_FLIGHT}:
        return sheet
    from relay_receiver.receiver import evidence

    now = evidence.gather(
        directory=Path(directory),
        spool=target.folder / SPOOL,
        key=sheet["key"],
        keeper=sheet["keeper"],
        since=None if sheet["submittedAt"] is None else seconds(sheet["submittedAt"]),
    )
    return {**sheet, "now": now}


def cancel(target: Target, job_id: str) -> dict[str, Any]:
    """Cancel a job: at once where it is queued; one at the agent needs a running receiver."""
    try:
        return reach.ask(target, "cancel", id=job_id, who=who())
    except control.NotRunning:
        from relay_receiver.receiver import settle as settling
        from relay_receiver.receiver import views

        return views.job_view(
            reach.on_journal(
                target,
                lambda conn, binding: settling.cancel_queued(
                    conn, job_id, channel=binding.channel, who=who(), at=time.time()
                ),
                write=True,
            )
        )


def settle(
    target: Target, job_id: str, how: str, *, text: str | None = None, reason: str | None = None
) -> dict[str, Any]:
    """Settle an unknown job: `how` is `accept`, `abandon` or `retry`. What it left running is ended first: `ended`."""
    try:
        return reach.ask(target, "settle", id=job_id, how=how, text=text, reason=reason, who=who())
    except control.NotRunning:
        from relay_receiver.journal import jobs as stored
        from relay_receiver.receiver import leftovers, views
        from relay_receiver.receiver import settle as settling

        verb = settling.Verb(how)

        def note(why: str) -> None:
            reach.on_journal(
                target, lambda conn, _: stored.note(conn, job_id, at=time.time(), who=who(), why=why), write=True
            )

        found = reach.on_journal(target, lambda conn, _: settling.check(conn, job_id, verb, text=text))
        ended = leftovers.end(found, target.folder / SPOOL, note=note)
        settled = reach.on_journal(
            target,
            lambda conn, binding: settling.settle(
                conn,
                job_id,
                verb,
                channel=binding.channel,
                text=text,
                reason=reason,
                who=who(),
                at=time.time(),
            ),
            write=True,
        )
        return {**views.job_view(settled), "ended": ended}


def people(profile: "Profile", *, channel: str, named: Sequence[str]) -> tuple[str, ...]:
    """The ids of people of a channel, by name or id; see `configure.people`."""
    import asyncio

    from relay_receiver.receiver import configure as configuring

    return asyncio.run(configuring.people(profile, channel, named))


def settings(target: Target, **changes: Any) -> dict[str, Any]:  # noqa: ANN401 - columns of the binding
    """Change wake, limits, network, env or who approves, from the next job or question on."""
    target.facts()
    try:
        return reach.ask(target, "settings", changes=changes)
    except control.NotRunning:
        from relay_receiver.journal import binding as bindings

        reach.on_journal(target, lambda conn, _: bindings.change(conn, **changes), write=True)
        return status(target)


def adopt(target: Target) -> dict[str, Any]:
    """Take a copied or restored state as this machine's own, under a new holder id."""
    from relay_receiver.journal.journal import adopt as adopt_journal

    target.facts()
    if reach.running(target) is not None:
        raise RelayError(
            "The receiver runs: its state is this machine's already.", code="running", hint="relay receiver status"
        )
    lock = reach.locked(target)
    try:
        holder = adopt_journal(target.folder / JOURNAL)
    finally:
        lock.release()
    return {"state": "adopted", "holder": holder}


def export(target: Target) -> "Iterator[dict[str, Any]]":
    """Every row of the journal as `{table, ...columns}`, whether the receiver runs or not."""
    from relay_receiver.journal.export import export as rows

    target.facts()
    return rows(target.folder / JOURNAL)


def verify(target: Target) -> list[str]:
    """What is wrong with the journal, a sentence each, whether the receiver runs or not."""
    from relay_receiver.journal.verify import verify as faults

    return faults(target.folder / JOURNAL)
