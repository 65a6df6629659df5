"""Fixtures of the layer's tests. Every request that these tests send must be valid for DynamoDB."""

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from shared.idempotency import logger
from tests.harness.dynamodb_rules import broken
from tests.harness.layer_world import World, layer_world

__all__ = ["layer_world"]


@pytest.fixture
def world(layer_world: World) -> World:
    """The world of the layer's tests, instead of the world with orders."""
    return layer_world


@pytest.fixture(autouse=True)
def _requests_that_dynamodb_takes(request: pytest.FixtureRequest) -> Iterator[None]:
    world = request.getfixturevalue("world") if "world" in request.fixturenames else None
    yield
    if isinstance(world, World):
        faults = [f"{operation}: {fault}" for operation, body in world.wire.sent for fault in broken(operation, body)]
        assert not faults


Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def lines() -> Iterator[Lines]:
    """The log lines written so far."""
    stream = io.StringIO()
    handler: Any = logger.registered_handler
    before = handler.setStream(stream)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    handler.setStream(before)


Metrics = Callable[[], dict[str, dict[str, float]]]


@pytest.fixture
def metrics(capsys: pytest.CaptureFixture[str]) -> Metrics:
    """The metrics emitted since last asked, by operation and name."""

    def read() -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = {}
        for line in capsys.readouterr().out.splitlines():
            blob = json.loads(line)
            ((directive,),) = [[one] for one in blob["_aws"]["CloudWatchMetrics"]]
            assert directive["Namespace"] == "EffectivelyOnce"
            assert sorted(directive["Dimensions"][0]) == ["service", "stage"]
            counts = found.setdefault(blob["operation"], {})
            for metric in directive["Metrics"]:
                assert metric["Unit"] == "Count"
                counts[metric["Name"]] = counts.get(metric["Name"], 0) + sum(blob[metric["Name"]])
        return found

    return read
