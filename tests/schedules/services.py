"""SQS, S3, SES and Secrets Manager in memory: what the functions call, and what the event source mapping does."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tests.schedules.dynamodb import Refused, digest
from tests.schedules.expressions import Unmodelled

MESSAGE_LIMIT_BYTES = 1024 * 1024
MAX_VISIBILITY_S = 12 * 3600


@dataclass
class Message:
    """A message on a queue. `visible_at` in epoch milliseconds."""

    id: str
    body: str
    attributes: dict[str, Any]
    system: dict[str, Any]
    visible_at: int
    receives: int = 0
    digest: bytes = b""  # of its content

    def __post_init__(self) -> None:
        self.digest = digest(repr((self.id, self.body, self.attributes, self.system)).encode())

    @property
    def state(self) -> object:
        """Comparable."""
        return self.digest, self.visible_at, self.receives

    @property
    def receipt(self) -> str:
        """The newest receipt handle; every receive makes another."""
        return f"{self.id}/{self.receives}"


@dataclass
class Queues:
    """All standard queues, by name; a queue's URL ends with its name. `sent` holds every message ever accepted."""

    names: tuple[str, ...]
    now_ms: Callable[[], int]
    new_id: Callable[[], str]
    accepted: Callable[[str, Message], None]
    waiting: dict[str, list[Message]] = field(default_factory=dict)
    sent: dict[str, list[Message]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.waiting = {name: [] for name in self.names}
        self.sent = {name: [] for name in self.names}

    def save(self) -> Any:
        """Return a copy of everything, for `restore`."""
        waiting = {
            name: [(message, message.visible_at, message.receives) for message in found]
            for name, found in self.waiting.items()
        }
        return waiting, {name: list(found) for name, found in self.sent.items()}

    def restore(self, saved: Any) -> None:
        """Return to what was saved."""
        waiting, sent = saved
        for found in waiting.values():
            for message, message.visible_at, message.receives in found:  # noqa: B007 - sets the fields of the message
                pass
        self.waiting = {name: [message for message, _, __ in found] for name, found in waiting.items()}
        self.sent = {name: list(found) for name, found in sent.items()}

    def call(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        """Answer one request. Raises Refused."""
        queue = request["QueueUrl"].rsplit("/", 1)[-1]
        if queue not in self.waiting:
            raise Refused("QueueDoesNotExist", "The specified queue does not exist.")
        match operation:
            case "SendMessage":
                return self.put(queue, request)
            case "SendMessageBatch":
                return _each(request["Entries"], lambda entry: self.put(queue, entry))
            case "ChangeMessageVisibility":
                return self.change_visibility(queue, request)
            case "ChangeMessageVisibilityBatch":
                return _each(request["Entries"], lambda entry: self.change_visibility(queue, entry))
        raise Unmodelled(f"SQS {operation}")

    def put(self, queue: str, request: dict[str, Any]) -> dict[str, Any]:
        """Accept a message."""
        body = request["MessageBody"]
        if not 1 <= len(body.encode()) <= MESSAGE_LIMIT_BYTES:
            raise Refused("InvalidParameterValue", "message length")
        message = Message(
            id=self.new_id(),
            body=body,
            attributes=request.get("MessageAttributes", {}),
            system=request.get("MessageSystemAttributes", {}),
            visible_at=self.now_ms() + 1000 * request.get("DelaySeconds", 0),
        )
        self.waiting[queue].append(message)
        self.sent[queue].append(message)
        self.accepted(queue, message)
        return {"MessageId": message.id}

    def change_visibility(self, queue: str, request: dict[str, Any]) -> dict[str, Any]:
        """Set when a message in flight comes back, counted from now; an older receipt has no say any more."""
        seconds = request["VisibilityTimeout"]
        if not 0 <= seconds <= MAX_VISIBILITY_S:
            raise Refused("InvalidParameterValue", "VisibilityTimeout")
        message = self.by_receipt(queue, request["ReceiptHandle"])
        if message is None:
            raise Refused("ReceiptHandleIsInvalid", "The receipt handle has expired")
        message.visible_at = self.now_ms() + 1000 * seconds
        return {}

    def by_receipt(self, queue: str, receipt: str) -> Message | None:
        """The message of a receipt, if it is the newest one."""
        return next((message for message in self.waiting[queue] if message.receipt == receipt), None)

    def receive(self, queue: str, visibility_s: float, limit: int) -> list[Message]:
        """What the event source mapping does: take visible messages, oldest first."""
        taken = [message for message in self.waiting[queue] if message.visible_at <= self.now_ms()][:limit]
        for message in taken:
            message.receives += 1
            message.visible_at = self.now_ms() + int(visibility_s * 1000)
        return taken

    def delete(self, queue: str, receipt: str) -> None:
        """Acknowledge; an older receipt deletes nothing."""
        message = self.by_receipt(queue, receipt)
        if message is not None:
            self.waiting[queue].remove(message)

    def next_visible_ms(self, queue: str) -> int | None:
        """When the next message of a queue may be received; None of an empty one."""
        return min((message.visible_at for message in self.waiting[queue]), default=None)


def _each(entries: list[dict[str, Any]], one: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    answer: dict[str, Any] = {"Successful": [], "Failed": []}
    for entry in entries:
        try:
            answer["Successful"].append({"Id": entry["Id"], **one(entry)})
        except Refused as refused:
            answer["Failed"].append({"Id": entry["Id"], "Code": refused.code, "SenderFault": True})
    return answer


@dataclass(frozen=True)
class Mail:
    """A mail that SES took. `by`: who called."""

    by: str
    request: dict[str, Any]

    @cached_property
    def digest(self) -> bytes:
        """A digest of its content, for comparing states."""
        return digest(repr((self.by, self.request)).encode())


@dataclass
class Rest:
    """S3's objects by bucket and key, and SES's mails in order. `by` names who calls."""

    by: Callable[[], str]
    new_id: Callable[[], str]
    objects: dict[tuple[str, str], bytes] = field(default_factory=dict)
    mails: list[Mail] = field(default_factory=list)

    def save(self) -> Any:
        """Return a copy of everything, for `restore`."""
        return dict(self.objects), list(self.mails)

    def restore(self, saved: Any) -> None:
        """Return to what was saved."""
        objects, mails = saved
        self.objects, self.mails = dict(objects), list(mails)

    def put_object(self, bucket: str, key: str, body: bytes) -> None:
        """PutObject: the last one stays."""
        self.objects[bucket, key] = body

    def send_email(self, request: dict[str, Any]) -> dict[str, Any]:
        """SESv2 SendEmail."""
        self.mails.append(Mail(self.by(), request))
        return {"MessageId": self.new_id()}
