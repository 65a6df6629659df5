"""The utility as "Batch integration" of its documentation shows it, with the advice of that page.

https://docs.aws.amazon.com/powertools/python/latest/utilities/idempotency/

Records outlive queue and DLQ. The key is the order id instead of the example's message id, and is required. The Lambda
context is registered, so that a claim expires when its function would have timed out.
"""

import os
from collections.abc import Callable
from typing import Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer, IdempotencyConfig

processor = BatchProcessor(event_type=EventType.SQS)
store = DynamoDBPersistenceLayer(table_name=os.environ["IDEMPOTENCY_TABLE"])
config = IdempotencyConfig(
    event_key_jmespath="powertools_json(body).data.order_id",
    raise_on_no_idempotency_key=True,
    expires_after_seconds=int(os.environ["RECORD_TTL_S"]),
)


def batch_handler(record_handler: Callable[..., Any]) -> Callable[[dict[str, Any], Any], Any]:
    """A Lambda handler that calls `record_handler` with each message and reports failed messages."""

    def handler(event: dict[str, Any], context: Any) -> Any:
        config.register_lambda_context(context)
        return process_partial_response(
            event=event, record_handler=record_handler, processor=processor, context=context
        )

    return handler
