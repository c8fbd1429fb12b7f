"""Binding an agent to a channel: checked first, so that a binding that cannot work is refused and can be mended."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from relay_receiver.adapters import registry
from relay_receiver.adapters.base import AdapterUnusable
from relay_receiver.adapters.base import Binding as AdapterBinding
from relay_receiver.client.hub import Hub
from relay_receiver.client.profiles import Profile
from relay_receiver.client.rest import Rest
from relay_receiver.jobs.chain import DEFAULT_LIMIT
from relay_receiver.jobs.wake import Wake
from relay_receiver.journal import binding as bindings
from relay_receiver.journal.binding import ASK, Binding
from relay_receiver.journal.journal import Journal
from relay_receiver.processes import environment, files, paths
from relay_receiver.processes.lock import InstanceLock
from relay_receiver.receiver.target import JOURNAL, LOCK, SPOOL, Target
from relay_receiver.wire.cursor import Cursor
from relay_receiver.wire.errors import RelayError
from relay_receiver.wire.message import seconds

CEILING_SECONDS = 3600.0
STALL_SECONDS = 900.0
KEEP_MESSAGES = 1000
APPROVAL_SECONDS = 24 * 3600.0
ANYONE = "anyone"
"""In the place of approvers: any person of the channel."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Wishes:
    """What a person wants of a binding; what is None stays as it is, or gets its default."""

    wake: str | None = None
    """`manual`, `addressed` (default) or `all`."""
    adapter: str | None = None
    argv: Sequence[str] | None = None
    directory: Path | None = None
    chain_limit: int | None = None
    ceiling: float | None = None
    """Seconds after which a job is interrupted."""
    stall: float | None = None
    """Seconds without a sign of life after which a job shows as stalled."""
    keep_messages: int | None = None
    """The newest messages and jobs that are kept in the journal."""
    keep_days: int | None = None
    """Days after which they go all the same; 0 for never."""
    network: bool | None = None
    tools: bool | None = None
    env: Sequence[str] | None = None
    """Names of environment variables that the agent may see; their values are never stored."""
    approvals: str | None = None
    """`ask` (default): what the agent asks goes to people; `decline`: it is declined at once."""
    approvers: Sequence[str] | None = None
    """Names or ids of the people who may answer, or `anyone`, the default: any person of the channel."""
    approval_time: float | None = None
    """Seconds after which nobody's answer is a decline."""

    def columns(self) -> dict[str, Any]:
        """What is wished for, as columns of the binding."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.directory is not None:
            given["directory"] = str(self.directory.resolve())
        for name in ("argv", "env", "approvers"):
            given[name] = tuple(given[name]) if given[name] else None
        return {name: value for name, value in given.items() if value is not None}


async def configure(
    profile: Profile, *, channel: str, channel_name: str, wishes: Wishes, new_session: bool = False
) -> dict[str, Any]:
    """Bind this profile's agent in one channel, or change its binding.

    Args:
        new_session: forget the agent's session, so that adapter and directory can be changed.

    Returns:
        `{state: "configured", profile, channel, adapter, argv, directory, wake, ...}`.

    Raises:
        RelayError: the profile is a person's, the adapter cannot work, the receiver runs, or the hub refuses.
    """
    if profile.role != "agent":
        raise RelayError(
            f"The profile {profile.name} belongs to a person: only an agent's profile can be a receiver.",
            code="not_an_agent",
            hint="relay invites create, then on the agent's machine: relay connect URL#CODE --name NAME",
        )
    target = Target(profile.name, profile.workspace, channel)
    files.private_dir(target.folder)
    lock = InstanceLock(target.folder / LOCK)
    if not lock.acquire():
        raise RelayError(
            "The receiver is running: stop it to bind it anew.",
            code="running",
            hint="relay receiver stop, or relay receiver settings for wake, limits, network and env",
        )
    try:
        journal = Journal.open(target.folder / JOURNAL)
        try:
            before = journal.read_now(bindings.get)
            changes = wishes.columns()
            if wishes.approvers:
                changes["approvers"] = await people(profile, channel, wishes.approvers)
            wanted = _wanted(before or _fresh(profile, channel, channel_name), changes, new_session=new_session)
            checked = _checked(wanted, target)
            if before is None:
                journal.write_now(bindings.create, await _first(profile, checked))
            else:
                journal.write_now(bindings.change, **_columns(checked))
        finally:
            journal.close()
    finally:
        lock.release()
    target.remember(
        channelName=channel_name, adapter=checked.adapter, agent=profile.agent, agentName=profile.agent_name
    )
    return {
        "state": "configured",
        "profile": profile.name,
        "channel": channel,
        "channelName": channel_name,
        "adapter": checked.adapter,
        "argv": list(checked.argv),
        "directory": checked.directory,
        "wake": checked.wake,
        "chainLimit": checked.chain_limit,
        "network": checked.network,
        "tools": checked.tools,
        "approvals": checked.approvals,
        "approvers": list(checked.approvers),
    }


async def people(profile: Profile, channel: str, named: Sequence[str]) -> tuple[str, ...]:
    """The ids of people of a channel, by name or id; none for `anyone`.

    Raises:
        RelayError: somebody is not there, or no person; a name is not unique; the hub is away.
    """
    if tuple(named) == (ANYONE,):
        return ()
    async with Rest(profile.url, profile.token()) as rest:
        members = await Hub(rest).members(channel)
    found = []
    for each in named:
        fits = [member for member in members if each in {member["id"], member["name"]} and member["kind"] == "human"]
        if len(fits) != 1:
            here = ", ".join(f"{member['name']} ({member['id']})" for member in members if member["kind"] == "human")
            what = "There are several people called" if fits else "There is no person called"
            raise RelayError(
                f"{what} {each} in this channel; its people are: {here or 'none'}.",
                code="unknown_person",
                hint="--approvers ID, or --approvers anyone",
            )
        found.append(str(fits[0]["id"]))
    return tuple(dict.fromkeys(found))


def _fresh(profile: Profile, channel: str, channel_name: str) -> Binding:
    return Binding(
        agent=profile.agent,
        agent_name=profile.agent_name,
        workspace=profile.workspace,
        channel=channel,
        channel_name=channel_name,
        wake=Wake.ADDRESSED.value,
        adapter=registry.default(),
        argv=(),
        directory=str(Path.cwd()),
        network=False,
        tools=True,
        env=(),
        approvals=ASK,
        approvers=(),
        approval_time=APPROVAL_SECONDS,
        chain_limit=DEFAULT_LIMIT,
        ceiling=CEILING_SECONDS,
        stall=STALL_SECONDS,
        keep_messages=KEEP_MESSAGES,
        keep_days=0,
        session=None,
        holder="h" + secrets.token_hex(12),
        subscription=None,
        chain_count=0,
        cursor=None,
        watermark=None,
        configured_at=0.0,
    )


def _wanted(before: Binding, changes: dict[str, Any], *, new_session: bool) -> Binding:
    moved = any(name in changes and changes[name] != getattr(before, name) for name in ("adapter", "directory"))
    if new_session:
        changes = {**changes, "session": None}
    elif before.session is not None and moved:
        raise RelayError(
            "This binding has a session: another adapter or directory needs a new one.",
            code="has_session",
            hint="add --new-session",
        )
    return before.evolve(**changes)


def _checked(wanted: Binding, target: Target) -> Binding:
    folder = Path(wanted.directory)
    if wanted.adapter == "command" and not wanted.argv:
        raise RelayError(
            "No agent is named: codex is not on PATH, and the command adapter needs a program.",
            code="missing",
            hint="--adapter command --argv '[\"/path/to/runner\"]', or install Codex",
        )
    if not folder.is_dir():
        raise RelayError(f"There is no directory {folder}.", code="no_directory", hint="--directory DIR")
    for ours in (paths.home(), target.runtime):
        if ours.resolve().is_relative_to(folder.resolve()):
            raise RelayError(
                f"The directory {folder} holds this program's own state ({ours}); a job could change it.",
                code="directory_holds_state",
                hint="choose a project's directory: --directory DIR",
            )
    try:
        kind = registry.load(wanted.adapter)
        settings = kind.check(
            AdapterBinding(
                settings={
                    "argv": list(wanted.argv),
                    "network": wanted.network,
                    "tools": wanted.tools,
                    "ask": wanted.approvals == ASK,
                },
                directory=folder,
                environment=environment.build(wanted.env),
                spool=target.folder / SPOOL,
                runtime=target.runtime,
            )
        )
    except AdapterUnusable as error:
        raise RelayError(str(error), code=error.code, hint="relay receiver configure --help") from error
    return wanted.evolve(argv=tuple(settings.get("argv", wanted.argv)))


async def _first(profile: Profile, wanted: Binding) -> Binding:
    """The binding as it begins: at this moment of the channel, with a subscription of its own."""
    async with Rest(profile.url, profile.token()) as rest:
        hub = Hub(rest)
        state = await hub.state()
        if wanted.channel not in {found["id"] for found in state["channels"]}:
            raise RelayError(
                f"{profile.agent_name} is not in that channel.", code="unknown_channel", hint="relay channels list"
            )
        cursor = state["cursor"]
        subscription = await hub.subscribe(channel=wanted.channel, cursor=cursor)
    return wanted.evolve(
        cursor=str(cursor),
        watermark=Cursor.parse(cursor).number,
        subscription=str(subscription["id"]),
        configured_at=newest(state.get("messages") or (), wanted.channel),
    )


def newest(messages: Sequence[Any], channel: str) -> float:
    """When the channel's newest message was written, by the hub's clock: what is as old was there before."""
    times = [seconds(str(each["createdAt"])) for each in messages if each["channel"] == channel]
    return max(times, default=0.0)


def _columns(binding: Binding) -> dict[str, Any]:
    names = (
        "wake",
        "adapter",
        "argv",
        "directory",
        "chain_limit",
        "ceiling",
        "stall",
        "keep_messages",
        "keep_days",
        "network",
        "tools",
        "env",
        "approvals",
        "approvers",
        "approval_time",
        "session",
        "agent_name",
        "channel_name",
    )
    return {name: getattr(binding, name) for name in names}
