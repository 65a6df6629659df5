"""The explorer with the peers' handlers."""

from collections.abc import Iterator

import pytest
from tests.schedules.environment import ExplorerEnvironment, explorer_environment

from lab.peers import cold_start


@pytest.fixture(scope="module")
def place() -> Iterator[ExplorerEnvironment]:
    """Production code and peers under the explorer."""
    with explorer_environment(others=cold_start) as it:
        yield it
