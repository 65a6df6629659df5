"""As for the core: every request that these tests send is one that DynamoDB would take."""

from collections.abc import Iterator

import pytest

from tests.harness.dynamodb_rules import broken
from tests.harness.moto_world import World


@pytest.fixture(autouse=True)
def _requests_that_dynamodb_takes(request: pytest.FixtureRequest) -> Iterator[None]:
    world = request.getfixturevalue("world") if "world" in request.fixturenames else None
    yield
    if isinstance(world, World):
        faults = [f"{operation}: {fault}" for operation, body in world.wire.sent for fault in broken(operation, body)]
        assert not faults
