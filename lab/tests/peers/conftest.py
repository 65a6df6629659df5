"""The explorer with the peers' handlers."""

from collections.abc import Iterator

import pytest
from tests.schedules.bench import Bench, bench

from lab.peers import cold_start


@pytest.fixture(scope="module")
def place() -> Iterator[Bench]:
    """Production code and peers under the explorer."""
    with bench(others=cold_start) as it:
        yield it
