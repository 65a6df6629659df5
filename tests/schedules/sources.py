"""The sources of deliveries: a queue's mapping, the table's stream, clients of the API. They redeliver as AWS does."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from tests.harness.sqs_records import sqs_record
from tests.schedules.facts import Facts
from tests.schedules.services import Message, Queues


@dataclass
class Delivery:
    """The event of one invocation, and what its end does to the source. `died` also handles a raised exception."""

    event: dict[str, Any]
    returned: Callable[[Any], None]
    died: Callable[[], None]
    about: str = ""  # for the trace


class Source(Protocol):
    """Something that invokes a function. Times in epoch milliseconds."""

    label: str  # one lower-case letter, for schedule strings
    function: str
    timeout_s: float

    def next_ms(self) -> int | None:
        """Return the time of the next delivery, or None if there is nothing to deliver."""

    def take(self) -> Delivery:
        """Take the next delivery."""

    def state(self) -> object:
        """Return everything that decides the next delivery, except what the model holds."""

    def save(self) -> dict[str, Any]:
        """Return what changes, for `restore`."""

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Return to what was saved."""


class _Saved:
    """A source that keeps what changes in attributes with these names."""

    CHANGES: ClassVar[tuple[str, ...]] = ()

    def save(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.CHANGES}

    def restore(self, saved: Mapping[str, Any]) -> None:
        vars(self).update(saved)


@dataclass
class QueueSource(_Saved):
    """The event source mapping of a queue, with ReportBatchItemFailures."""

    label: str
    function: str
    queue: str
    timeout_s: float
    queues: Queues
    acknowledged: Callable[[str, Message], None]
    batch: int = 1

    def next_ms(self) -> int | None:
        return self.queues.next_visible_ms(self.queue)

    def take(self) -> Delivery:
        # Six times the function's timeout, as the stacks derive it.
        messages = self.queues.receive(self.queue, 6 * self.timeout_s, self.batch)
        receipts = {message.id: message.receipt for message in messages}

        def returned(result: dict[str, Any]) -> None:
            failed = {entry["itemIdentifier"] for entry in result["batchItemFailures"]}
            for message in messages:
                if message.id not in failed:
                    self.acknowledged(self.queue, message)
                    self.queues.delete(self.queue, receipts[message.id])

        records = [_record(self.queue, message) for message in messages]
        about = ", ".join(f"{message.id}, receive {message.receives}" for message in messages)
        return Delivery({"Records": records}, returned, lambda: None, about)

    def state(self) -> object:
        return None


def _record(queue: str, message: Message) -> dict[str, Any]:
    return sqs_record(
        message.id,
        message.body,
        queue=queue,
        receive_count=message.receives,
        receipt=message.receipt,
        attributes={name: value["StringValue"] for name, value in message.system.items()},
        message_attributes={
            name: {"stringValue": value["StringValue"], "dataType": value["DataType"]}
            for name, value in message.attributes.items()
        },
    )


@dataclass
class StreamSource(_Saved):
    """The stream of the idempotency table with the relay's filter: completed records with an outbox, in order.

    There is one batch at a time. If its worker dies, raises or times out, the batch is delivered again.
    """

    CHANGES = ("records", "read", "busy_until")

    label: str
    function: str
    timeout_s: float
    now_ms: Callable[[], int]
    records: tuple[dict[str, Any], ...] = ()
    read: int = 0
    busy_until: int = 0

    def changed(self, image: dict[str, Any] | None) -> None:
        """Add a written item to the stream, if it passes the filter."""
        if image and image["status"] == {"S": "COMPLETED"} and "S" in image.get("outbox", {}):
            number = len(self.records) + 1
            self.records += (
                {
                    "eventID": str(number),
                    "eventName": "MODIFY",
                    "eventSource": "aws:dynamodb",
                    "awsRegion": "eu-west-1",
                    "dynamodb": {
                        "Keys": {"id": image["id"]},
                        "NewImage": image,
                        "SequenceNumber": f"{number:021d}",
                        "StreamViewType": "NEW_IMAGE",
                    },
                    "eventSourceARN": "arn:aws:dynamodb:eu-west-1:123456789012:table/idempotency/stream/1",
                },
            )

    def next_ms(self) -> int | None:
        return self.busy_until if self.read < len(self.records) else None

    def take(self) -> Delivery:
        batch, end = list(self.records[self.read :]), len(self.records)
        self.busy_until = self.now_ms() + int(self.timeout_s * 1000)

        def returned(_: Any) -> None:
            self.read = max(self.read, end)
            self.busy_until = 0

        def died() -> None:
            self.busy_until = 0

        return Delivery({"Records": batch}, returned, died, f"{len(batch)} stream records")

    def state(self) -> object:
        return self.records[self.read :], self.busy_until


@dataclass
class ClientSource(_Saved):
    """A client of the API. It repeats its POST with the same key until the answer is final."""

    CHANGES = ("next_at",)

    label: str
    function: str
    timeout_s: float
    now_ms: Callable[[], int]
    body: str
    facts: Facts
    next_at: int | None = 0

    def next_ms(self) -> int | None:
        return self.next_at

    def take(self) -> Delivery:
        self.next_at = None

        def returned(answer: dict[str, Any]) -> None:
            if answer["statusCode"] in _TRY_AGAIN:
                died()
            else:
                self.facts.answers.append((answer["statusCode"], answer["body"]))

        def died() -> None:
            self.next_at = self.now_ms() + 1000

        return Delivery(_request(self.body), returned, died, "POST /orders")

    def state(self) -> object:
        return self.next_at


_TRY_AGAIN = {409, 500, 502, 503, 504}


def _request(body: str) -> dict[str, Any]:
    """Return the event of API Gateway's HTTP API, payload format 2.0, with the result of the IAM authoriser."""
    return {
        "version": "2.0",
        "routeKey": "POST /orders",
        "rawPath": "/orders",
        "rawQueryString": "",
        "headers": {"content-type": "application/json", "idempotency-key": '"key-1"'},
        "requestContext": {
            "accountId": "123456789012",
            "authorizer": {"iam": {"accountId": "123456789012", "userId": "AROAEXAMPLE:session"}},
            "http": {"method": "POST", "path": "/orders", "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1"},
            "requestId": "request-1",
            "stage": "$default",
            "timeEpoch": 0,
        },
        "body": body,
        "isBase64Encoded": False,
    }
