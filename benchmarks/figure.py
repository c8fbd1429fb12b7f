"""One measured figure, with its floor, its goal and the peer's figure beside it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    what: str
    value: float
    unit: str
    floor: float | None = None
    goal: float | None = None
    least: bool = False
    """The goal is the least that is wanted, not the most."""
    times: float | None = None
    """The most that the value may be of its floor (of `least`: the least)."""
    peer: str = ""
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return None if not self.floor else self.value / self.floor

    @property
    def met(self) -> bool | None:
        """None where there is no goal."""
        judged = []
        if self.goal is not None:
            judged.append(self.value >= self.goal if self.least else self.value <= self.goal)
        if self.times is not None and self.ratio is not None:
            judged.append(self.ratio >= self.times if self.least else self.ratio <= self.times)
        return all(judged) if judged else None


HEAD = ("what", "measured", "floor", "ratio", "goal", "", "peer", "note")


def table(figures: Iterable[Figure]) -> str:
    """The figures as a table of text that is also Markdown."""
    rows: list[Sequence[str]] = [HEAD, *(_row(each) for each in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    padded = ([f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)] for row in rows)
    lines = ["| " + " | ".join(cells) + " |" for cells in padded]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def _row(each: Figure) -> Sequence[str]:
    sign = "≥" if each.least else "≤"
    goals = []
    if each.goal is not None:
        goals.append(f"{sign} {number(each.goal)} {each.unit}")
    if each.times is not None:
        goals.append(f"{sign} {each.times:g}x floor")
    return (
        each.what,
        f"{number(each.value)} {each.unit}",
        "" if each.floor is None else f"{number(each.floor)} {each.unit}",
        "" if each.ratio is None else f"{each.ratio:.2f}x",
        ", ".join(goals),
        {True: "met", False: "MISSED", None: ""}[each.met],
        each.peer,
        each.note,
    )


def number(value: float) -> str:
    """Three figures that matter."""
    if value == int(value) and abs(value) < 1000:
        return str(int(value))
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
