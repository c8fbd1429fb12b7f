"""The plan that the processes of a trial find at their fault points, and what they did about it."""

import json
from pathlib import Path


class Faults:
    """The folder that `RELAY_FAULTS` names; `processes.keeper_faults` reads it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)

    def plan(self, point: str, do: str = "kill", *, skip: int = 0) -> int:
        """Have the next process that comes to `point` do it; a number that `hit` takes."""
        beside = self.folder / "plan.next"
        beside.write_text(json.dumps({"point": point, "do": do, "skip": skip}))
        before = len(self.hits())
        beside.rename(self.folder / "plan")
        return before

    def hits(self) -> list[tuple[str, int, str]]:
        """What was carried out: point, pid, deed."""
        path = self.folder / "hits"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(point, int(pid), do) for point, pid, do in (line.split() for line in lines)]

    def hit(self, number: int) -> tuple[str, int, str] | None:
        """The hit that a plan led to, once it did."""
        hits = self.hits()
        return hits[number] if len(hits) > number else None

    def clear(self) -> None:
        """Take back a plan that nobody came to."""
        (self.folder / "plan").unlink(missing_ok=True)

    def seen(self) -> set[str]:
        """Every point that any process came to."""
        path = self.folder / "seen"
        return set(path.read_text().split()) if path.exists() else set()
