"""Queues: how many messages they hold, and walks over a DLQ that give back every message."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from shared.idempotency import iso
from tools.domain import ORDER_ID

HIDDEN_S = 120  # a message stays hidden for so long if the walk dies before it gives the message back
# A long poll reads all servers of a queue, so that an empty answer means an empty queue.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-short-and-long-polling.html
WAIT_S = 1
BATCH = 10
NO_REASON = "none"

_MESSAGE_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")
_WORD = re.compile(r"[A-Za-z_]{1,64}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z")


@dataclass(frozen=True)
class Depth:
    """The messages of a queue by SQS's approximate count: visible, received and not yet deleted, delayed."""

    visible: int
    in_flight: int
    delayed: int

    @property
    def total(self) -> int:
        return self.visible + self.in_flight + self.delayed


def depth(sqs: Any, url: str) -> Depth:
    """Return how many messages a queue holds."""
    names = [f"ApproximateNumberOfMessages{kind}" for kind in ("", "NotVisible", "Delayed")]
    counts = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
    return Depth(*(int(counts[name]) for name in names))


def queue_arn(sqs: Any, url: str) -> str:
    """Return the ARN of a queue."""
    arn: str = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    return arn


@dataclass(frozen=True, slots=True)
class Parked:
    """A message in a DLQ. Ids, times and a reason only: nothing that names a person."""

    message_id: str
    order_id: str | None
    reason: str  # NO_REASON: SQS moved the message after too many receives
    first_parked_at: str | None  # RFC 3339; None if SQS moved the message
    sent_at: str  # RFC 3339
    logged_as: str  # the message id when it was first parked, which the function's log has

    @property
    def permanent(self) -> bool:
        """A step found that no retry can help."""
        return self.reason != NO_REASON


def parse_parked(message: Mapping[str, Any]) -> Parked:
    """Return a received message as Parked. Text of a producer is kept only if it has the form of an id or a word."""
    body = _json(message["Body"])
    attributes = {name: value.get("StringValue", "") for name, value in message.get("MessageAttributes", {}).items()}
    system = message.get("Attributes", {})
    return Parked(
        message_id=message["MessageId"],
        order_id=_order_id(body),
        reason=_reason(attributes, system, body),
        first_parked_at=_matching(_TIME, attributes.get("first_parked_at")),
        sent_at=iso(int(system["SentTimestamp"])),
        logged_as=_matching(_MESSAGE_ID, attributes.get("original_message_id")) or message["MessageId"],
    )


def _reason(attributes: Mapping[str, str], system: Mapping[str, str], body: Mapping[str, Any]) -> str:
    if "DeadLetterQueueSourceArn" in system:
        return NO_REASON  # SQS moved the message; a reason would be left from before a redrive
    if condition := _at(body, "requestContext", "condition"):  # Lambda's own reason for stream records
        return _matching(_WORD, condition) or "other"
    if "reason" not in attributes:
        return NO_REASON
    return _matching(_WORD, attributes["reason"]) or "other"


def _order_id(body: Mapping[str, Any]) -> str | None:
    if found := _matching(ORDER_ID, _at(body, "data", "order_id")):
        return found
    key = body.get("id")  # the relay parks the key of a record, <operation>#<order id>
    return _matching(ORDER_ID, key.rpartition("#")[2]) if isinstance(key, str) and "#" in key else None


def _at(body: Mapping[str, Any], outer: str, inner: str) -> Any:
    within = body.get(outer)
    return within.get(inner) if isinstance(within, dict) else None


def _matching(pattern: re.Pattern[str], value: Any) -> str | None:
    return value if isinstance(value, str) and pattern.fullmatch(value) else None


def _json(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


@dataclass(eq=False)
class Walk:
    """A walk over the messages of a queue. It gives back each message that was not removed.

    It keeps an id and a receipt handle of each message in memory.
    """

    sqs: Any
    url: str
    complete: bool = False  # the walk reached the end of the queue
    _handles: dict[str, str] = field(default_factory=dict)
    _removed: set[str] = field(default_factory=set)

    def messages(self, limit: int | None = None) -> Iterator[Mapping[str, Any]]:
        """Return each message once, at most `limit` of them."""
        left = limit
        repeats = 0  # messages in a row that were received before: on a long walk they become visible again
        while left is None or left > 0:
            received = self.sqs.receive_message(
                QueueUrl=self.url,
                MaxNumberOfMessages=BATCH if left is None else min(BATCH, left),
                VisibilityTimeout=HIDDEN_S,
                WaitTimeSeconds=WAIT_S,
                MessageAttributeNames=["All"],
                MessageSystemAttributeNames=["All"],
            ).get("Messages", [])
            known = self._handles.keys() | self._removed
            fresh = [message for message in received if message["MessageId"] not in known]
            self._handles |= {message["MessageId"]: message["ReceiptHandle"] for message in received}
            repeats = 0 if fresh else repeats + len(received)
            if not received or repeats > len(self._handles):
                self.complete = True
                return
            yield from fresh
            left = None if left is None else left - len(fresh)

    def remove(self, message: Mapping[str, Any]) -> None:
        """Delete a message of this walk."""
        self.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=self._handles[message["MessageId"]])
        del self._handles[message["MessageId"]]
        self._removed.add(message["MessageId"])

    def give_back(self) -> None:
        """Make the remaining messages visible. If a request fails, they become visible after HIDDEN_S."""
        entries = [
            {"Id": str(n), "ReceiptHandle": handle, "VisibilityTimeout": 0}
            for n, handle in enumerate(self._handles.values())
        ]
        for start in range(0, len(entries), BATCH):
            with suppress(ClientError, BotoCoreError):
                self.sqs.change_message_visibility_batch(QueueUrl=self.url, Entries=entries[start : start + BATCH])


@contextmanager
def walk(sqs: Any, url: str) -> Iterator[Walk]:
    """Walk over a queue, and give back the messages at the end, also after an error or an interruption."""
    walking = Walk(sqs, url)
    try:
        yield walking
    finally:
        walking.give_back()
