"""In progress, done, deleted on error: the record is a lock that its holder turns into a result.

As in `Idempotent` of https://github.com/WojciechMatuszewski/lambda-idempotency-using-dynamo
(src/idempotency/idempotency.go), with the business key for a key. Whoever meets a record in progress fails its message,
so that SQS delivers it again. The record's TTL is not waited for: DynamoDB deletes within a few days, and then the work
is done anew.
"""

import json
import os
from typing import Any

from lab.peers.step import dynamodb, pay

TABLE = os.environ["IDEMPOTENCY_TABLE"]


class InProgressError(Exception):
    """Another worker has it."""


def handler(event: dict[str, Any], _: Any) -> dict[str, Any]:
    failed = []
    for record in event["Records"]:
        try:
            once(json.loads(record["body"])["data"])
        except Exception:
            failed.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": failed}


def once(order: dict[str, Any]) -> None:
    key = {"id": {"S": f"payment#{order['order_id']}"}}
    try:
        dynamodb().put_item(
            TableName=TABLE,
            Item={**key, "status": {"S": "IN_PROGRESS"}},
            ConditionExpression="attribute_not_exists(id)",
        )
    except dynamodb().exceptions.ConditionalCheckFailedException:
        item = dynamodb().get_item(TableName=TABLE, Key=key, ConsistentRead=True).get("Item", {})
        if item.get("status") == {"S": "COMPLETED"}:
            return
        raise InProgressError from None
    try:
        result = pay(order)
    except Exception:
        dynamodb().delete_item(TableName=TABLE, Key=key)
        raise
    dynamodb().update_item(
        TableName=TABLE,
        Key=key,
        UpdateExpression="SET #status = :completed, #result = :result",
        ExpressionAttributeNames={"#status": "status", "#result": "result"},
        ExpressionAttributeValues={":completed": {"S": "COMPLETED"}, ":result": {"S": json.dumps(result)}},
    )
