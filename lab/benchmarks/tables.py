"""Create tables and queues of the app on a MiniStack of its own, without a deployment."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shared.idempotency import client
from tools.local.ministack import MiniStack, aws_environment, free_port

ORDERS_INDEX = {
    "IndexName": "open-orders",
    "KeySchema": [
        {"AttributeName": "open_shard", "KeyType": "HASH"},
        {"AttributeName": "open_since", "KeyType": "RANGE"},
    ],
    "Projection": {"ProjectionType": "KEYS_ONLY"},
}


@contextmanager
def local_aws() -> Iterator[None]:
    """Start MiniStack and set the environment of this process. Use it before the first client is created."""
    with tempfile.TemporaryDirectory() as directory:
        ministack = MiniStack(Path(directory), free_port())
        try:
            ministack.start()
            os.environ.update(aws_environment(ministack.endpoint, ministack.token))
            _create()
            yield
        finally:
            ministack.stop()


def _create() -> None:
    dynamodb = client("dynamodb")
    _table(dynamodb, "idempotency", id="S")
    _table(dynamodb, "ledger", pk="S", sk="S")
    dynamodb.create_table(
        TableName="orders",
        KeySchema=[{"AttributeName": "order_id", "KeyType": "HASH"}],
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": kind}
            for name, kind in {"order_id": "S", "open_shard": "S", "open_since": "N"}.items()
        ],
        GlobalSecondaryIndexes=[ORDERS_INDEX],
        BillingMode="PAY_PER_REQUEST",
    )
    for name in ("orders", "payments", "emails", "payments-dlq"):
        client("sqs").create_queue(QueueName=name)
    for variable, name in {"QUEUE_URL": "payments", "DLQ_URL": "payments-dlq", "NEXT_QUEUE_URL": "emails"}.items():
        os.environ[variable] = client("sqs").get_queue_url(QueueName=name)["QueueUrl"]
    client("s3").create_bucket(
        Bucket=os.environ["RECEIPTS_BUCKET"],
        CreateBucketConfiguration={"LocationConstraint": os.environ["AWS_DEFAULT_REGION"]},
    )
    client("sesv2").create_email_identity(EmailIdentity=os.environ["SENDER"])
    secret = client("secretsmanager").create_secret(Name="provider", SecretString="sk_test_benchmark")
    os.environ["PROVIDER_SECRET_ARN"] = secret["ARN"]


def _table(dynamodb: Any, name: str, **keys: str) -> None:
    dynamodb.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)],
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": kind} for key, kind in keys.items()],
        BillingMode="PAY_PER_REQUEST",
    )
