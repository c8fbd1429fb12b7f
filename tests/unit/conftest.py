"""The hub of most unit tests: its store alone. A file that needs more in it has its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support_hubstore import Desk, desk


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Desk]:
    with desk(tmp_path) as made:
        yield made
