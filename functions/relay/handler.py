"""Relay: sends the outbox of each completed record on. Twice or in another order is fine, every consumer takes that.

Of a record with an event that can never be sent, the failure queue gets what there is, and it counts as done. Whatever
else is not sent by the deadline makes the whole batch fail: the one answer that brings it back everywhere.
"""

import json
import os
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from shared import aws, telemetry
from shared.idempotency import clock, outbox, parking
from shared.idempotency.events import UNREADABLE
from shared.idempotency.sending import LIMIT_BYTES, Post, batches, send
from shared.telemetry import logger

OPERATION = "relay"
RESEND_BASE_S = 0.05
RESEND_CAP_S = 1.0

Record = Mapping[str, Any]  # as in Lambda's event for a DynamoDB stream

_rng = random.SystemRandom()


class NotRelayed(Exception):
    """Not everything was sent or parked in time: the stream's mapping brings the batch again."""


def handler(event: dict[str, Any], context: Any) -> None:
    """Send the events of a batch of stream records. Raises NotRelayed, or botocore's errors from parking."""
    deadline_ms = clock.SYSTEM.now_ms() + context.get_remaining_time_in_millis()
    records: Sequence[Record] = event["Records"]
    counts: Counter[str] = Counter()
    failed: dict[int, str] = {}  # position → reason
    try:
        _send(_read(records, failed), failed, deadline_ms, counts)
        for position, reason in failed.items():
            _require_time(deadline_ms)
            _park(records[position], reason)
            counts[telemetry.PARKED] += 1
    finally:
        telemetry.count(OPERATION, counts)


def _read(records: Sequence[Record], failed: dict[int, str]) -> dict[Post, int]:
    """All events, addressed, each with its record's position."""
    routes: dict[str, str] = json.loads(os.environ["ROUTES"])
    posts: dict[Post, int] = {}
    for position, record in enumerate(records):
        text = _outbox(record)
        if text is None:
            continue  # removed, or nothing to send
        try:
            entries = outbox.unpack(text)
        except UNREADABLE:
            failed[position] = "unreadable_outbox"
            continue
        for entry in entries:
            takers = routes.get(entry.event.type, "").split()
            if not takers:
                failed[position] = "no_route"
            for url in takers:
                posts[Post(url, entry.event, entry.trace)] = position
    return posts


def _send(posts: Mapping[Post, int], failed: dict[int, str], deadline_ms: int, counts: Counter[str]) -> None:
    """Send, and send again what was refused, until the deadline is near."""
    sqs = aws.client("sqs")
    waiting: Sequence[Post] = list(posts)
    tries = 0
    while waiting:
        left: list[Post] = []
        for batch in batches(waiting):
            _require_time(deadline_ms)
            refused = send(sqs, batch)
            for post in batch:
                about: dict[str, Any] = {"correlation_id": post.event.correlation_id, "event_id": post.event.id}
                refusal = refused.get(post)
                if refusal is None:
                    logger.info("sent", **about)
                    continue
                logger.warning("refused by its queue", code=refusal.code, for_good=refusal.for_good, **about)
                if refusal.for_good:
                    failed[posts[post]] = "refused_by_queue"
                else:
                    left.append(post)
            counts[telemetry.SENT] += len(batch) - len(refused)
        if left:
            wait_s = _rng.uniform(0, min(RESEND_CAP_S, RESEND_BASE_S * 2 ** min(tries, 10)))
            _require_time(deadline_ms, wait_s)
            clock.SYSTEM.sleep(wait_s)
            counts[telemetry.RESENT] += len(left)
        waiting = left
        tries += 1


def _park(record: Record, reason: str) -> None:
    """The record's id and reason to the failure queue, with the outbox where there is room for it."""
    image = record["dynamodb"].get("NewImage", {})
    key = image.get("id", {}).get("S")
    correlation_id = image.get("correlation_id", {}).get("S")
    logger.error("parked", operation=OPERATION, key=key, reason=reason, correlation_id=correlation_id)
    # Escaped to ASCII, since SQS may have refused just its characters.
    body = json.dumps({"id": key, "outbox": _outbox(record)})
    if len(body) > LIMIT_BYTES:
        body = json.dumps({"id": key})
    message = {"messageId": record["eventID"], "body": body}
    parking.park(aws.client("sqs"), os.environ["DLQ_URL"], message, reason, clock.SYSTEM.now_ms())


def _outbox(record: Record) -> str | None:
    text: str | None = record["dynamodb"].get("NewImage", {}).get("outbox", {}).get("S")
    return text


def _require_time(deadline_ms: int, wait_s: float = 0) -> None:
    left_s = (deadline_ms - clock.SYSTEM.now_ms()) / 1000
    if left_s < wait_s + aws.request_s():
        raise NotRelayed(f"{left_s:.1f} s left")
