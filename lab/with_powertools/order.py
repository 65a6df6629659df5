"""Order: store it unless it exists, notify payment. Safe to repeat, as the decorator requires.

Row, event and record are three requests. After a death between them the step runs again.
"""

import json
import os
from contextlib import suppress
from typing import Any

import boto3
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.idempotency import idempotent_function

from lab.with_powertools.utility import batch_handler, config, store

dynamodb = boto3.resource("dynamodb")
orders = dynamodb.Table(os.environ["ORDERS_TABLE"])
sqs = boto3.client("sqs")


@idempotent_function(data_keyword_argument="record", config=config, persistence_store=store, key_prefix="order")  # type: ignore[untyped-decorator]
def place(record: SQSRecord) -> dict[str, Any]:
    order = json.loads(record.body)["data"]
    total = sum(item["quantity"] * item["unit_price"] for item in order["items"])
    with suppress(dynamodb.meta.client.exceptions.ConditionalCheckFailedException):
        orders.put_item(
            Item={**order, "state": "placed", "total": total}, ConditionExpression="attribute_not_exists(order_id)"
        )
    event = {"type": "order.placed", "data": {**order, "total": total}}
    sqs.send_message(QueueUrl=os.environ["NEXT_QUEUE_URL"], MessageBody=json.dumps(event))
    return {"order_id": order["order_id"], "total": total}


handler = batch_handler(place)
