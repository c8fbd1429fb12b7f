from collections.abc import Iterator

import pytest
from simulation.quick import journals
from simulation.world import World


@pytest.fixture
def world() -> Iterator[World]:
    with journals() as folder:
        found = World(folder)
        try:
            yield found
        finally:
            found.close()
