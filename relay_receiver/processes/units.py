"""User services that bring a receiver back after a reboot: a systemd user unit, a launchd agent."""

import os
import plistlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from relay_receiver.processes import files
from relay_receiver.wire.errors import RelayError

PLATFORM: str = sys.platform
STOP_SECONDS = 60
"""How long the manager waits for a stop: above the receiver's own grace and last words."""
RESTART_SECONDS = 5
_TOOL_SECONDS = 90.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Service:
    """One receiver as a service. `argv` runs it in the foreground, `stop` asks it to end."""

    name: str
    description: str
    argv: Sequence[str]
    stop: Sequence[str]
    environment: dict[str, str]

    def unit(self) -> str:
        """The systemd user unit.

        Only the receiver itself is signalled: keepers hold their agents, and the next receiver attaches again.
        """
        lines = [
            "[Unit]",
            f"Description={_plain(self.description)}",
            "After=network-online.target",
            "StartLimitIntervalSec=0",
            "",
            "[Service]",
            "Type=notify",
            f"ExecStart={_words(self.argv)}",
            f"ExecStop={_words(self.stop)}",
            *(f'Environment="{_escaped(f"{name}={value}")}"' for name, value in sorted(self.environment.items())),
            "KillMode=process",
            "OOMPolicy=continue",
            "Restart=on-failure",
            f"RestartSec={RESTART_SECONDS}",
            f"TimeoutStopSec={STOP_SECONDS}",
            "",
            "[Install]",
            "WantedBy=default.target",
        ]
        return "\n".join(lines) + "\n"

    def plist(self) -> bytes:
        """The launchd agent."""
        return plistlib.dumps(
            {
                "Label": self.name,
                "ProgramArguments": list(self.argv),
                "EnvironmentVariables": self.environment,
                "RunAtLoad": True,
                "KeepAlive": {"SuccessfulExit": False},
                "AbandonProcessGroup": True,
                "ExitTimeOut": STOP_SECONDS,
                "ThrottleInterval": RESTART_SECONDS,
            }
        )


def environment() -> dict[str, str]:
    """What a service needs of this shell's environment: where its state is, and where programs are found."""
    names = ("RELAY_HOME", "PATH", "CODEX_HOME", "LANG", "XDG_STATE_HOME")
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def path_of(name: str) -> Path:
    """Where the service file of that name is."""
    if PLATFORM == "darwin":
        return Path.home() / "Library" / "LaunchAgents" / f"{name}.plist"
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "systemd" / "user" / f"{name}.service"


def install(service: Service) -> Path:
    """Write the service file where the manager finds it; nothing is started yet, and nothing is left on a refusal.

    Raises:
        RelayError: there is no manager, or it refuses.
    """
    if PLATFORM != "darwin":
        _need("systemctl")
    path = path_of(service.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_private(path, service.plist() if PLATFORM == "darwin" else service.unit().encode())
    try:
        if PLATFORM != "darwin":
            _run("systemctl", "--user", "daemon-reload")
    except RelayError:
        path.unlink()
        raise
    return path


def begin(name: str) -> None:
    """Have the manager start an installed service now and at every boot.

    Raises:
        RelayError: it refuses.
    """
    if PLATFORM == "darwin":
        _run("launchctl", "bootstrap", f"gui/{os.getuid()}", str(path_of(name)))
    else:
        _run("systemctl", "--user", "enable", "--now", f"{name}.service")


def disable(name: str) -> bool:
    """Have the manager forget the service; False where there was none.

    Raises:
        RelayError: the manager refuses.
    """
    path = path_of(name)
    if not path.exists():
        return False
    if PLATFORM == "darwin":
        _run("launchctl", "bootout", f"gui/{os.getuid()}/{name}")
    else:
        _need("systemctl")
        _run("systemctl", "--user", "disable", "--now", f"{name}.service")
    path.unlink(missing_ok=True)
    if PLATFORM != "darwin":
        _run("systemctl", "--user", "daemon-reload")
    return True


def lingers() -> bool | None:
    """Whether this user's services run without a login; None where that is not known."""
    if PLATFORM != "linux" or shutil.which("loginctl") is None:
        return None
    told = subprocess.run(
        ["loginctl", "show-user", str(os.getuid()), "--property=Linger"],  # noqa: S607 - found on PATH on purpose
        capture_output=True,
        text=True,
        check=False,
        timeout=_TOOL_SECONDS,
    )
    return None if told.returncode else told.stdout.strip() == "Linger=yes"


def _need(tool: str) -> None:
    if shutil.which(tool) is None:
        raise RelayError(
            "There is no service manager of this user here that could start it.",
            code="no_service_manager",
            hint="relay receiver start, from whatever starts things on this machine",
        )


def _run(*argv: str) -> None:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=_TOOL_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RelayError(f"{argv[0]} did not answer: {error}.", code="service_manager") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        why = said[-1] if said else f"exit status {done.returncode}"
        raise RelayError(
            f"{argv[0]} refused: {why.rstrip('.')}.",
            code="service_manager",
            hint="relay receiver start works without a service manager, until the next reboot",
        )


def _words(argv: Sequence[str]) -> str:
    """Words as `ExecStart=` reads them: there, and nowhere else, `$` begins a variable."""
    return " ".join(f'"{_escaped(word).replace("$", "$$")}"' for word in argv)


def _escaped(text: str) -> str:
    """Text between quotes as systemd reads it, with its specifiers taken literally."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n")


def _plain(text: str) -> str:
    return " ".join(text.replace("%", "%%").split())
