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
from relay_receiver.processes import background, environment, identity
from relay_receiver.processes.lock import InstanceLock
from relay_receiver.receiver import control
from relay_receiver.receiver.target import JOURNAL, LOCK, LOG, SPOOL, Target, targets
from relay_receiver.wire.errors import RelayError
from relay_receiver.wire.message import seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from relay_receiver.client.profiles import Profile
    from relay_receiver.journal.binding import Binding
    from relay_receiver.journal.journal import Connection
    from relay_receiver.processes.units import Service

T = TypeVar("T")

START_SECONDS = 60.0
"""How long `start` waits for a receiver to be ready, on a machine that does other things too."""
STOP_SECONDS = 60.0
"""How long `stop` waits for the process to go, past its own grace, before it says so."""

ANSWER_SECONDS = 10.0
"""How long a receiver that has just started, or ends, is waited for."""
LOOK_SECONDS = 0.02


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
    running = _running(target)
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
    _end(target, "detach")
    return start(target)


def _end(target: Target, how: str) -> dict[str, Any]:
    running = _running(target)
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
        return _ask(target, "status", timeout=10.0)
    except control.NotRunning:
        from relay_receiver.receiver import views

        stored = _on_journal(target, views.stored_status)
        return {"state": "stopped", "pid": None, **facts, **stored}


def list_all() -> dict[str, Any]:
    """Every receiver of this user on this machine."""
    listed = []
    for target in targets():
        running = _running(target)
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
        return _ask(target, "resume", who=who())
    except control.NotRunning:
        from relay_receiver.journal import chain

        _on_journal(target, lambda conn, _: chain.resume(conn, at=time.time(), who=who()), write=True)
        return status(target)


def jobs(target: Target, *, limit: int = 50, open_only: bool = False) -> dict[str, Any]:
    """The newest jobs: `{jobs: [{id, state, ...}]}`."""
    try:
        return _ask(target, "jobs", limit=limit, open_only=open_only)
    except control.NotRunning:
        from relay_receiver.receiver import views

        return _on_journal(target, lambda conn, _: views.jobs_view(conn, limit=limit, open_only=open_only))


def job(target: Target, job_id: str) -> dict[str, Any]:
    """The evidence sheet: one job whole, its history, what was kept, and for one in flight what can be seen now."""
    try:
        sheet = _ask(target, "job", id=job_id)
        directory = _ask(target, "status")["directory"]
    except control.NotRunning:
        from relay_receiver.receiver import views

        kept, directory = _on_journal(target, lambda conn, binding: (views.job_sheet(conn, job_id), binding.directory))
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
        return _ask(target, "cancel", id=job_id, who=who())
    except control.NotRunning:
        from relay_receiver.receiver import settle as settling
        from relay_receiver.receiver import views

        return views.job_view(
            _on_journal(
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
        return _ask(target, "settle", id=job_id, how=how, text=text, reason=reason, who=who())
    except control.NotRunning:
        from relay_receiver.journal import jobs as stored
        from relay_receiver.receiver import leftovers, views
        from relay_receiver.receiver import settle as settling

        verb = settling.Verb(how)

        def note(why: str) -> None:
            _on_journal(
                target, lambda conn, _: stored.note(conn, job_id, at=time.time(), who=who(), why=why), write=True
            )

        found = _on_journal(target, lambda conn, _: settling.check(conn, job_id, verb, text=text))
        ended = leftovers.end(found, target.folder / SPOOL, note=note)
        settled = _on_journal(
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
        return _ask(target, "settings", changes=changes)
    except control.NotRunning:
        from relay_receiver.journal import binding as bindings

        _on_journal(target, lambda conn, _: bindings.change(conn, **changes), write=True)
        return status(target)


def adopt(target: Target) -> dict[str, Any]:
    """Take a copied or restored state as this machine's own, under a new holder id."""
    from relay_receiver.journal.journal import adopt as adopt_journal

    target.facts()
    if _running(target) is not None:
        raise RelayError(
            "The receiver runs: its state is this machine's already.", code="running", hint="relay receiver status"
        )
    lock = _locked(target)
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


def enable(target: Target) -> dict[str, Any]:
    """Have the receiver started now and at every boot, by the service manager of this user."""
    from relay_receiver.processes import units

    service = _service(target)
    path = units.install(service)
    _end(target, "detach")
    units.begin(service.name)
    return {"state": "enabled", "service": service.name, "path": str(path), "lingers": units.lingers()}


def disable(target: Target) -> dict[str, Any]:
    """Have the service manager forget the receiver, and stop it."""
    from relay_receiver.processes import units

    service = _service(target)
    was = units.disable(service.name)
    return {"state": "disabled", "service": service.name, "was": "enabled" if was else "disabled"}


def service(target: Target) -> dict[str, Any] | None:
    """The service of a receiver, where one was enabled: `{service, current, lingers}`.

    `current` is False where it was written with another PATH, home or Python than those of this process.
    """
    from relay_receiver.processes import units

    found = _service(target)
    path = units.path_of(found.name)
    if not path.exists():
        return None
    written = found.plist() if units.PLATFORM == "darwin" else found.unit().encode()
    return {"service": found.name, "current": path.read_bytes() == written, "lingers": units.lingers()}


def _service(target: Target) -> "Service":
    from relay_receiver.processes import units

    facts = target.facts()
    own = [sys.executable, "-m", "relay_receiver.cli.main", "--profile", target.profile, "receiver"]
    return units.Service(
        name=f"relay-receiver-{target.folder.name}",
        description=f"Relay receiver of {facts.get('agentName')} in {facts.get('channelName')}",
        argv=[*own, "run", "--channel", target.channel],
        stop=[*own, "stop", "--channel", target.channel],
        environment=units.environment(),
    )


def _ask(target: Target, verb: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Ask the running receiver; one that is just starting or ending is waited for.

    Raises:
        NotRunning: none runs.
        RelayError: it refused, or does not answer.
    """
    end = time.monotonic() + ANSWER_SECONDS
    while True:
        try:
            return control.call(target.runtime, verb, **arguments)
        except control.NotRunning:
            if time.monotonic() >= end or (_running(target) is None and _free(target)):
                raise
        time.sleep(LOOK_SECONDS)


def _running(target: Target) -> identity.ProcessIdentity | None:
    return InstanceLock(target.folder / LOCK).holder()


def _free(target: Target) -> bool:
    """Whether no process holds the lock: one that has just taken it has not said yet who it is."""
    path = target.folder / LOCK
    if not path.exists():
        return True
    lock = InstanceLock(path)
    try:
        free = lock.acquire()
    except OSError:
        return True
    if free:
        lock.release()
    return free


def _locked(target: Target) -> InstanceLock:
    lock = InstanceLock(target.folder / LOCK)
    end = time.monotonic() + ANSWER_SECONDS
    try:
        while not (free := lock.acquire()) and time.monotonic() < end:
            time.sleep(LOOK_SECONDS)
    except OSError as error:
        raise RelayError(
            f"The receiver's state in {target.folder} cannot be used: {error.strerror}.",
            code="not_writable",
            hint="Look at its file system and permissions.",
        ) from error
    if not free:
        raise RelayError(
            "The receiver is running but does not answer.", code="not_answering", hint="relay receiver stop --now"
        )
    return lock


def _on_journal(target: Target, call: "Callable[[Connection, Binding], T]", *, write: bool = False) -> T:
    """Do on the journal of a receiver that does not run what the running one would do."""
    from relay_receiver.journal import binding as bindings
    from relay_receiver.journal.journal import Journal

    target.facts()
    lock = _locked(target)
    try:
        journal = Journal.open(target.folder / JOURNAL)
        try:
            binding = journal.read_now(bindings.get)
            if binding is None:
                raise RelayError(
                    "The journal holds no binding.", code="not_configured", hint="relay receiver configure"
                )
            access = journal.write_now if write else journal.read_now
            return access(call, binding)
        finally:
            journal.close()
    finally:
        lock.release()
