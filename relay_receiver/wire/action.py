"""What an approval is about, in the one form that is hashed, and as people are shown it."""

import hashlib
import json
from typing import Any

_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and signs that are drawn as nothing."""


def canonical(action: Any) -> str:  # noqa: ANN401 - JSON
    """An action as JSON with its names in order and without spaces: the same for everybody who reads it.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        return json.dumps(action, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"this is not JSON: {error}") from error


def action_hash(action: Any) -> str:  # noqa: ANN401 - JSON
    """The SHA-256 of an action's canonical form, 64 hexadecimal digits. An answer carries that of what was shown.

    Raises:
        ValueError: it is not JSON, or not Unicode.
    """
    return hashlib.sha256(canonical(action).encode()).hexdigest()


def visible(text: str) -> str:
    """The text with all that cannot be seen, or turns what is seen around, as `⟨U+XXXX⟩`; newline and tab are kept."""
    if text.isprintable() and _BLANK.isdisjoint(text):
        return text
    return "".join(c if c in "\n\t" or (c.isprintable() and c not in _BLANK) else f"⟨U+{ord(c):04X}⟩" for c in text)
