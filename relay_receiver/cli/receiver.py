"""`relay receiver`: the process that works for an agent in one channel."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from relay_receiver.cli import told
from relay_receiver.cli.acting import choose, look, profile
from relay_receiver.cli.logs import follow, tail
from relay_receiver.cli.looks import for_receiver
from relay_receiver.cli.options import DURATION, Group, channel_option
from relay_receiver.cli.output import emit, table, write_json
from relay_receiver.cli.selftest import selftest
from relay_receiver.client import profiles
from relay_receiver.client.profiles import Profile
from relay_receiver.jobs.wake import Wake
from relay_receiver.receiver import service, verbs
from relay_receiver.receiver.target import Target, targets
from relay_receiver.wire.errors import RelayError
from relay_receiver.wire.limits import ASK_MOST_SECONDS

F = TypeVar("F", bound=Callable[..., Any])


def target(chosen: Profile, channel: str | None) -> Target:
    """The receiver that was meant: of this profile, in that channel."""
    return Target(_agent(chosen).name, chosen.workspace, _channel(chosen, channel)[0])


def _agent(chosen: Profile) -> Profile:
    """Refuse a person's profile: nobody is woken in a person's name."""
    if chosen.role == "agent":
        return chosen
    agents = [name for name in profiles.names() if profiles.load(name).role == "agent"]
    hint = f"relay receiver status --profile {agents[0]}" if agents else "relay connect URL#CODE --name NAME"
    raise RelayError(
        f"The profile {chosen.name} is a person's ({chosen.agent_name}); a receiver works for an agent.",
        code="not_an_agent",
        hint=hint,
    )


def _channel(chosen: Profile, given: str | None) -> tuple[str, str]:
    # A receiver outlives its membership: it can be stopped after the channel was left.
    bound = ((each.channel, each.facts()) for each in targets() if each.profile == chosen.name)
    left = tuple((channel, str(facts.get("channelName") or channel)) for channel, facts in bound)
    known = tuple(dict.fromkeys((*chosen.channels, *left)))
    found = choose(known if given else chosen.channels or left, given)
    if found is None:
        names = ", ".join(name for _, name in chosen.channels) or "none"
        raise RelayError(
            f"{chosen.agent_name} is not in the channel {given}; it is in: {names}.",
            code="unknown_channel",
            hint="relay channels list",
        )
    return found


def _within_a_month(_ctx: click.Context, _param: click.Parameter, given: float | None) -> float | None:
    if given is not None and not 0 < given <= ASK_MOST_SECONDS:
        raise click.BadParameter("it is a time of 30 days at the most")
    return given


def _limits(command: F) -> F:
    for option in reversed(
        (
            click.option("--wake", type=click.Choice([each.value for each in Wake]), help="What wakes the agent."),
            click.option("--chain-limit", type=click.IntRange(1, 1000), metavar="N", help="Turns that agents trigger."),
            click.option("--ceiling", type=DURATION, metavar="60m", help="Interrupt a job after this time."),
            click.option("--stall", type=DURATION, metavar="15m", help="Show an alarm after this silence."),
            click.option(
                "--keep-messages",
                type=click.IntRange(100, 1_000_000),
                metavar="N",
                help="Forget all but the newest messages and ended jobs. Default 1000.",
            ),
            click.option(
                "--keep-days",
                type=click.IntRange(0, 3650),
                metavar="D",
                help="Forget older ones too; 0 (default): whatever their age.",
            ),
            click.option("--network/--no-network", default=None, help="Open the network to the agent."),
            click.option(
                "--approvals",
                type=click.Choice(["ask", "decline"]),
                help="What the agent asks goes to people (default), or is declined at once.",
            ),
            click.option("--approvers", multiple=True, metavar="ID", help="Who may answer; `anyone`. Repeatable."),
            click.option(
                "--approval-time",
                type=DURATION,
                callback=_within_a_month,
                metavar="24h",
                help="Nobody's answer within this time is a decline.",
            ),
            click.option("--env", multiple=True, metavar="NAME", help="Hand this variable on. Repeatable."),
        )
    ):
        command = option(command)
    return command


def _binding(command: F) -> F:
    for option in reversed(
        (
            click.option(
                "--adapter", metavar="NAME", help="How jobs run: codex, command. Default codex if it is here."
            ),
            click.option("--argv", metavar="JSON", help='The program, such as \'["/path/runner", "arg"]\'.'),
            click.option("--directory", type=click.Path(path_type=Path), metavar="DIR", help="Where jobs work."),
            click.option("--no-tools", "tools", flag_value=False, default=None, help="Without relay's own tools."),
            click.option("--new-session", is_flag=True, help="Give the agent's session up and begin a new one."),
        )
    ):
        command = option(command)
    return _limits(command)


@click.group(cls=Group)
def receiver() -> None:
    """The process that works for an agent: start, stop, jobs."""


@receiver.command()
@channel_option
@_binding
def configure(channel: str | None, **said: Any) -> None:  # noqa: ANN401 - click's options
    """Bind a channel to an agent; a binding that cannot work is refused."""
    answer = _configure(profile(), channel, **said)
    emit(answer, told.facts(answer), then="relay receiver start")


@receiver.command()
@channel_option
@_binding
def start(channel: str | None, **said: Any) -> None:  # noqa: ANN401 - click's options
    """Start the receiver in the background; returns when it is ready."""
    chosen = profile()
    aim = target(chosen, channel)
    given = {name: value for name, value in said.items() if value not in (None, ()) and name != "new_session"}
    if said["new_session"]:
        given["new_session"] = True
    state = _known(aim)
    if state is None or (given and (state == told.STOPPED or not _as_it_runs(aim, **given))):
        _configure(chosen, channel, **said)
    _say_begun(aim, verbs.start(aim))


def _say_begun(aim: Target, answer: dict[str, Any]) -> None:
    """Say that a receiver runs, and what keeps it from working."""
    try:
        now = verbs.status(aim)
    except RelayError as error:
        now = {"state": "silent", "detail": error.sentence}
    emit(answer, told.started(answer, now), then="relay receiver status")


def _known(aim: Target) -> str | None:
    """Whether a binding is `stopped` or `running`; None where there is none."""
    for each in verbs.list_all()["receivers"]:
        if (each["profile"], each["workspace"], each["channel"]) == (aim.profile, aim.workspace, aim.channel):
            return str(each["state"])
    return None


def _as_it_runs(aim: Target, *, directory: Path | None = None, argv: str | None = None, **given: Any) -> bool:  # noqa: ANN401 - click's options
    """Whether a running receiver has these settings already. What cannot be seen from here counts as new."""
    now = verbs.status(aim)
    has = {**now, "chain_limit": now["chain"]["limit"], "ceiling": now["ceilingSeconds"], "stall": now["stallSeconds"]}
    has |= {"keep_messages": now["keepMessages"], "keep_days": now["keepDays"] or 0}
    has |= {"approvers": tuple(now["approvers"]) or ("anyone",), "approval_time": now["approvalSeconds"]}
    if directory is not None:
        given["directory"], has["directory"] = directory.expanduser().resolve(), Path(now["directory"])
    if argv is not None:
        given["argv"], has["argv"] = _argv(argv), tuple(now["argv"])
    return all(has.get(name) == value for name, value in given.items())


def _configure(chosen: Profile, channel: str | None, *, argv: str | None, directory: Path | None, **said: Any) -> Any:  # noqa: ANN401 - JSON
    where, name = _channel(_agent(chosen), channel)
    folder = directory.expanduser().resolve() if directory else None
    if folder is not None and not folder.is_dir():
        raise RelayError(f"{folder} is not a directory.", code="usage", hint=f"mkdir -p {folder}")
    return verbs.configure(chosen, channel=where, channel_name=name, argv=_argv(argv), directory=folder, **said)


def _argv(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    try:
        words = json.loads(text)
    except ValueError:
        words = None
    if not (isinstance(words, list) and words and all(isinstance(word, str) and word for word in words)):
        raise RelayError(
            "--argv is a JSON list of words.",
            code="usage",
            hint="""relay receiver configure --argv '["/path/runner"]'""",
        )
    return (shutil.which(words[0]) or words[0], *words[1:])


@receiver.command()
@channel_option
@click.option("--seconds", type=DURATION, metavar="N", help="End after this time.")
def run(channel: str | None, seconds: float | None) -> None:
    """Run the receiver in the foreground."""
    verbs.run(
        target(profile(), channel),
        seconds=seconds,
        ready=lambda answer: emit(answer, told.began(answer)),
    )


@receiver.command()
@channel_option
@click.option("--now", is_flag=True, help="Interrupt the job in hand at once.")
def stop(channel: str | None, now: bool) -> None:  # noqa: FBT001 - click passes flags so
    """Stop the receiver; returns when it is gone."""
    answer = verbs.stop(target(profile(), channel), now=now)
    emit(answer, f"The receiver is {answer['state']}.", then="relay receiver start")


@receiver.command()
@channel_option
def restart(channel: str | None) -> None:
    """Start the receiver again under a running job."""
    aim = target(profile(), channel)
    _say_begun(aim, verbs.restart(aim))


@receiver.command()
@channel_option
@click.pass_context
def status(ctx: click.Context, channel: str | None) -> None:
    """Show what the receiver does. Exit status 4 if a person is needed, 1 if it is not configured."""
    aim = target(look(), channel)
    answer = verbs.status(aim) if aim in tuple(targets()) else {"state": told.UNCONFIGURED, "channel": aim.channel}
    lines = told.status(answer) if "wake" in answer else ["No receiver is configured for this channel."]
    emit(answer, lines, then=told.next_step(answer))
    ctx.exit(told.status_code(answer))


@receiver.command("list")
def list_command() -> None:
    """List the receivers of this machine."""
    answer = verbs.list_all()
    rows = [
        (r.get("profile"), r.get("channelName"), r.get("adapter"), r.get("state"), r.get("pid"))
        for r in answer["receivers"]
    ]
    first = next(iter(answer["receivers"]), None)
    then = for_receiver("relay receiver status", first) if first else "relay receiver start"
    emit(answer, table(rows, empty="No receiver is configured here."), then=then)


@receiver.command()
@channel_option
@click.option("-f", "--follow", "following", is_flag=True, help="Go on as it grows.")
@click.option("-n", "--lines", type=click.IntRange(1), default=50, help="The last lines. Default 50.")
def logs(channel: str | None, following: bool, lines: int) -> None:  # noqa: FBT001 - click passes flags so
    """Show the receiver's log."""
    path = verbs.log_path(target(look(), channel))
    if following:
        follow(path, lines)
        return
    last = tail(path, lines)
    emit({"path": str(path), "lines": last}, last or ["The log is empty."], then="relay receiver logs -f")


@receiver.command()
@channel_option
@_limits
def settings(channel: str | None, **said: Any) -> None:  # noqa: ANN401 - click's options
    """Show the settings, or change them from the next job on."""
    changes = {name: value for name, value in said.items() if value not in (None, ())}
    chosen = profile()
    aim = target(chosen, channel)
    if "approvers" in changes:
        changes["approvers"] = verbs.people(chosen, channel=aim.channel, named=changes["approvers"])
    answer = verbs.settings(aim, **changes) if changes else verbs.status(aim)
    emit(answer, told.limits(answer), then="relay receiver status")


@receiver.command()
@channel_option
def resume(channel: str | None) -> None:
    """Let agents' jobs run again after the chain paused."""
    answer = verbs.resume(target(profile(), channel))
    emit(answer, "Agents' jobs run again.", then="relay receiver jobs")


@receiver.command()
@channel_option
@click.option("--limit", type=click.IntRange(1, 1000), default=20, help="At most this many. Default 20.")
def jobs(channel: str | None, limit: int) -> None:
    """List the jobs, newest first."""
    answer = verbs.jobs(target(look(), channel), limit=limit)
    rows = [(j.get("id"), j.get("state"), j.get("attempt"), j.get("error") or j.get("message")) for j in answer["jobs"]]
    emit(answer, table(rows, empty="No jobs yet."), then="relay receiver job ID")


@receiver.command()
@channel_option
@click.argument("job", metavar="ID")
def job(channel: str | None, job: str) -> None:
    """Show one job with its evidence."""
    answer = verbs.job(target(look(), channel), job)
    unknown = answer.get("state") == "unknown"
    then = f"relay receiver settle {job} --accept | --abandon --reason TEXT | --retry" if unknown else None
    emit(answer, told.job(answer), then=then or "relay receiver jobs")


@receiver.command()
@channel_option
@click.argument("job", metavar="ID")
def cancel(channel: str | None, job: str) -> None:
    """Cancel a job: at once while it is queued, else by an interrupt."""
    answer = verbs.cancel(target(profile(), channel), job)
    emit(answer, told.job(answer), then=f"relay receiver job {job}")


@receiver.command()
@channel_option
@click.argument("job", metavar="ID")
@click.option("--accept", "verb", flag_value="accept", help="It was done: post its answer, or --text.")
@click.option("--abandon", "verb", flag_value="abandon", help="It is over: tell the requester. Needs --reason.")
@click.option("--retry", "verb", flag_value="retry", help="Run it again, on your word.")
@click.option("--text", metavar="TEXT", help="The answer to post.")
@click.option("--reason", metavar="TEXT", help="Why.")
def settle(channel: str | None, job: str, verb: str | None, text: str | None, reason: str | None) -> None:
    """Say what became of a job whose outcome nobody can prove."""
    if verb is None or (verb == "abandon" and not reason):
        raise RelayError(
            "Say what became of it.",
            code="usage",
            hint="Use --accept [--text TEXT], --abandon --reason TEXT, or --retry.",
        )
    answer = verbs.settle(target(profile(), channel), job, verb, text=text, reason=reason)
    emit(answer, [told.settled(answer, verb), *told.job(answer)], then=f"relay receiver job {job}")


@receiver.group(cls=Group)
def journal() -> None:
    """What the receiver has stored."""


@journal.command()
@channel_option
def export(channel: str | None) -> None:
    """Write every row of the journal as one JSON value a line."""
    for row in verbs.export(target(look(), channel)):
        write_json(row, sys.stdout)


@receiver.command()
@channel_option
def enable(channel: str | None) -> None:
    """Start it now and at every boot, as a service of this user."""
    answer = service.enable(target(profile(), channel))
    lines = [f"The service {answer['service']} runs the receiver, now and after a reboot."]
    if answer["lingers"] is False:
        lines.append("It runs only while you are logged in: loginctl enable-linger changes that.")
    emit(answer, lines, then="relay receiver status")


@receiver.command()
@channel_option
def disable(channel: str | None) -> None:
    """Stop it, and start it no more at boot."""
    answer = service.disable(target(profile(), channel))
    if answer["was"] == "disabled":
        emit(answer, "No service was enabled for this receiver; nothing changed.", then="relay receiver status")
        return
    emit(answer, f"The service {answer['service']} is disabled, and its receiver stopped.", then="relay receiver start")


@receiver.command()
@channel_option
def adopt(channel: str | None) -> None:
    """Take over a state directory that was copied or restored."""
    answer = verbs.adopt(target(profile(), channel))
    emit(answer, "This state is now this machine's.", then="relay receiver start")


receiver.add_command(selftest)
