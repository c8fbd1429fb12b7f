"""The public facts of a binding, read from its journal beside whoever works with it. Light to import."""

import contextlib
import sqlite3
from pathlib import Path

_FACTS = "SELECT workspace, channel, channel_name, adapter, agent, agent_name FROM binding"
_NAMES = ("workspace", "channel", "channelName", "adapter", "agent", "agentName")


def public_facts(path: Path) -> dict[str, str] | None:
    """Who is bound to which channel, and how; None where the journal cannot tell."""
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as conn:
            row = conn.execute(_FACTS).fetchone()
    except sqlite3.Error:
        return None
    return None if row is None else dict(zip(_NAMES, row, strict=True))
