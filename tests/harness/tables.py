"""The orders table and the payment sandbox's ledger as the stacks make them, for tests that make them themselves."""

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

LEDGER_TABLE: dict[str, Any] = {
    "TableName": "ledger",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
    "BillingMode": "PAY_PER_REQUEST",
}
