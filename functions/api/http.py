"""One HTTP request and its answer, payload format 2.0.

Powertools' resolver does this too, for every kind of API there is: to import it costs a cold start half of what
boto3 costs, and we have two routes (docs/performance.md).
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
"""

from collections.abc import Mapping
from typing import Any

import msgspec


class Request(msgspec.Struct, frozen=True):
    """As much of Lambda's event as is used here. Header names are lower case; `iam` is what the authoriser found."""

    id: str
    method: str
    path: str
    headers: Mapping[str, str]
    body: str
    is_base64: bool
    iam: Mapping[str, Any]


class Response(msgspec.Struct, frozen=True):
    """An answer with a body."""

    status: int
    content_type: str
    body: str
    headers: Mapping[str, str] = {}

    def to_lambda(self, **more: str) -> dict[str, Any]:
        """As Lambda gives it to the API, with `more` headers."""
        headers = {"Content-Type": self.content_type, **self.headers, **more}
        return {"statusCode": self.status, "headers": headers, "body": self.body, "isBase64Encoded": False}


def request_of(event: Mapping[str, Any]) -> Request:
    """Raises KeyError for what no HTTP API sends."""
    context = event["requestContext"]
    return Request(
        id=context["requestId"],
        method=context["http"]["method"],
        path=event["rawPath"],
        headers={name.lower(): value for name, value in event.get("headers", {}).items()},
        body=event.get("body") or "",
        is_base64=event.get("isBase64Encoded", False),
        iam=(context.get("authorizer") or {}).get("iam") or {},
    )
