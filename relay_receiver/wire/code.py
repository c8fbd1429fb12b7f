"""Where the code in a Markdown text is: fenced blocks, also those that never end, and spans between backticks."""

import re
from bisect import bisect_right

_OPENING = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n|(?<!`)(`+)(?!`)", re.MULTILINE)
_RUN = re.compile("`+")


def spans(text: str) -> list[tuple[int, int]]:
    """`(start, end)` of each piece of code, in order. It takes time in proportion to the text, whatever is in it."""
    found: list[tuple[int, int]] = []
    runs: dict[int, list[int]] | None = None
    place = 0
    while (opening := _OPENING.search(text, place)) is not None:
        fence = opening[1]
        if fence:
            closing = re.compile(rf"^[ \t]*{re.escape(fence)}", re.MULTILINE).search(text, opening.end())
            place = len(text) if closing is None else closing.end()
        else:
            if runs is None:
                runs = _runs(text)
            alike = runs[len(opening[2])]
            after = bisect_right(alike, opening.start())
            if after == len(alike):
                place = opening.end()
                continue
            place = alike[after] + len(opening[2])
        found.append((opening.start(), place))
    return found


def _runs(text: str) -> dict[int, list[int]]:
    """Where runs of backticks begin, by their length."""
    found: dict[int, list[int]] = {}
    for run in _RUN.finditer(text):
        found.setdefault(len(run[0]), []).append(run.start())
    return found


def blanked(text: str) -> str:
    """The text with its code replaced by as many spaces."""
    pieces, behind = [], 0
    for start, end in spans(text):
        pieces += [text[behind:start], " " * (end - start)]
        behind = end
    return "".join([*pieces, text[behind:]])
