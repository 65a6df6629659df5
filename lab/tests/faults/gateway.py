"""AWS behind a real socket: JSON requests are carried out by moto through the test's own clients.

moto answers before botocore would send, so no request would pass the hooks, and a subprocess cannot reach it
at all.
"""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from botocore import xform_name
from botocore.exceptions import ClientError

SERVICES = {"DynamoDB_20120810": "dynamodb", "AmazonSQS": "sqs", "secretsmanager": "secretsmanager"}


@dataclass
class Gateway:
    """Keeps what it received: operation and body of each request but those to the table of faults."""

    client: Callable[[Any], Any]  # by the service's name
    queues: dict[str, str]
    received: list[tuple[str, str]] = field(default_factory=list)

    def handler(self, event: dict[str, Any], _: Any) -> dict[str, Any]:
        """A request as tests/harness/http_lambda.py hands it over."""
        service, operation = event["headers"]["x-amz-target"].split(".")
        body = base64.b64decode(event["body"]).decode()
        request = json.loads(body)
        if request.get("TableName") != "faults":
            self.received.append((operation, body))
        if "QueueUrl" in request:
            request["QueueUrl"] = self.queues[request["QueueUrl"].rsplit("/", 1)[1]]
        try:
            answer = getattr(self.client(SERVICES[service]), xform_name(operation))(**request)
        except ClientError as error:
            refusal = {**error.response, "__type": error.response["Error"]["Code"]}
            return _answer(error.response["ResponseMetadata"]["HTTPStatusCode"], refusal)
        return _answer(200, answer)


def _answer(status: int, content: dict[str, Any]) -> dict[str, Any]:
    content = {name: value for name, value in content.items() if name not in ("ResponseMetadata", "Error")}
    body = json.dumps(content, default=lambda time: time.timestamp())
    return {"statusCode": status, "body": body, "headers": {"Content-Type": "application/x-amz-json-1.0"}}
