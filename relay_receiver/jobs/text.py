"""What of an agent's answer is posted, and what stays quiet."""

import re
import unicodedata
from functools import lru_cache

QUIET_WORD = "COLLABORATION_QUIET"
_MENTIONS_ONLY = re.compile(r"(?:\s*@[\w.\-]+[,:;]?)*\s*")


def clean(text: str) -> str:
    """The text with NUL and lone surrogates replaced by U+FFFD: what every database and JSON reader takes."""
    if text.isascii():
        return text.replace("\x00", "\ufffd")
    return text.replace("\x00", "\ufffd").encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def is_quiet(text: str) -> bool:
    """Whether an answer says nothing: empty, the quiet word, or only mentions, white space aside."""
    stripped = text.strip()
    return stripped == QUIET_WORD or _MENTIONS_ONLY.fullmatch(stripped) is not None


@lru_cache(maxsize=1024)
def clean_name(name: str, *, most: int = 64) -> str:
    """A name without control and bidi characters, on one line, at most `most` characters."""
    spaced = "".join(" " if c.isspace() else c for c in clean(name))
    kept = "".join(c for c in spaced if unicodedata.category(c) not in {"Cc", "Cf"})
    return " ".join(kept.split())[:most].rstrip() or "unnamed"


def printable(text: str) -> str:
    """The text with control and bidi characters as `<U+XXXX>`, except newline and tab: for terminals and logs."""
    return "".join(
        f"<U+{ord(c):04X}>" if c not in "\n\t" and unicodedata.category(c) in {"Cc", "Cf", "Zl", "Zp"} else c
        for c in clean(text)
    )
