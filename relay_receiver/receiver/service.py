"""A receiver as a service of this user: started at every boot, by systemd or launchd."""

import sys
from typing import Any

from relay_receiver.processes import units
from relay_receiver.receiver import verbs
from relay_receiver.receiver.target import Target


def enable(target: Target) -> dict[str, Any]:
    """Have the receiver started now and at every boot, by the service manager of this user."""
    found = of(target)
    path = units.install(found)
    verbs.detach(target)
    units.begin(found.name)
    return {"state": "enabled", "service": found.name, "path": str(path), "lingers": units.lingers()}


def disable(target: Target) -> dict[str, Any]:
    """Have the service manager forget the receiver, and stop it."""
    found = of(target)
    was = units.disable(found.name)
    return {"state": "disabled", "service": found.name, "was": "enabled" if was else "disabled"}


def state(target: Target) -> dict[str, Any] | None:
    """The service of a receiver, where one was enabled: `{service, current, lingers}`.

    `current` is False where it was written with another PATH, home or Python than those of this process.
    """
    found = of(target)
    path = units.path_of(found.name)
    if not path.exists():
        return None
    written = found.plist() if units.PLATFORM == "darwin" else found.unit().encode()
    return {"service": found.name, "current": path.read_bytes() == written, "lingers": units.lingers()}


def of(target: Target) -> units.Service:
    """The service that a receiver is, enabled or not."""
    facts = target.facts()
    own = [sys.executable, "-m", "relay_receiver.cli.main", "--profile", target.profile, "receiver"]
    return units.Service(
        name=f"relay-receiver-{target.folder.name}",
        description=f"Relay receiver of {facts.get('agentName')} in {facts.get('channelName')}",
        argv=[*own, "run", "--channel", target.channel],
        stop=[*own, "stop", "--channel", target.channel],
        environment=units.environment(),
    )
