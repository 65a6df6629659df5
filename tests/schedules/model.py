"""The store model behind real boto3 clients: requests are read off the wire, answers become real HTTP responses."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

import msgspec
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders

from tests.schedules.dynamodb import Change, Refused, Schema, Tables
from tests.schedules.expressions import Unmodelled
from tests.schedules.services import Message, Queues, Rest

SCHEMAS = {
    "idempotency": Schema(("id",)),
    "orders": Schema(("order_id",), {"open-orders": ("open_shard", "open_since")}),
    "ledger": Schema(("pk", "sk")),
}
QUEUES = ("orders", "payments", "emails", "orders-dlq", "payments-dlq", "emails-dlq", "relay-dlq")
QUEUE_URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/"
SECRET = "sk_test_model"

Headers: TypeAlias = tuple[tuple[str, str], ...]

_JSON: Headers = (("Content-Type", "application/x-amz-json-1.0"),)
_XML: Headers = (("Content-Type", "application/xml"),)


@dataclass(frozen=True)
class Call:
    """One request, read off the wire."""

    service: str
    operation: str
    body: dict[str, Any]
    raw: bytes
    url: str
    headers: Headers = ()  # of a request to the payment provider


@dataclass(frozen=True)
class Answer:
    """The answer to one request, as it goes over the wire."""

    status: int
    content: bytes
    headers: Headers = ()

    @property
    def said(self) -> str:
        """The answer as text."""
        return f"{self.status} {self.content.decode()}"


class _Body:
    """What botocore reads a raw response from."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def stream(self, **_: Any) -> Any:
        yield self.content
        self.content = b""


class Model:
    """Everything that the functions reach over the network, but for the payment provider."""

    def __init__(
        self,
        now_ms: Callable[[], int],
        by: Callable[[], str],
        new_id: Callable[[], str],
        applied: Callable[[list[Change]], None],
        accepted: Callable[[str, Message], None],
    ) -> None:
        self.tables = Tables(SCHEMAS, now_ms, applied)
        self.queues = Queues(QUEUES, now_ms, new_id, accepted)
        self.rest = Rest(by, new_id)

    def save(self) -> Any:
        """Return a copy of everything, for `restore`."""
        return self.tables.save(), self.queues.save(), self.rest.save()

    def restore(self, saved: Any) -> None:
        """Return to what was saved."""
        tables, queues, rest = saved
        self.tables.restore(tables)
        self.queues.restore(queues)
        self.rest.restore(rest)

    def answer(self, call: Call) -> Answer:
        """Apply one request."""
        try:
            match call.service:
                case "dynamodb":
                    return answered(self.tables.call(call.operation, call.body))
                case "sqs":
                    return answered(self.queues.call(call.operation, call.body))
                case "sesv2" if call.operation == "SendEmail":
                    return answered(self.rest.send_email(call.body))
                case "s3" if call.operation == "PutObject":
                    bucket, key = _bucket_and_key(call.url)
                    self.rest.put_object(bucket, key, call.raw)
                    return Answer(200, b"", _XML)
                case "secrets-manager" if call.operation == "GetSecretValue":
                    return answered({"SecretString": SECRET})
        except Refused as refused:
            return refusal(call, refused.code, **refused.body)
        raise Unmodelled(f"{call.service} {call.operation}")


def read(event_name: str, request: AWSPreparedRequest) -> Call:
    """A request as it comes to botocore's `before-send` event: `before-send.<service>.<operation>`."""
    _, service, operation = event_name.split(".")
    content: Any = request.body
    if hasattr(content, "read"):
        content = content.read()
    raw = content if isinstance(content, bytes) else str(content or "").encode()
    headers: Any = request.headers
    if headers.get("Content-Encoding") == b"aws-chunked":
        size, _, chunk = raw.partition(b"\r\n")  # one chunk, then a checksum
        raw = chunk[: int(size, 16)]
    body = {} if service == "s3" else json.loads(raw or b"{}")
    return Call(service, operation, body, raw, request.url)


def answered(body: dict[str, Any]) -> Answer:
    """Success."""
    return Answer(200, msgspec.json.encode(body), _JSON)


def refusal(call: Call, code: str, status: int = 400, **body: Any) -> Answer:
    """An error in the service's own spelling."""
    if call.service == "s3":
        return Answer(status, f"<Error><Code>{code}</Code></Error>".encode(), _XML)
    headers = (("Content-Type", "application/json"), ("x-amzn-errortype", code))
    return Answer(status, msgspec.json.encode({"__type": f"aws#{code}", **body}), headers)


def response(call: Call, answer: Answer) -> AWSResponse:
    """Return an answer as botocore reads it off the socket."""
    return AWSResponse(call.url, answer.status, HTTPHeaders.from_dict(dict(answer.headers)), _Body(answer.content))


def _bucket_and_key(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.netloc.split(".")[0], unquote(parts.path.lstrip("/"))
