"""A journal as it is at one moment: read beside a running receiver, and never written to."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from relay_receiver.journal.errors import translate


@contextlib.contextmanager
def snapshot(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that sees one moment, closed at the end of the block.

    Raises:
        JournalError: it is not there, is no journal, or cannot be read now; also for errors within the block.
    """
    try:
        with contextlib.closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
            connection.execute("BEGIN")
            yield connection
    except sqlite3.Error as error:
        raise translate(error, path) from error
