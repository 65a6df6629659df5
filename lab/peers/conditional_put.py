"""A bare conditional put: whoever writes the key first does the work, all others skip it.

As in https://matthewbonig.com/posts/idempotent-lambdas, with the business key for the message id.
"""

import json
import os
from typing import Any

from lab.peers.step import dynamodb, pay


def handler(event: dict[str, Any], _: Any) -> dict[str, Any]:
    failed = []
    for record in event["Records"]:
        try:
            once(json.loads(record["body"])["data"])
        except Exception:
            failed.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": failed}


def once(order: dict[str, Any]) -> None:
    try:
        dynamodb().put_item(
            TableName=os.environ["IDEMPOTENCY_TABLE"],
            Item={"id": {"S": f"payment#{order['order_id']}"}},
            ConditionExpression="attribute_not_exists(id)",
        )
    except dynamodb().exceptions.ConditionalCheckFailedException:
        return
    pay(order)
