"""What the unit tests of orders and functions run in: the layer's world with the orders table, queues and bucket."""

from collections.abc import Iterator
from typing import Any

import pytest
from moto.s3.models import s3_backends

from tests.harness import layer_world
from tests.harness.layer_world import ACCOUNT, REGION, SERVICES, clean_world, new_consumer
from tests.harness.tables import ORDERS_TABLE

__all__ = ["ENVIRONMENT", "SERVICES", "World", "new_consumer", "world"]

ENVIRONMENT = {
    **layer_world.ENVIRONMENT,
    "ORDERS_TABLE": "orders",
    "OPEN_ORDERS_INDEX": "open-orders",
    "RECEIPTS_BUCKET": "receipts",
    "SENDER": "shop@example.com",
}
QUEUES = ("orders", "payments", "emails", "dlq", "relay-dlq")


class World(layer_world.World):
    """The layer's world with orders."""

    def row(self, order_id: str) -> dict[str, Any] | None:
        """Return an order row in DynamoDB's JSON."""
        return self.item("orders", {"order_id": {"S": order_id}})


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A world with the names that the stacks give, all empty."""
    with clean_world(monkeypatch, ENVIRONMENT, QUEUES) as layer:
        s3_backends[ACCOUNT]["aws"].create_bucket(ENVIRONMENT["RECEIPTS_BUCKET"], REGION)
        monkeypatch.setenv("QUEUE_URL", layer.queues["orders"])
        monkeypatch.setenv("DLQ_URL", layer.queues["dlq"])
        layer.dynamodb.create_table(**ORDERS_TABLE)
        layer.wire.sent.clear()
        yield World(layer.clock, layer.wire, layer.queues)
