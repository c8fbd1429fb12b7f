"""What the preloaded library logged."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Fsync:
    pid: int
    ended: int
    """Monotonic nanoseconds."""
    took: int
    path: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Exit:
    """A keeper that ended."""

    pid: int
    ended: int
    cpu: float
    """Seconds of CPU, its program included."""


class Log:
    """The log of one world; empty where nothing could be preloaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fsyncs(self) -> list[Fsync]:
        found = []
        for line in self._lines("F"):
            _, pid, ended, took, *rest = line.split(" ", 4)
            found.append(Fsync(pid=int(pid), ended=int(ended), took=int(took), path=rest[0] if rest else ""))
        return found

    def exits(self) -> list[Exit]:
        found = []
        for line in self._lines("X"):
            _, pid, ended, cpu, children = line.split()
            found.append(Exit(pid=int(pid), ended=int(ended), cpu=(int(cpu) + int(children)) / 1e9))
        return found

    def _lines(self, kind: str) -> list[str]:
        if not self.path.exists():
            return []
        return [line for line in self.path.read_text().splitlines() if line.startswith(f"{kind} ")]
