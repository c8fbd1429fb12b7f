"""The evidence of a job: what is there to see now, gathered without running anything that it may have planted."""

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relay_receiver.processes.ending import End, living
from relay_receiver.processes.identity import ProcessIdentity
from relay_receiver.processes.kept import Kept
from relay_receiver.wire.message import iso

SCANNED = 20_000
"""Files of the working directory that are looked at, at the most."""
SHOWN = 100
"""Changed files that are shown, the newest first."""
HASHED_BYTES = 1024 * 1024
"""Files up to this size are told with their hash."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Changed:
    """One file of the working directory that was modified since the job began."""

    path: str
    size: int
    at: float
    sha256: str | None

    def to_json(self) -> dict[str, Any]:
        """As the sheet shows it."""
        return {"path": self.path, "size": self.size, "modifiedAt": iso(self.at), "sha256": self.sha256}


def gather(*, directory: Path, spool: Path, key: str, keeper: str | None, since: float | None) -> dict[str, Any]:
    """What can be seen now of one attempt.

    Args:
        directory: where the job works.
        key: names the attempt in the spool.
        keeper: identity of its keeper as JSON.
        since: seconds since the epoch, when it was handed over; None where it never was.
    """
    end = End.read(spool, key)
    changed, whole = ([], True) if since is None else _changed(directory, since)
    return {
        "processes": _processes(spool, key, keeper),
        "stderr": None if end is None else end.stderr.decode("utf-8", "replace"),
        "changed": [each.to_json() for each in changed[:SHOWN]],
        "changedCount": len(changed),
        "directoryWhole": whole,
    }


def _processes(spool: Path, key: str, keeper: str | None) -> list[dict[str, Any]]:
    """What lives of the attempt: found by what its keeper left in the spool, else by the identity in the journal."""
    kept = Kept.read(spool, key)
    if kept is None:
        try:
            kept = Kept(keeper=ProcessIdentity.from_json(keeper or ""), child=None)
        except ValueError:
            return []
    return [{"pid": pid} for pid in living(kept)]


def _changed(directory: Path, since: float) -> tuple[list[Changed], bool]:
    """The files modified since then, newest first, and whether the whole directory was looked at."""
    found: list[tuple[float, int, str]] = []
    for count, (path, told) in enumerate(_files(str(directory))):
        if count >= SCANNED:
            return _told(found, directory), False
        if told.st_mtime >= since:
            found.append((told.st_mtime, told.st_size, path))
    return _told(found, directory), True


def _files(root: str) -> Iterator[tuple[str, os.stat_result]]:
    """Regular files below a directory; links are not followed, and a repository's own store is left out."""
    for folder, names, files in os.walk(root, followlinks=False, onerror=lambda _: None):
        names[:] = [name for name in names if name != ".git"]
        for name in files:
            path = f"{folder}/{name}"
            try:
                told = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISREG(told.st_mode):
                yield path, told


def _told(found: list[tuple[float, int, str]], directory: Path) -> list[Changed]:
    ordered = sorted(found, reverse=True)
    return [
        Changed(
            path=os.path.relpath(path, directory),
            size=size,
            at=at,
            sha256=_hash(path) if place < SHOWN and size <= HASHED_BYTES else None,
        )
        for place, (at, size, path) in enumerate(ordered)
    ]


def _hash(path: str) -> str | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            return hashlib.sha256(file.read(HASHED_BYTES)).hexdigest()
    except OSError:
        return None
