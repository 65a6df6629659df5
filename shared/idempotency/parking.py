"""Parking: a message that no retry can help goes to its step's DLQ at once, with the reason beside it."""

import base64
from typing import TYPE_CHECKING, Any

from shared.idempotency.clock import iso

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

# SQS carries ten attributes a message. Parking adds three.
MAX_KEPT_ATTRIBUTES = 7
# All attributes of a parked message together, in bytes. A source queue accepts this much beside the largest body
# (stacks/constructs/queues.py), so that each parked message can be redriven.
ATTRIBUTES_LIMIT_BYTES = 8 * 1024
# Longer values were not written by parking: SQS's message ids have up to 100 characters.
MAX_NOTE_LENGTH = 100


def park(sqs: "SQSClient", dlq_url: str, record: dict[str, Any], reason: str, now_ms: int) -> None:
    """Send a record of Lambda's SQS event to the DLQ, with the attributes that fit.

    Raises botocore's errors: then the record is not parked.
    """
    found = record.get("messageAttributes", {})
    attributes = {
        "reason": {"DataType": "String", "StringValue": reason},
        # Both survive a redrive that ends here again: they tell of the first time.
        "original_message_id": _kept(found, "original_message_id", record.get("messageId", "unknown")),
        "first_parked_at": _kept(found, "first_parked_at", iso(now_ms)),
    }
    request: dict[str, Any] = {
        "QueueUrl": dlq_url,
        "MessageBody": record["body"],
        "MessageAttributes": {**_own(found, attributes), **attributes},
    }
    system = record.get("attributes", {})
    if trace := system.get("AWSTraceHeader"):
        request["MessageSystemAttributes"] = {"AWSTraceHeader": {"DataType": "String", "StringValue": trace}}
    if dlq_url.endswith(".fifo"):
        request["MessageGroupId"] = system["MessageGroupId"]
        request["MessageDeduplicationId"] = record["messageId"]
    sqs.send_message(**request)


def _own(found: dict[str, Any], added: dict[str, dict[str, str]]) -> dict[str, dict[str, Any]]:
    """The message's own attributes, as far as SQS's count and the limit allow."""
    own: dict[str, dict[str, Any]] = {}
    left = ATTRIBUTES_LIMIT_BYTES - sum(_size(name, value) for name, value in added.items())
    for name in found:
        if name in added or len(own) == MAX_KEPT_ATTRIBUTES:
            continue
        attribute = _attribute(found[name])
        size = _size(name, attribute)
        if size <= left:
            own[name] = attribute
            left -= size
    return own


def _size(name: str, attribute: dict[str, Any]) -> int:
    """Bytes, as SQS counts them: name, type and value."""
    value = attribute["BinaryValue"] if "BinaryValue" in attribute else attribute["StringValue"].encode()
    return len(name.encode()) + len(attribute["DataType"].encode()) + len(value)


def _kept(found: dict[str, Any], name: str, otherwise: str) -> dict[str, str]:
    value = found.get(name, {}).get("stringValue") or otherwise
    return {"DataType": "String", "StringValue": value if len(value) <= MAX_NOTE_LENGTH else otherwise}


def _attribute(found: dict[str, Any]) -> dict[str, Any]:
    """From the spelling of Lambda's event to that of SendMessage."""
    if found.get("binaryValue") is not None:
        return {"DataType": found["dataType"], "BinaryValue": base64.b64decode(found["binaryValue"])}
    return {"DataType": found["dataType"], "StringValue": found["stringValue"]}
