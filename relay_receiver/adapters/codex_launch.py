"""How Codex is started: the command line, its environment, and what can be checked beforehand."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relay_receiver.adapters.base import AdapterUnusable, Binding
from relay_receiver.adapters.codex_ledger import codex_home
from relay_receiver.adapters.codex_thread import TOOL_START_SECONDS

VERSION_SECONDS = 20.0
CREDENTIAL = "agent.job"
"""The file in the spool with the credential of the job in hand, at one path for the life of the app-server."""
TOOL_SECONDS = 660
"""How long Codex waits for a tool: above the 10 minutes that `wait` may take."""

_PASSED_ON = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables that the tools need to reach the hub; by name, so that no value is in an argument."""


Setting = bool | int | str | Sequence[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """The command line and environment of one app-server."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]

    @property
    def fingerprint(self) -> str:
        """Changes when any of it does."""
        text = json.dumps([self.argv, sorted(self.environment.items())])
        return hashlib.sha256(text.encode()).hexdigest()


def plan(binding: Binding) -> Launch:
    """The app-server of a binding: its network as the binding says, whatever Codex's own settings say.

    Raises:
        AdapterUnusable: there is no Codex.
    """
    program = _program(binding)
    credential = str(binding.spool / CREDENTIAL)
    settings: dict[str, Setting] = {"sandbox_workspace_write.network_access": bool(binding.settings.get("network"))}
    environment = {**binding.environment, "RELAY_JOB": credential}
    if binding.settings.get("tools"):
        names = [name for name in _PASSED_ON for name in (name, name.lower()) if name in environment]
        settings |= {
            "mcp_servers.relay.command": sys.executable,
            "mcp_servers.relay.args": ["-P", "-m", "relay_receiver.cli.main", "mcp"],
            "mcp_servers.relay.env.RELAY_JOB": credential,
            "mcp_servers.relay.env_vars": names,
            "mcp_servers.relay.default_tools_approval_mode": "approve",
            "mcp_servers.relay.tool_timeout_sec": TOOL_SECONDS,
            "mcp_servers.relay.startup_timeout_sec": TOOL_START_SECONDS,
        }
    overrides = [part for name, value in settings.items() for part in ("-c", f"{name}={_toml(value)}")]
    server = [] if "app-server" in program else ["app-server"]
    return Launch(argv=(*program, *server, *overrides), environment=environment)


def check(binding: Binding) -> dict[str, Any]:
    """What can be known without a turn: the program starts, its version, whether it is signed in.

    Returns:
        `{argv, version, signedIn, note}`; `signedIn` is None where only Codex knows.

    Raises:
        AdapterUnusable: there is no Codex, it does not start, or nobody is signed in.
    """
    program = _program(binding)
    command = [part for part in program if part != "app-server"]
    try:
        asked = subprocess.run(
            [*command, "--version"],
            env=dict(binding.environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=VERSION_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise AdapterUnusable(f"{program[0]} does not start: {_why(error)}.") from error
    signed_in, note = _signed_in(binding.environment)
    if signed_in is False:
        raise AdapterUnusable(f"Codex is not signed in ({note}): run `codex login`.", "unauthorized")
    version = asked.stdout.decode("utf-8", "replace").strip()
    return {"argv": list(program), "version": version, "signedIn": signed_in, "note": note}


def _program(binding: Binding) -> list[str]:
    given = [str(part) for part in binding.settings.get("argv") or ["codex"]]
    found = shutil.which(given[0], path=binding.environment.get("PATH", os.defpath))
    if found is None:
        where = "on PATH" if os.sep not in given[0] else "that can be run"
        raise AdapterUnusable(
            f"There is no program {given[0]} {where}: install Codex, or name it with "
            """--argv '["/absolute/path/to/codex"]'."""
        )
    return [str(Path(found).absolute()), *given[1:]]


def _signed_in(environment: Mapping[str, str]) -> tuple[bool | None, str]:
    home = codex_home(environment)
    if (home / "auth.json").is_file():
        return True, f"{home / 'auth.json'} is there"
    try:
        config = tomllib.loads((home / "config.toml").read_text(encoding="utf-8"))
    except FileNotFoundError:
        config = {}
    except (OSError, ValueError) as error:
        raise AdapterUnusable(f"{home / 'config.toml'} cannot be read: {error}.") from error
    if config.get("model_provider", "openai") != "openai":
        return None, f"it uses the provider {config['model_provider']}"
    if config.get("cli_auth_credentials_store", "file") != "file" or config.get("profile") is not None:
        return None, "only Codex itself knows"
    return False, f"there is no {home / 'auth.json'}"


def _why(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        said = error.stderr.decode("utf-8", "replace").strip().splitlines()
        return said[-1] if said else f"it ended with {error.returncode}"
    if isinstance(error, subprocess.TimeoutExpired):
        return f"it did not answer within {VERSION_SECONDS:g} seconds"
    return str(error)


def _toml(value: Setting) -> str:
    """The value as TOML; for these kinds that is JSON with DEL escaped too."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
