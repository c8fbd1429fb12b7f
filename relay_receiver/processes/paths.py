"""Where things are: state below RELAY_HOME or the platform's state directory, sockets in a short private directory."""

import os
import sys
from pathlib import Path

from relay_receiver.processes import files
from relay_receiver.wire.errors import RelayError

HOME = "RELAY_HOME"
SOCKET_BYTES = 70
"""A directory for sockets is at most this long: the path of a unix socket ends at 104 (macOS) or 108 bytes."""


def home() -> Path:
    """The root of all state: RELAY_HOME, else the platform's directory for it.

    Raises:
        RelayError: neither RELAY_HOME nor a home directory is known.
    """
    if given := os.environ.get(HOME):
        return Path(given).absolute()
    try:
        user = Path.home()
    except RuntimeError:
        raise RelayError(
            "There is no home directory to keep state in.", code="no_home", hint="export RELAY_HOME=DIRECTORY"
        ) from None
    if sys.platform == "darwin":
        return user / "Library" / "Application Support" / "relay-receiver"
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base and Path(base).is_absolute() else user / ".local" / "state") / "relay-receiver"


def profiles_dir() -> Path:
    """Where the profiles are."""
    return home() / "profiles"


def profile_dir(name: str) -> Path:
    """Where one profile is."""
    return profiles_dir() / name


def hub_dir() -> Path:
    """Where a hub of this machine keeps its data, unless told otherwise."""
    return home() / "hub"


def binding_dir(profile: str, workspace: str, channel: str) -> Path:
    """Where the state of one receiver is."""
    return profile_dir(profile) / "receivers" / files.short(f"{workspace}\x00{channel}")


def runtime_dir(of: Path) -> Path:
    """Where the sockets of the state directory `of` are: the same for every process of this user, and short."""
    name = files.short(str(of.resolve()))
    beside = home() / "run" / name
    if len(os.fsencode(beside)) <= SOCKET_BYTES:
        return beside
    return Path("/tmp") / f"relay-{os.geteuid()}-{name}"  # noqa: S108 - made private, and its owner checked
