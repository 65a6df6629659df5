"""Sends events to queues, in SQS's batches: what the relay and a sweep have in common. How often, they decide.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from shared.idempotency.events import Envelope

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

BATCH_ENTRIES = 10
# For one message and for one request alike. SQS takes more by now; what every queue takes is enough.
LIMIT_BYTES = 256 * 1024
# By name: `SenderFault` is also true of a key that throttles or a permission that is missing, which heal.
UNSENDABLE = {"InvalidMessageContents", "InvalidParameterValue"}


@dataclass(frozen=True, slots=True, eq=False)
class Post:
    """An event and the queue it goes to; `trace` is the X-Ray header under which it came about."""

    queue_url: str
    event: Envelope
    trace: str | None = None

    @property
    def body(self) -> str:
        """The message: the CloudEvent as JSON."""
        return msgspec.json.encode(self.event).decode()

    @property
    def size(self) -> int:
        """Bytes, as SQS counts them: its own attributes, such as the trace, are free."""
        return len(self.body.encode())


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a post was not taken; or, after a lost answer, may not have been."""

    code: str
    for_good: bool  # it is the message's own fault: no resend can help


def batches(posts: Iterable[Post]) -> Iterator[Sequence[Post]]:
    """Split posts into requests: one queue each, no more entries and bytes than SQS takes."""
    filling: dict[str, list[Post]] = {}
    for post in posts:
        batch = filling.setdefault(post.queue_url, [])
        if batch and (len(batch) == BATCH_ENTRIES or sum(other.size for other in batch) + post.size > LIMIT_BYTES):
            yield batch
            batch = filling[post.queue_url] = []
        batch.append(post)
    yield from filling.values()


def send(sqs: "SQSClient", batch: Sequence[Post]) -> dict[Post, Refusal]:
    """Send one batch, once. Answers what was refused: the rest is in the queue."""
    if batch[0].size > LIMIT_BYTES:  # then it is alone
        return {batch[0]: Refusal("too_large", for_good=True)}
    entries: Any = [{"Id": str(n), "MessageBody": post.body, **_system(post)} for n, post in enumerate(batch)]
    try:
        answer = sqs.send_message_batch(QueueUrl=batch[0].queue_url, Entries=entries)
    except ClientError as error:
        return dict.fromkeys(batch, Refusal(error.response["Error"]["Code"], for_good=False))
    except BotoCoreError as error:
        return dict.fromkeys(batch, Refusal(type(error).__name__, for_good=False))
    return {
        batch[int(no["Id"])]: Refusal(no["Code"], for_good=no["SenderFault"] and no["Code"] in UNSENDABLE)
        for no in answer.get("Failed", [])
    }


def _system(post: Post) -> dict[str, Any]:
    if post.trace is None:
        return {}
    return {"MessageSystemAttributes": {"AWSTraceHeader": {"DataType": "String", "StringValue": post.trace}}}
