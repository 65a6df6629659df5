"""Powertools for AWS Lambda: `idempotent_function` around the record handler, within its `BatchProcessor`.

As in "Batch integration" of https://docs.aws.amazon.com/powertools/python/latest/utilities/idempotency/, with what that
page advises beside it: the Lambda context is registered, so that a claim lapses when its function would have timed out;
the key is the business one, taken from the body, and must be there; records outlive queue and DLQ.
"""

import json
import os
from typing import Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)

from lab.peers.step import dynamodb, pay

processor = BatchProcessor(event_type=EventType.SQS)
store = DynamoDBPersistenceLayer(table_name=os.environ["IDEMPOTENCY_TABLE"], boto3_client=dynamodb())
config = IdempotencyConfig(
    event_key_jmespath="powertools_json(body).data.order_id",
    raise_on_no_idempotency_key=True,
    expires_after_seconds=int(os.environ["RECORD_TTL_S"]),
)


@idempotent_function(data_keyword_argument="record", config=config, persistence_store=store, key_prefix="payment")  # type: ignore[untyped-decorator]
def record_handler(record: SQSRecord) -> dict[str, str]:
    return pay(json.loads(record.body)["data"])


def handler(event: dict[str, Any], context: Any) -> Any:
    config.register_lambda_context(context)
    return process_partial_response(event=event, record_handler=record_handler, processor=processor, context=context)
