"""Order, first version: if the message id is not stored, store the order, notify payment, store the message id.

Naive: a message id names a delivery, not an order. The check reads, and the write follows much later. The send is part
of neither. Consequence: an order that came twice, that two workers check at once, or whose worker dies after the send,
goes to payment in two messages and is charged twice.
"""

import json
import os
from typing import Any

import boto3

from lab.naive.batch import one_by_one

dynamodb = boto3.resource("dynamodb")
records = dynamodb.Table(os.environ["IDEMPOTENCY_TABLE"])
orders = dynamodb.Table(os.environ["ORDERS_TABLE"])
sqs = boto3.client("sqs")


def place(message_id: str, order: dict[str, Any]) -> None:
    if "Item" in records.get_item(Key={"id": message_id}):
        return
    total = sum(item["quantity"] * item["unit_price"] for item in order["items"])
    orders.put_item(Item={**order, "state": "placed", "total": total})
    event = {"type": "order.placed", "data": {**order, "total": total}}
    sqs.send_message(QueueUrl=os.environ["NEXT_QUEUE_URL"], MessageBody=json.dumps(event))
    records.put_item(Item={"id": message_id})


handler = one_by_one(place)
