"""Which binding a call is about, and where its files are."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relay_receiver.processes import files, paths
from relay_receiver.wire.errors import RelayError

FACTS = "binding.json"


@dataclass(frozen=True, slots=True)
class Target:
    """One binding: a profile in a channel of a workspace."""

    profile: str
    workspace: str
    channel: str

    @property
    def folder(self) -> Path:
        """Where its state is."""
        return paths.binding_dir(self.profile, self.workspace, self.channel)

    @property
    def runtime(self) -> Path:
        """Where its sockets are."""
        return paths.runtime_dir(self.folder)

    def facts(self) -> dict[str, Any]:
        """The public facts that `configure` wrote.

        Raises:
            RelayError: it is not configured, or the file cannot be read.
        """
        path = self.folder / FACTS
        try:
            found: dict[str, Any] = json.loads(files.read_private(path))
        except FileNotFoundError:
            raise RelayError(
                "No receiver is configured for this channel.", code="not_configured", hint="relay receiver start"
            ) from None
        except ValueError as error:
            raise RelayError(f"{path} cannot be read: {error}.", code="corrupt", hint="relay doctor") from error
        return found

    def remember(self, **facts: Any) -> None:  # noqa: ANN401 - JSON
        """Write the public facts: no secrets."""
        own = {"profile": self.profile, "workspace": self.workspace, "channel": self.channel}
        files.private_dir(self.folder)
        files.write_private(self.folder / FACTS, json.dumps({**own, **facts}).encode())


def targets() -> Iterator[Target]:
    """Every binding of this user on this machine; what cannot be read is passed over."""
    root = paths.profiles_dir()
    for path in sorted(root.glob(f"*/receivers/*/{FACTS}")):
        try:
            facts = json.loads(files.read_private(path))
            yield Target(facts["profile"], facts["workspace"], facts["channel"])
        except (OSError, ValueError, KeyError, RelayError):
            continue
