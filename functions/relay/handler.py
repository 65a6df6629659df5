"""Relay: sends the outbox of each completed record to the queues of its consumers.

The relay may send an event twice or in another order. Every consumer accepts that.
"""

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from shared.idempotency import (
    OutgoingMessage,
    batches,
    client,
    epoch_ms,
    logger,
    park,
    request_s,
    reserve_s,
    runtime,
    send,
    telemetry,
    unpack,
)
from shared.idempotency.events import UNREADABLE
from shared.idempotency.outbox import LIMIT_BYTES

OPERATION = "relay"
RESEND_BASE_S = 0.05
RESEND_CAP_S = 1.0

Record = Mapping[str, Any]  # as in Lambda's event for a DynamoDB stream


class NotRelayed(Exception):
    """Some events were neither sent nor parked before the deadline. The stream's mapping delivers the batch again."""


def handler(event: dict[str, Any], context: Any) -> None:
    """Send the events of a batch of stream records.

    If an event can never be sent, its record goes to the failure queue. If anything else is unsent at the deadline,
    the handler raises NotRelayed, so that Lambda retries the batch. botocore's errors from parking do the same.
    """
    deadline_ms = epoch_ms() + context.get_remaining_time_in_millis() - int(reserve_s() * 1000)
    records: Sequence[Record] = event["Records"]
    counts: Counter[str] = Counter()
    failed: dict[int, str] = {}  # reason by the record's position
    try:
        _send(_messages_of(records, failed), failed, deadline_ms, counts)
        for position, reason in failed.items():
            _require_time(deadline_ms)
            _park(records[position], reason)
            counts[telemetry.PARKED] += 1
    finally:
        telemetry.count(OPERATION, counts)


def _messages_of(records: Sequence[Record], failed: dict[int, str]) -> dict[OutgoingMessage, int]:
    """Return all events with their queues, each with the position of its record. Unreadable records go to `failed`."""
    routes: dict[str, str] = json.loads(os.environ["ROUTES"])
    messages: dict[OutgoingMessage, int] = {}
    for position, record in enumerate(records):
        text = _outbox(record)
        if text is None:
            continue  # a deleted record, or a record without events
        try:
            entries = unpack(text)
        except UNREADABLE:
            failed[position] = "unreadable_outbox"
            continue
        for entry in entries:
            queue_urls = routes.get(entry.event.type, "").split()
            if not queue_urls:
                failed[position] = "no_route"
            for url in queue_urls:
                messages[OutgoingMessage(url, entry.event, entry.trace)] = position
    return messages


def _send(
    messages: Mapping[OutgoingMessage, int], failed: dict[int, str], deadline_ms: int, counts: Counter[str]
) -> None:
    """Send all messages. Send those that a queue refused again, until the deadline is near."""
    here = runtime.current()
    waiting: Sequence[OutgoingMessage] = list(messages)
    resends = 0
    while waiting:
        unsent: list[OutgoingMessage] = []
        for batch in batches(waiting):
            _require_time(deadline_ms)
            refused = send(client("sqs"), batch)
            for message in batch:
                ids: dict[str, Any] = {"correlation_id": message.event.correlation_id, "event_id": message.event.id}
                error = refused.get(message)
                if error is None:
                    logger.info("sent", **ids)
                    continue
                logger.warning("refused by its queue", code=error.code, permanent=error.permanent, **ids)
                if error.permanent:
                    failed[messages[message]] = "refused_by_queue"
                else:
                    unsent.append(message)
            counts[telemetry.SENT] += len(batch) - len(refused)
        if unsent:
            wait_s = here.rng.uniform(0, min(RESEND_CAP_S, RESEND_BASE_S * 2 ** min(resends, 10)))
            _require_time(deadline_ms, wait_s)
            here.clock.sleep(wait_s)
            counts[telemetry.RESENT] += len(unsent)
        waiting = unsent
        resends += 1


def _park(record: Record, reason: str) -> None:
    """Send the record's id and reason to the failure queue, with the outbox if the message limit allows it."""
    image = record["dynamodb"].get("NewImage", {})
    key = image.get("id", {}).get("S")
    correlation_id = image.get("correlation_id", {}).get("S")
    logger.error("parked", operation=OPERATION, key=key, reason=reason, correlation_id=correlation_id)
    # Escaped to ASCII, because SQS may have refused the characters of the event.
    body = json.dumps({"id": key, "outbox": _outbox(record)})
    if len(body) > LIMIT_BYTES:
        body = json.dumps({"id": key})
    message = {"messageId": record["eventID"], "body": body}
    park(client("sqs"), os.environ["DLQ_URL"], message, reason, epoch_ms())


def _outbox(record: Record) -> str | None:
    text: str | None = record["dynamodb"].get("NewImage", {}).get("outbox", {}).get("S")
    return text


def _require_time(deadline_ms: int, wait_s: float = 0) -> None:
    left_s = (deadline_ms - epoch_ms()) / 1000
    if left_s < wait_s + request_s():
        raise NotRelayed(f"{left_s:.1f} s left")
