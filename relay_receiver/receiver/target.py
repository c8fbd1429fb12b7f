"""Which binding a call is about, and where its files are."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relay_receiver.journal.facts import public_facts
from relay_receiver.processes import files, paths
from relay_receiver.wire.errors import RelayError

FACTS = "binding.json"
JOURNAL = "journal.sqlite3"
LOCK = "lock"
LOG = "receiver.log"
SPOOL = "spool"


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
        return _facts(self.folder)

    def remember(self, **facts: Any) -> None:  # noqa: ANN401 - JSON
        """Write the public facts: no secrets."""
        own = {"profile": self.profile, "workspace": self.workspace, "channel": self.channel}
        files.private_dir(self.folder)
        files.write_private(self.folder / FACTS, json.dumps({**own, **facts}).encode())


def targets() -> Iterator[Target]:
    """Every binding of this user on this machine; one that neither its file nor its journal tells is passed over."""
    root = paths.profiles_dir()
    for path in sorted(root.glob(f"*/receivers/*/{FACTS}")):
        try:
            facts = _facts(path.parent)
        except (OSError, RelayError):
            continue
        yield Target(facts["profile"], facts["workspace"], facts["channel"])


def _facts(folder: Path) -> dict[str, Any]:
    path = folder / FACTS
    try:
        found = json.loads(files.read_private(path))
    except FileNotFoundError:
        raise RelayError(
            "No receiver is configured for this channel.", code="not_configured", hint="relay receiver start"
        ) from None
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict) and all(
        isinstance(found.get(name), str) for name in ("profile", "workspace", "channel")
    ):
        return found
    return _mended(path)


def _mended(path: Path) -> dict[str, Any]:
    """A damaged file of facts is put aside, and written again from the journal beside it."""
    known = public_facts(path.with_name(JOURNAL))
    if known is None:
        raise RelayError(
            f"The file {path} is damaged, and the journal beside it cannot tell what it said.",
            code="corrupt",
            hint="relay receiver configure writes it again",
        )
    path.replace(path.with_name(f"{FACTS}.damaged"))
    facts = {"profile": path.parents[2].name, **known}
    files.write_private(path, json.dumps(facts).encode())
    return facts
