"""What an operation id pins: the same id with other content is another message, and refused."""

import hashlib
import json
from collections.abc import Sequence


def fingerprint(
    *,
    channel: str,
    to: str | None,
    kind: str,
    reply_to: str | None,
    mentions: Sequence[str],
    content: str,
    attachments: Sequence[str],
) -> str:
    """A hash of what a client said, as it said it: given mentions only, attachments by id; no expiry, no run."""
    said = [channel, to, kind, reply_to, list(mentions), content, list(attachments)]
    return hashlib.sha256(json.dumps(said, separators=(",", ":")).encode()).hexdigest()
