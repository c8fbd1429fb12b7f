"""The adapter's own record beside the spool: which thread, and what was handed over last."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from relay_receiver.processes import files
from relay_receiver.wire.errors import RelayError

FILE = "agent.ledger"


@dataclass(kw_only=True)
class Ledger:
    """Facts that recovery needs, written before the hand-over that they are about.

    Nothing here is fsynced before a hand-over: a file outlives its process without that, and what a restart
    of the machine may have lost is not relied on (`boot` tells).
    """

    path: Path
    launch: str = ""
    """Fingerprint of the command line and environment that the app-server runs with."""
    session: str | None = None
    """The session as the journal may still know it."""
    thread: str | None = None
    """The thread that stands for it: another one where the first was lost before its first turn."""
    worked: bool = False
    """The thread has had a turn that ended."""
    server: str = ""
    """The keeper of the app-server that was started last."""
    keeper: str = ""
    """The keeper of the app-server that has the attempt."""
    key: str = ""
    """The attempt that was handed over last, until its end is recorded."""
    boot: str = ""
    home: list[int] = field(default_factory=list)
    """Device and inode of CODEX_HOME."""
    before: str | None = None
    """The last turn of the thread before the hand-over."""
    position: int = 0
    """The spool line up to which `turn` speaks; after it the lines do."""
    turn: dict[str, Any] = field(default_factory=dict)
    """Snapshot of the turn."""
    present: bool = False
    """False where there was no readable record: then nothing can be proven by it."""

    @classmethod
    def load(cls, spool: Path) -> Self:
        """The record of this spool; an empty one where there is none or it is damaged."""
        path = spool / FILE
        try:
            value = json.loads(files.read_private(path))
            names = {
                "launch",
                "keeper",
                "session",
                "thread",
                "worked",
                "key",
                "boot",
                "home",
                "before",
                "position",
                "turn",
            }
            return cls(path=path, present=True, **{name: value[name] for name in names})
        except (RelayError, OSError, ValueError, KeyError, TypeError):
            return cls(path=path)

    def save(self, *, durable: bool = False) -> None:
        """Write it, whole, in place of the one before."""
        value = asdict(self)
        del value["path"], value["present"]
        files.write_private(self.path, json.dumps(value).encode(), durable=durable)
        self.present = True


def codex_home(environment: Mapping[str, str]) -> Path:
    """The directory that Codex keeps its threads in."""
    home = environment.get("CODEX_HOME")
    return Path(home) if home else Path(environment.get("HOME", "/")) / ".codex"


def identity_of(directory: Path) -> list[int]:
    """Device and inode of a directory; empty where there is none."""
    try:
        found = directory.stat()
    except OSError:
        return []
    return [found.st_dev, found.st_ino]
