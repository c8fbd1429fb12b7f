"""The whole journal as rows, for people's own tools: read beside a running receiver, and never written to."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from relay_receiver.journal.snapshot import snapshot
from relay_receiver.journal.tables import metadata


def export(path: Path) -> Iterator[dict[str, Any]]:
    """Every row as `{table, ...columns}`: one moment of the journal, tables in the order in which they refer to others.

    Raises:
        JournalError: it is not there, or cannot be read.
    """
    with snapshot(path) as connection:
        connection.row_factory = sqlite3.Row
        for table in metadata.sorted_tables:
            for row in connection.execute(f'SELECT * FROM "{table.name}"'):  # noqa: S608 - a name of ours
                yield {"table": table.name, **dict(row)}
