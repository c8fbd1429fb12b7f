"""Mentions: `@Name` in a text, as ids of a roster."""

import re
from collections.abc import Collection
from functools import lru_cache

from relay_receiver.wire.code import blanked


def mentioned(text: str, roster: Collection[tuple[str, str]]) -> list[str]:
    """The ids of those whom a text mentions, in the order of their first mention.

    Names count in any case, as whole words, the longest first, and never inside code. Members that share a name are
    all mentioned by it.

    Args:
        roster: `(id, name)` of each member who can be mentioned.
    """
    if "@" not in text or not roster:
        return []
    ids: dict[str, list[str]] = {}
    for each, name in roster:
        ids.setdefault(name.lower(), []).append(each)
    found = _pattern(tuple(sorted(ids, key=lambda name: (-len(name), name)))).findall(blanked(text))
    return list(dict.fromkeys(each for name in found for each in ids.get(name.lower(), ())))


@lru_cache(maxsize=128)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w@])@({'|'.join(re.escape(name) for name in names)})(?!\w|[-.]\w)", re.IGNORECASE)
