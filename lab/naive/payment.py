"""Payment, first version: store the message id, charge, mark the order, notify email. On an error, delete the id.

Naive: the record says "done" before anything is done, and only an exception removes it. A killed worker raises no
exception. The key is the message id, here and at the provider. Consequence: a death before the charge loses the order.
A death after it leaves a charge that no row shows. The same order in another message is charged again. A copy that
fails deletes the record of the copy that works.
"""

import json
import os
from typing import Any

import boto3
import stripe

from lab.naive.batch import one_by_one

dynamodb = boto3.resource("dynamodb")
records = dynamodb.Table(os.environ["IDEMPOTENCY_TABLE"])
orders = dynamodb.Table(os.environ["ORDERS_TABLE"])
sqs = boto3.client("sqs")
provider = stripe.StripeClient(os.environ["STRIPE_API_KEY"], base_addresses={"api": os.environ["PROVIDER_URL"]})


def pay(message_id: str, order: dict[str, Any]) -> None:
    if "Item" in records.get_item(Key={"id": message_id}):
        return
    records.put_item(Item={"id": message_id})
    try:
        state = charge(message_id, order)
        orders.update_item(
            Key={"order_id": order["order_id"]},
            UpdateExpression="SET #state = :state",
            ExpressionAttributeNames={"#state": "state"},
            ExpressionAttributeValues={":state": state},
        )
        event = {"type": f"order.{state}", "data": {**order, "state": state}}
        sqs.send_message(QueueUrl=os.environ["NEXT_QUEUE_URL"], MessageBody=json.dumps(event))
    except Exception:
        records.delete_item(Key={"id": message_id})  # SQS delivers the message again, and it must not be skipped
        raise


def charge(message_id: str, order: dict[str, Any]) -> str:
    intent = provider.v1.payment_intents.create(
        {
            "amount": order["total"],
            "currency": order["currency"].lower(),
            "payment_method": order["payment_method"],
            "automatic_payment_methods": {"enabled": True, "allow_redirects": "never"},
            "metadata": {"order_id": order["order_id"]},
        },
        {"idempotency_key": message_id},
    )
    try:
        provider.v1.payment_intents.confirm(intent.id, {}, {"idempotency_key": f"{message_id}/confirm"})
    except stripe.CardError:
        return "declined"
    return "paid"


handler = one_by_one(pay)
