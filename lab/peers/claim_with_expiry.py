"""A claim with an expiry: a conditional put, which anybody may repeat once the claim is over.

The lease of https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/BestPractices_DistributedLocking.html in
the form that consumers are written in: the claim ends with the function's own timeout, the best value there is, and
completion asks nobody. Whoever meets a running claim fails its message, so that SQS delivers it again; an error lets go
of the claim.
"""

import json
import os
import time
from typing import Any

from lab.peers.step import dynamodb, pay

TABLE = os.environ["IDEMPOTENCY_TABLE"]


class ClaimedError(Exception):
    """Another worker has it."""


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    failed = []
    for record in event["Records"]:
        try:
            once(json.loads(record["body"])["data"], context.get_remaining_time_in_millis())
        except Exception:
            failed.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": failed}


def once(order: dict[str, Any], left_ms: int) -> None:
    key = {"id": {"S": f"payment#{order['order_id']}"}}
    now_ms = int(time.time() * 1000)
    try:
        dynamodb().put_item(
            TableName=TABLE,
            Item={**key, "status": {"S": "PROCESSING"}, "claimed_until": {"N": str(now_ms + left_ms)}},
            ConditionExpression="attribute_not_exists(id) OR (#status = :processing AND claimed_until < :now)",
            ExpressionAttributeNames={"#status": "status"},
            ExpressionAttributeValues={":processing": {"S": "PROCESSING"}, ":now": {"N": str(now_ms)}},
        )
    except dynamodb().exceptions.ConditionalCheckFailedException:
        item = dynamodb().get_item(TableName=TABLE, Key=key, ConsistentRead=True).get("Item", {})
        if item.get("status") == {"S": "COMPLETED"}:
            return
        raise ClaimedError from None
    try:
        result = pay(order)
    except Exception:
        dynamodb().delete_item(TableName=TABLE, Key=key)
        raise
    dynamodb().put_item(
        TableName=TABLE,
        Item={**key, "status": {"S": "COMPLETED"}, "result": {"S": json.dumps(result)}},
    )
