"""Words of a text as a search knows them, what somebody typed as a query, and where its words stand in a text."""

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

WORD_CHARS = 64
"""Of a longer word only its beginning counts."""
QUERY_WORDS = 16
"""Words of a query that count."""
SNIPPET_CHARS = 180
LEAD_CHARS = 50
"""What a snippet shows before the first word found."""

# Scripts that are written without spaces: each character is a word, and neighbours make a phrase.
_ALONE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_ALONE}]|[^\W_{_ALONE}]+")
_ACCENT = re.compile("[\u0300-\u036f]")
_CHUNK = re.compile(r'"([^"]*)"?|([^\s"]+)')


def fold(text: str) -> str:
    """The text without the differences that a search overlooks: case, accents, compatibility forms."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFKD", text.casefold())))


def words(text: str) -> list[str]:
    """The words of a text in order, folded."""
    return [each[:WORD_CHARS] for each in _WORD.findall(fold(text))]


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """What to look for: texts that have all the phrases, each of words that follow each other.

    With `open_end` the last word of the last phrase is the beginning of one.
    """

    phrases: tuple[tuple[str, ...], ...]
    open_end: bool


def parse(typed: str) -> Query:
    """The query that somebody means by what they typed; any text is one.

    What stands between double quotes, or together without a space, is one phrase.
    """
    phrases: list[tuple[str, ...]] = []
    left, open_end = QUERY_WORDS, False
    for quoted, bare in _CHUNK.findall(typed):
        found = tuple(words(quoted or bare)[:left])
        if found:
            left -= len(found)
            phrases.append(found)
            open_end = bool(bare)
    return Query(phrases=tuple(phrases), open_end=open_end)


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A piece of a snippet; `hit` where it is a word that was looked for."""

    text: str
    hit: bool


def snippet(text: str, wanted: Collection[str]) -> list[Part]:
    """A piece of a text around the first of the wanted words, cut into hits and what is between them.

    Args:
        wanted: folded words. Where none is found, the piece is the beginning of the text.
    """
    first = _first(text, wanted)
    start = max(0, first - LEAD_CHARS)
    if start:
        space = text.find(" ", start, first)
        start = space + 1 if space >= 0 else start
    end = start + SNIPPET_CHARS
    piece = text[start:end]
    parts = list(_cut(piece, frozenset(wanted)))
    if start:
        parts.insert(0, Part(text="…", hit=False))
    if end < len(text):
        parts.append(Part(text="…", hit=False))
    return parts


def _first(text: str, wanted: Collection[str]) -> int:
    """Where the first wanted word stands; 0 where none is found."""
    if not wanted:
        return 0
    folded = fold(text)
    if len(folded) != len(text):
        # Folding moved things: only the beginning is looked at, word by word.
        found = (each.start() for each in _WORD.finditer(text[: 16 * SNIPPET_CHARS]) if fold(each[0]) in wanted)
        return next(found, 0)
    match = _any_of(sorted(wanted)).search(folded)
    return match.start() if match else 0


def _any_of(wanted: Sequence[str]) -> re.Pattern[str]:
    # Only those that stand alone are words of their own beside others; the rest begin and end at a boundary.
    bounded = [each for each in wanted if not re.fullmatch(f"[{_ALONE}]", each)]
    alone = [each for each in wanted if each not in bounded]
    ways = []
    if bounded:
        either = "|".join(map(re.escape, sorted(bounded, key=len, reverse=True)))
        ways.append(rf"(?<![^\W_{_ALONE}])(?:{either})(?![^\W_{_ALONE}])")
    if alone:
        ways.append(f"[{''.join(alone)}]")
    return re.compile("|".join(ways))


def _cut(piece: str, wanted: frozenset[str]) -> Iterator[Part]:
    behind = 0
    for match in _WORD.finditer(piece):
        if fold(match[0])[:WORD_CHARS] in wanted:
            if match.start() > behind:
                yield Part(text=piece[behind : match.start()], hit=False)
            yield Part(text=match[0], hit=True)
            behind = match.end()
    if behind < len(piece):
        yield Part(text=piece[behind:], hit=False)
