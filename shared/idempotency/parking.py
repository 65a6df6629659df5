"""Parking: a message that no retry can help goes to its step's DLQ at once, with the reason beside it."""

import base64
from typing import TYPE_CHECKING, Any

from shared.idempotency.clock import iso

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

# SQS carries ten attributes a message; three are ours.
MAX_KEPT_ATTRIBUTES = 7


def park(sqs: "SQSClient", dlq_url: str, record: dict[str, Any], reason: str, now_ms: int) -> None:
    """Send a record of Lambda's SQS event to the DLQ. Raises botocore's errors: then it is not parked."""
    found = record.get("messageAttributes", {})
    attributes = {
        "reason": {"DataType": "String", "StringValue": reason},
        # Both survive a redrive that ends here again: they tell of the first time.
        "original_message_id": _kept(found, "original_message_id", record.get("messageId", "unknown")),
        "first_parked_at": _kept(found, "first_parked_at", iso(now_ms)),
    }
    kept = [name for name in found if name not in attributes][:MAX_KEPT_ATTRIBUTES]
    request: dict[str, Any] = {
        "QueueUrl": dlq_url,
        "MessageBody": record["body"],
        "MessageAttributes": {**{name: _attribute(found[name]) for name in kept}, **attributes},
    }
    system = record.get("attributes", {})
    if trace := system.get("AWSTraceHeader"):
        request["MessageSystemAttributes"] = {"AWSTraceHeader": {"DataType": "String", "StringValue": trace}}
    if dlq_url.endswith(".fifo"):
        request["MessageGroupId"] = system["MessageGroupId"]
        request["MessageDeduplicationId"] = record["messageId"]
    sqs.send_message(**request)


def _kept(found: dict[str, Any], name: str, otherwise: str) -> dict[str, str]:
    value = found.get(name, {}).get("stringValue") or otherwise
    return {"DataType": "String", "StringValue": value}


def _attribute(found: dict[str, Any]) -> dict[str, Any]:
    """From the spelling of Lambda's event to that of SendMessage."""
    if found.get("binaryValue") is not None:
        return {"DataType": found["dataType"], "BinaryValue": base64.b64decode(found["binaryValue"])}
    return {"DataType": found["dataType"], "StringValue": found["stringValue"]}
