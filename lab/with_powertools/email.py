"""Email: receipt to S3, email by SES, mark the order.

A death after the send causes one more email. In this repository too, but there the record shows the cause.
"""

import datetime
import json
import os
from typing import Any

import boto3
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.idempotency import idempotent_function

from lab.with_powertools.utility import batch_handler, config, store

dynamodb = boto3.resource("dynamodb")
orders = dynamodb.Table(os.environ["ORDERS_TABLE"])
s3 = boto3.client("s3")
ses = boto3.client("sesv2")


@idempotent_function(data_keyword_argument="record", config=config, persistence_store=store, key_prefix="email")  # type: ignore[untyped-decorator]
def tell(record: SQSRecord) -> dict[str, Any]:
    order = json.loads(record.body)["data"]
    order_id, state = order["order_id"], order["state"]
    text = f"Dear {order['customer']['name']},\n\nyour order {order_id} is {state}.\n"
    if state == "paid":
        s3.put_object(Bucket=os.environ["RECEIPTS_BUCKET"], Key=f"receipts/{order_id}.txt", Body=text.encode())
    sent = ses.send_email(
        FromEmailAddress=os.environ["SENDER"],
        Destination={"ToAddresses": [order["customer"]["email"]]},
        Content={"Simple": {"Subject": {"Data": f"Order {order_id}: {state}"}, "Body": {"Text": {"Data": text}}}},
    )
    orders.update_item(
        Key={"order_id": order_id},
        UpdateExpression="SET mailed_at = :now",
        ExpressionAttributeValues={":now": datetime.datetime.now(datetime.UTC).isoformat()},
    )
    return {"order_id": order_id, "mail_id": sent["MessageId"]}


handler = batch_handler(tell)
