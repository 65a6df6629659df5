"""The outbox: the events of a completed record, as one JSON string attribute, and how they are sent to queues.

One string, because the event filter of a stream matches leaf values only. It tests `status.S` and `outbox.S`.
https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from .events import CloudEvent, Event, cloudevent
from .runtime import iso

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

BATCH_ENTRIES = 10
# The limit of one message and of one request. SQS accepts more today; every queue accepts this much.
LIMIT_BYTES = 256 * 1024
# Refusals by code. `SenderFault` is also true for a throttled key or a missing permission, which are temporary.
UNSENDABLE = {"InvalidMessageContents", "InvalidParameterValue"}


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One event in the attribute, with the X-Ray header of the invocation that emitted it."""

    event: CloudEvent
    trace: str | None = None


_entries = msgspec.json.Decoder(tuple[Entry, ...])


def pack(events: Sequence[Event], *, correlation_id: str, now_ms: int, trace: str | None) -> str:
    """Encode events as the attribute's text."""
    time = iso(now_ms)
    entries = [Entry(cloudevent(event, correlation_id=correlation_id, time=time), trace) for event in events]
    return msgspec.json.encode(entries).decode()


def unpack(outbox: str) -> tuple[Entry, ...]:
    """Decode the attribute's text. Raises one of UNREADABLE (events.py), also for an event that no consumer accepts."""
    return _entries.decode(outbox)


@dataclass(frozen=True, slots=True, eq=False)
class OutgoingMessage:
    """An event and the queue that it goes to. `trace` is the X-Ray header of the invocation that emitted it."""

    queue_url: str
    event: CloudEvent
    trace: str | None = None

    @property
    def body(self) -> str:
        """The CloudEvent as JSON."""
        return msgspec.json.encode(self.event).decode()

    @property
    def size(self) -> int:
        """Bytes as SQS counts them. System attributes such as the trace do not count."""
        return len(self.body.encode())


@dataclass(frozen=True, slots=True)
class SendError:
    """Why SQS did not accept a message. After a lost answer it may have accepted the message."""

    code: str
    permanent: bool  # the message itself is at fault, so that sending it again cannot help


def batches(messages: Iterable[OutgoingMessage]) -> Iterator[Sequence[OutgoingMessage]]:
    """Split messages into requests to one queue each, within SQS's limits of entries and bytes."""
    filling: dict[str, list[OutgoingMessage]] = {}
    for message in messages:
        batch = filling.setdefault(message.queue_url, [])
        size = sum(other.size for other in batch) + message.size
        if batch and (len(batch) == BATCH_ENTRIES or size > LIMIT_BYTES):
            yield batch
            batch = filling[message.queue_url] = []
        batch.append(message)
    yield from filling.values()


def send(sqs: "SQSClient", batch: Sequence[OutgoingMessage]) -> dict[OutgoingMessage, SendError]:
    """Send one batch once. Returns the messages that were refused; all others are in the queue.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
    """
    if batch[0].size > LIMIT_BYTES:  # such a message is alone in its batch
        return {batch[0]: SendError("too_large", permanent=True)}
    entries: Any = [{"Id": str(n), "MessageBody": message.body, **_system(message)} for n, message in enumerate(batch)]
    try:
        answer = sqs.send_message_batch(QueueUrl=batch[0].queue_url, Entries=entries)
    except ClientError as error:
        return dict.fromkeys(batch, SendError(error.response["Error"]["Code"], permanent=False))
    except BotoCoreError as error:
        return dict.fromkeys(batch, SendError(type(error).__name__, permanent=False))
    return {
        batch[int(refused["Id"])]: SendError(
            refused["Code"], permanent=refused["SenderFault"] and refused["Code"] in UNSENDABLE
        )
        for refused in answer.get("Failed", [])
    }


def _system(message: OutgoingMessage) -> dict[str, Any]:
    if message.trace is None:
        return {}
    return {"MessageSystemAttributes": {"AWSTraceHeader": {"DataType": "String", "StringValue": message.trace}}}
