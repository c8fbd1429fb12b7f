"""The whole journal as rows, for people's own tools: read beside a running receiver, and never written to."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from relay_receiver.journal.errors import translate
from relay_receiver.journal.tables import metadata


def export(path: Path) -> Iterator[dict[str, Any]]:
    """Every row as `{table, ...columns}`: one moment of the journal, tables in the order in which they refer to others.

    Raises:
        JournalError: it is not there, or cannot be read.
    """
    try:
        with contextlib.closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            connection.execute("BEGIN")
            for table in metadata.sorted_tables:
                for row in connection.execute(f'SELECT * FROM "{table.name}"'):  # noqa: S608 - a name of ours
                    yield {"table": table.name, **dict(row)}
    except sqlite3.Error as error:
        raise translate(error, path) from error
