"""Records of a queue, as Lambda hands them to a function. https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html"""

from collections.abc import Mapping
from typing import Any

Record = dict[str, Any]


def sqs_record(
    message_id: str,
    body: str,
    *,
    queue: str = "source",
    receive_count: int = 1,
    receipt: str | None = None,
    attributes: Mapping[str, str] | None = None,
    message_attributes: Mapping[str, Any] | None = None,
    group: str | None = None,
) -> Record:
    """Return one record. `attributes`: more system attributes. `group`: the message group, on a FIFO queue."""
    return {
        "messageId": message_id,
        "receiptHandle": receipt or f"handle of {message_id}",
        "body": body,
        "attributes": {
            "ApproximateReceiveCount": str(receive_count),
            **({"MessageGroupId": group} if group else {}),
            **(attributes or {}),
        },
        "messageAttributes": dict(message_attributes or {}),
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:eu-west-1:123456789012:{queue}{'.fifo' if group else ''}",
        "awsRegion": "eu-west-1",
    }
