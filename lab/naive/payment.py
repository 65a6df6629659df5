"""Payment, as written first: remember the message, charge, mark the order, tell the email step; on error, forget.

Naive: the record says "done" before anything is, and only an exception removes it: a killed worker raises none. The
key, here and at the provider, is the message's id. It costs: a death before the charge loses the order, one after it
leaves a charge that no row shows, as the message comes back and is skipped. The same order in another message is
charged again, and a copy that fails deletes the record of the one that works.
"""

import json
import os
from typing import Any

import boto3
import stripe

from lab.naive.batch import one_by_one

dynamodb = boto3.resource("dynamodb")
seen = dynamodb.Table(os.environ["IDEMPOTENCY_TABLE"])
orders = dynamodb.Table(os.environ["ORDERS_TABLE"])
sqs = boto3.client("sqs")
provider = stripe.StripeClient(os.environ["STRIPE_API_KEY"], base_addresses={"api": os.environ["PROVIDER_URL"]})


def pay(message_id: str, order: dict[str, Any]) -> None:
    if "Item" in seen.get_item(Key={"id": message_id}):
        return
    seen.put_item(Item={"id": message_id})
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
        seen.delete_item(Key={"id": message_id})  # it will be delivered again, and must not be skipped then
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
