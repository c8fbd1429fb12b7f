"""Starting an app-server under a keeper of its own, once nothing of the one before lives."""

import asyncio
from collections.abc import Callable

from relay_receiver.adapters.base import AdapterUnusable, Binding
from relay_receiver.adapters.codex_launch import Launch
from relay_receiver.adapters.codex_server import AppServer, Gone, Heard
from relay_receiver.processes import agent as agents
from relay_receiver.processes.agent import AgentRefused, KeptAgent
from relay_receiver.processes.command import KeeperLost
from relay_receiver.processes.launch import Launcher, LauncherLost

KEY = "agent"
"""The name of the keeper's files; one app-server a binding."""

OLD_ONE_TRIES = 200
OLD_ONE_SECONDS = 0.02
"""Looks, and seconds between them, for an app-server of before whose keeper still ends what it left."""
OLD_ONE_GRACE_SECONDS = 2.0


async def start(
    binding: Binding, launch: Launch, launcher: Launcher, *, heard: Heard, gone: Callable[[Gone], None]
) -> AppServer:
    """A fresh app-server, not introduced to yet.

    Raises:
        AdapterUnusable: it does not start, or one of before does not end.
    """
    await _see_old_one_gone(binding)
    try:
        agent = await KeptAgent.start(
            launcher,
            key=KEY,
            argv=list(launch.argv),
            environment=dict(launch.environment),
            directory=binding.directory,
            spool=binding.spool,
            runtime=binding.runtime,
        )
    except (AgentRefused, KeeperLost, LauncherLost) as error:
        raise AdapterUnusable(f"{launch.argv[0]} does not start: {error}.") from error
    return AppServer(agent, heard, gone)


async def attach(binding: Binding, *, after: int, heard: Heard, gone: Callable[[Gone], None]) -> AppServer | None:
    """The app-server that a process before this one left with its keeper, or what there is of its lines.

    Args:
        after: the number of the line after which they are heard again.
    """
    agent = await KeptAgent.attach(KEY, spool=binding.spool, runtime=binding.runtime, after=after)
    return None if agent is None else AppServer(agent, heard, gone)


async def _see_old_one_gone(binding: Binding) -> None:
    for _ in range(OLD_ONE_TRIES):
        if await agents.gone(KEY, spool=binding.spool, grace=OLD_ONE_GRACE_SECONDS):
            return
        await asyncio.sleep(OLD_ONE_SECONDS)
    raise AdapterUnusable("The Codex app-server of before does not end.", "busy")
