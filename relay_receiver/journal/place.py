"""Where a journal is: the same file on the same machine, or a copy that must not work twice."""

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from sqlalchemy import Connection, delete, insert, select

from relay_receiver.journal.errors import CopiedState
from relay_receiver.journal.tables import place


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """What tells this file from any copy of it."""

    machine: str
    device: str
    filesystem: str
    """The file system's id. It outlives a restart where device numbers do not, and differs for a snapshot."""
    inode: str

    @classmethod
    def of(cls, path: Path, machine: Callable[[], str]) -> "Place":
        """Where the file is now."""
        facts = path.stat()
        return cls(
            machine=machine(),
            device=str(facts.st_dev),
            filesystem=str(os.statvfs(path).f_fsid),
            inode=str(facts.st_ino),
        )

    def is_same(self, other: "Place") -> bool:
        """Whether both name one file."""
        if (self.machine, self.inode) != (other.machine, other.inode):
            return False
        return self.device == other.device or (self.filesystem == other.filesystem != "0")


NOWHERE = Place(machine="", device="", filesystem="", inode="")
"""The place of a backup: whatever it is restored to, it has to be adopted."""


def load(conn: Connection) -> Place | None:
    """The place that the journal recorded."""
    row = conn.execute(select(*place.c["machine", "device", "filesystem", "inode"])).one_or_none()
    return None if row is None else Place(**row._mapping)  # noqa: SLF001 - SQLAlchemy's public name for it


def record(conn: Connection, where: Place) -> None:
    """Make `where` the journal's own place."""
    conn.execute(delete(place))
    conn.execute(insert(place).values(id=1, **asdict(where)))


def check(conn: Connection, path: Path, machine: Callable[[], str]) -> None:
    """Refuse a journal that was copied or restored.

    Raises:
        CopiedState: it is not where it was made or adopted.
    """
    recorded = load(conn)
    if recorded is not None and recorded.is_same(Place.of(path, machine)):
        return
    raise CopiedState(
        f"The journal {path} was copied or restored: running it as it is could do work twice.",
        code="copied_state",
        hint="If nothing else runs this binding: relay receiver adopt",
    )
