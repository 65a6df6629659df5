"""The orders table as the stateful stack makes it, for tests that make it themselves."""

from typing import Any

ORDERS_TABLE: dict[str, Any] = {
    "TableName": "orders",
    "KeySchema": [{"AttributeName": "order_id", "KeyType": "HASH"}],
    "AttributeDefinitions": [
        {"AttributeName": "order_id", "AttributeType": "S"},
        {"AttributeName": "open_shard", "AttributeType": "S"},
        {"AttributeName": "open_since", "AttributeType": "N"},
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "open-orders",
            "KeySchema": [
                {"AttributeName": "open_shard", "KeyType": "HASH"},
                {"AttributeName": "open_since", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
    "BillingMode": "PAY_PER_REQUEST",
}
