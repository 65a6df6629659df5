"""Messages as Lambda hands them over, and what a handler makes of them."""

import json
from typing import Any

import msgspec

from shared.idempotency import Event, Step, cloudevent, sqs_handler
from tests.harness import sqs_records
from tests.harness.layer_world import World
from tests.harness.sqs_records import Record
from tests.unit.idempotency.core_helpers import ParcelWanted


def sqs_record(
    message_id: str,
    event: Event | str,
    *,
    correlation_id: str = "c-1",
    receive_count: int = 1,
    group: str | None = None,
    **more: Any,
) -> Record:
    """Return a record with an event, or with a text as its body. `group`: the message group, on a FIFO queue."""
    if isinstance(event, Event):
        sent = cloudevent(event, correlation_id=correlation_id, time="2026-01-01T00:00:00.000Z")
        body = msgspec.json.encode(sent).decode()
    else:
        body = event
    return sqs_records.sqs_record(message_id, body, receive_count=receive_count, group=group) | more


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
