"""Messages as Lambda hands them over, and what a handler makes of them."""

import json
from typing import Any

import msgspec

from shared.idempotency import Event, Step, cloudevent, sqs_handler
from tests.harness.moto_world import World
from tests.unit.idempotency.kit import ParcelWanted

Record = dict[str, Any]  # as in Lambda's SQS event


def sqs_record(
    message_id: str,
    event: Event | str,
    *,
    correlation_id: str = "c-1",
    receive_count: int = 1,
    group: str | None = None,
    **more: Any,
) -> Record:
    """A message as Lambda hands it over; with a group it is one of a FIFO queue. A string is its body as it is."""
    if isinstance(event, Event):
        sent = cloudevent(event, correlation_id=correlation_id, time="2026-01-01T00:00:00.000Z")
        body = msgspec.json.encode(sent).decode()
    else:
        body = event
    return {
        "messageId": message_id,
        "receiptHandle": f"handle of {message_id}",
        "body": body,
        "attributes": {
            "ApproximateReceiveCount": str(receive_count),
            **({"MessageGroupId": group} if group else {}),
        },
        "messageAttributes": {},
        "eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:orders" + (".fifo" if group else ""),
        **more,
    }


def deliver(world: World, step: Step[Any], *records: Record, seconds: float = 30) -> list[str]:
    """Hand a batch to the step's handler; answers the ids that come back."""
    answer = sqs_handler(step)({"Records": list(records)}, world.context(seconds))
    assert answer.keys() == {"batchItemFailures"}
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def waits(world: World) -> dict[str, int]:
    """Seconds for which each message was made invisible, by its id."""
    bodies = [json.loads(body) for body in world.wire.bodies("ChangeMessageVisibilityBatch")]
    return {
        entry["ReceiptHandle"].removeprefix("handle of "): entry["VisibilityTimeout"]
        for body in bodies
        for entry in body["Entries"]
    }


def wanted(parcel_id: str, **data: Any) -> ParcelWanted:
    return ParcelWanted(parcel_id=parcel_id, **data)
