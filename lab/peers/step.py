"""The payment step that every peer guards: charge the card, mark the order paid, tell the next step.

boto3 sends again by itself what was lost or throttled, as it does unless told not to. Stripe's SDK is told to, as
https://github.com/stripe/stripe-python shows under "Configuring automatic retries". The provider gets an idempotency
key made of the order, as https://docs.stripe.com/api/idempotent_requests asks for, though the published examples of
these patterns pass none. Stripe forgets a key when it is a day old.
"""

import functools
import json
import os
from typing import Any

import boto3
import stripe


@functools.cache
def dynamodb() -> Any:
    """The process's client."""
    return boto3.client("dynamodb")


@functools.cache
def sqs() -> Any:
    """The process's client."""
    return boto3.client("sqs")


@functools.cache
def payments() -> stripe.StripeClient:
    """The process's client."""
    return stripe.StripeClient(
        os.environ["STRIPE_API_KEY"], base_addresses={"api": os.environ["PROVIDER_URL"]}, max_network_retries=2
    )


def pay(order: dict[str, Any]) -> dict[str, str]:
    """The data of an `order.placed` event → what was charged. Raises what the SDKs raise."""
    order_id = order["order_id"]
    intent = payments().v1.payment_intents.create(
        {
            "amount": order["total"],
            "currency": order["currency"].lower(),
            "payment_method": order["payment_method"],
            "automatic_payment_methods": {"enabled": True, "allow_redirects": "never"},
            "metadata": {"order_id": order_id},
        },
        {"idempotency_key": order_id},
    )
    payments().v1.payment_intents.confirm(intent.id, {}, {"idempotency_key": f"{intent.id}/confirm"})
    dynamodb().update_item(
        TableName=os.environ["ORDERS_TABLE"],
        Key={"order_id": {"S": order_id}},
        UpdateExpression="SET #state = :paid, intent_id = :intent",
        ExpressionAttributeNames={"#state": "state"},
        ExpressionAttributeValues={":paid": {"S": "paid"}, ":intent": {"S": intent.id}},
    )
    paid = {"order_id": order_id, "payment_intent": intent.id}
    event = {"specversion": "1.0", "id": f"{order_id}/order.paid", "type": "order.paid", "data": paid}
    sqs().send_message(QueueUrl=os.environ["NEXT_QUEUE_URL"], MessageBody=json.dumps(event))
    return paid
