"""Looks into a DLQ: each message once, none removed, none hidden for longer than the look takes."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from shared.idempotency import iso

# Hidden for so long, in seconds, if we die before giving a message back.
HIDDEN_S = 120
# A long poll asks every server of a queue, so that an empty answer means an empty queue.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-short-and-long-polling.html
WAIT_S = 1
BATCH = 10
NO_REASON = "none"

ORDER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_MESSAGE_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")
_WORD = re.compile(r"[A-Za-z_]{1,64}")
_WHEN = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z")


@dataclass(frozen=True, slots=True)
class Parked:
    """A message in a DLQ, as far as it may be shown: ids, times and a reason, nothing that names a person."""

    message_id: str
    order_id: str | None
    reason: str  # NO_REASON: received as often as an outage takes
    first_parked_at: str | None  # RFC 3339; SQS itself notes none
    sent_at: str  # RFC 3339
    logged_as: str  # the id that the message had when it was first parked: the log knows it by that

    @property
    def permanent(self) -> bool:
        """A step said that no retry can help."""
        return self.reason != NO_REASON


def read(message: Mapping[str, Any]) -> Parked:
    """From SQS's answer. What a stranger may have written is shown only where it has the form of an id or a word."""
    body = _json(message["Body"])
    attributes = {name: value.get("StringValue", "") for name, value in message.get("MessageAttributes", {}).items()}
    system = message.get("Attributes", {})
    return Parked(
        message_id=message["MessageId"],
        order_id=_order_id(body),
        reason=_reason(attributes, system, body),
        first_parked_at=_matching(_WHEN, attributes.get("first_parked_at")),
        sent_at=iso(int(system["SentTimestamp"])),
        logged_as=_matching(_MESSAGE_ID, attributes.get("original_message_id")) or message["MessageId"],
    )


def _reason(attributes: Mapping[str, str], system: Mapping[str, str], body: Mapping[str, Any]) -> str:
    if "DeadLetterQueueSourceArn" in system:
        return NO_REASON  # moved here by SQS; a reason would be that of a time before a redrive
    if condition := _at(body, "requestContext", "condition"):  # Lambda's own, for stream records
        return _matching(_WORD, condition) or "other"
    if "reason" not in attributes:
        return NO_REASON
    return _matching(_WORD, attributes["reason"]) or "other"


def _order_id(body: Mapping[str, Any]) -> str | None:
    if found := _matching(ORDER_ID, _at(body, "data", "order_id")):
        return found
    key = body.get("id")  # the relay parks a record's key, <operation>#<order id>
    return _matching(ORDER_ID, key.rpartition("#")[2]) if isinstance(key, str) and "#" in key else None


def _at(body: Mapping[str, Any], outer: str, inner: str) -> Any:
    within = body.get(outer)
    return within.get(inner) if isinstance(within, dict) else None


def _matching(pattern: re.Pattern[str], value: Any) -> str | None:
    return value if isinstance(value, str) and pattern.fullmatch(value) else None


def _json(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


@dataclass(eq=False)
class Visit:
    """A walk over the messages of a queue. Those that are not removed are given back at its end.

    Kept in memory, per message: its id and its receipt handle.
    """

    sqs: Any
    url: str
    whole: bool = False  # the walk came to the end of the queue
    _handles: dict[str, str] = field(default_factory=dict)
    _gone: set[str] = field(default_factory=set)

    def messages(self, most: int | None = None) -> Iterator[Mapping[str, Any]]:
        """Each message once, `most` at most, as SQS spells them."""
        left = most
        again = 0  # seen once more in a row: those become visible again on a long walk
        while left is None or left > 0:
            found = self.sqs.receive_message(
                QueueUrl=self.url,
                MaxNumberOfMessages=BATCH if left is None else min(BATCH, left),
                VisibilityTimeout=HIDDEN_S,
                WaitTimeSeconds=WAIT_S,
                MessageAttributeNames=["All"],
                MessageSystemAttributeNames=["All"],
            ).get("Messages", [])
            seen = self._handles.keys() | self._gone
            fresh = [message for message in found if message["MessageId"] not in seen]
            self._handles |= {message["MessageId"]: message["ReceiptHandle"] for message in found}
            again = 0 if fresh else again + len(found)
            if not found or again > len(self._handles):
                self.whole = True
                return
            yield from fresh
            left = None if left is None else left - len(fresh)

    def remove(self, message: Mapping[str, Any]) -> None:
        """Delete a message of this walk."""
        self.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=self._handles[message["MessageId"]])
        del self._handles[message["MessageId"]]
        self._gone.add(message["MessageId"])

    def give_back(self) -> None:
        """Let all that are left be seen again. Those for which it fails come back by themselves, after HIDDEN_S."""
        entries = [
            {"Id": str(n), "ReceiptHandle": handle, "VisibilityTimeout": 0}
            for n, handle in enumerate(self._handles.values())
        ]
        for start in range(0, len(entries), BATCH):
            with suppress(ClientError, BotoCoreError):
                self.sqs.change_message_visibility_batch(QueueUrl=self.url, Entries=entries[start : start + BATCH])


@contextmanager
def visit(sqs: Any, url: str) -> Iterator[Visit]:
    """A walk that gives back what it took, also when it is interrupted."""
    walk = Visit(sqs, url)
    try:
        yield walk
    finally:
        walk.give_back()


def depth(sqs: Any, url: str) -> dict[str, int]:
    """Messages in a queue, as SQS counts them, which is roughly: `visible`, `in_flight`, `delayed`."""
    names = {"visible": "", "in_flight": "NotVisible", "delayed": "Delayed"}
    found = sqs.get_queue_attributes(
        QueueUrl=url, AttributeNames=[f"ApproximateNumberOfMessages{kind}" for kind in names.values()]
    )["Attributes"]
    return {name: int(found[f"ApproximateNumberOfMessages{kind}"]) for name, kind in names.items()}
