"""Payment: charge the card, mark the order, notify email. The provider's key is the order id.

An error after the charge deletes the claim. The next attempt depends on the provider's memory, which lasts a day and
replays a stored 500 all that time. A worker that stalled overwrites or deletes the record of its successor.
"""

import json
import os
from typing import Any

import boto3
import stripe
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.idempotency import idempotent_function

from lab.with_powertools.utility import batch_handler, config, store

dynamodb = boto3.resource("dynamodb")
orders = dynamodb.Table(os.environ["ORDERS_TABLE"])
sqs = boto3.client("sqs")
provider = stripe.StripeClient(os.environ["STRIPE_API_KEY"], base_addresses={"api": os.environ["PROVIDER_URL"]})


@idempotent_function(data_keyword_argument="record", config=config, persistence_store=store, key_prefix="payment")  # type: ignore[untyped-decorator]
def pay(record: SQSRecord) -> dict[str, Any]:
    order = json.loads(record.body)["data"]
    state, intent_id = charge(order)
    orders.update_item(
        Key={"order_id": order["order_id"]},
        UpdateExpression="SET #state = :state, intent_id = :intent",
        ExpressionAttributeNames={"#state": "state"},
        ExpressionAttributeValues={":state": state, ":intent": intent_id},
    )
    event = {"type": f"order.{state}", "data": {**order, "state": state}}
    sqs.send_message(QueueUrl=os.environ["NEXT_QUEUE_URL"], MessageBody=json.dumps(event))
    return {"order_id": order["order_id"], "state": state, "payment_intent": intent_id}


def charge(order: dict[str, Any]) -> tuple[str, str]:
    intent = provider.v1.payment_intents.create(
        {
            "amount": order["total"],
            "currency": order["currency"].lower(),
            "payment_method": order["payment_method"],
            "automatic_payment_methods": {"enabled": True, "allow_redirects": "never"},
            "metadata": {"order_id": order["order_id"]},
        },
        {"idempotency_key": order["order_id"]},
    )
    try:
        provider.v1.payment_intents.confirm(intent.id, {}, {"idempotency_key": f"{intent.id}/confirm"})
    except stripe.CardError:
        return "declined", intent.id
    return "paid", intent.id


handler = batch_handler(pay)
