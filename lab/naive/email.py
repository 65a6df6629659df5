"""Email, first version: if the message id is not stored, send the email, mark the order, store the message id.

Naive: the email is sent before anything is stored, and the message id is the key. Consequence: a death between email
and record, and every copy of the order in another message, sends one more email.
"""

import datetime
import os
from typing import Any

import boto3

from lab.naive.batch import one_by_one

dynamodb = boto3.resource("dynamodb")
records = dynamodb.Table(os.environ["IDEMPOTENCY_TABLE"])
orders = dynamodb.Table(os.environ["ORDERS_TABLE"])
s3 = boto3.client("s3")
ses = boto3.client("sesv2")


def tell(message_id: str, order: dict[str, Any]) -> None:
    if "Item" in records.get_item(Key={"id": message_id}):
        return
    order_id, state = order["order_id"], order["state"]
    text = f"Dear {order['customer']['name']},\n\nyour order {order_id} is {state}.\n"
    if state == "paid":
        s3.put_object(Bucket=os.environ["RECEIPTS_BUCKET"], Key=f"receipts/{order_id}.txt", Body=text.encode())
    ses.send_email(
        FromEmailAddress=os.environ["SENDER"],
        Destination={"ToAddresses": [order["customer"]["email"]]},
        Content={"Simple": {"Subject": {"Data": f"Order {order_id}: {state}"}, "Body": {"Text": {"Data": text}}}},
    )
    orders.update_item(
        Key={"order_id": order_id},
        UpdateExpression="SET mailed_at = :now",
        ExpressionAttributeValues={":now": datetime.datetime.now(datetime.UTC).isoformat()},
    )
    records.put_item(Item={"id": message_id})


handler = one_by_one(tell)
