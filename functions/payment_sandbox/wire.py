"""Requests and answers as a function URL carries them (payload format 2.0), with Stripe's form bodies.

https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html
"""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

# The largest form of an endpoint has 50 metadata entries of 540 characters. The limits bound the work on one request.
LIMIT_BYTES = 64 * 1024
MAX_FIELDS = 100


@dataclass(frozen=True)
class Request:
    """A parsed request. Parameters keep their bracketed names (`metadata[order_id]`), and all values are text."""

    method: str
    path: str
    params: Mapping[str, str]
    idempotency_key: str | None
    deadline: float  # epoch seconds at which Lambda ends the worker


@dataclass(frozen=True)
class Answer:
    """A status and a JSON body. `replayed`: the answer was stored by an earlier request."""

    status: int
    body: dict[str, Any]
    replayed: bool = False


def authorization_of(event: Mapping[str, Any]) -> str:
    """Return the Authorization header of a function URL's event, or an empty text. The body is not read."""
    return _headers(event).get("authorization", "")


def parse_request(event: Mapping[str, Any], deadline: float) -> Request:
    """Parse the event of a function URL. `deadline`: epoch seconds at which Lambda ends the worker.

    Raises ValueError if the body is not a form, has more than LIMIT_BYTES bytes or more than MAX_FIELDS fields.
    """
    method = event["requestContext"]["http"]["method"]
    form = event.get("rawQueryString", "") if method in ("GET", "DELETE") else _decode_body(event)
    if len(form) > LIMIT_BYTES:
        raise ValueError(f"more than {LIMIT_BYTES} bytes of parameters")
    return Request(
        method=method,
        path=event["rawPath"],
        params=dict(parse_qsl(form, keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)),
        idempotency_key=_headers(event).get("idempotency-key") if method == "POST" else None,
        deadline=deadline,
    )


def _headers(event: Mapping[str, Any]) -> dict[str, str]:
    return {name.lower(): value for name, value in event.get("headers", {}).items()}


def _decode_body(event: Mapping[str, Any]) -> str:
    body: str = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return body
    if len(body) > 2 * LIMIT_BYTES:  # base64 turns three bytes into four characters
        raise ValueError(f"more than {LIMIT_BYTES} bytes of parameters")
    try:
        return base64.b64decode(body, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError("the body is neither text nor base64 of text") from error


def to_lambda(answer: Answer, request_id: str) -> dict[str, Any]:
    """Format an answer as the result of the Lambda function."""
    headers = {"Content-Type": "application/json", "Request-Id": request_id}
    if answer.replayed:
        headers["Idempotent-Replayed"] = "true"
    return {"statusCode": answer.status, "headers": headers, "body": json.dumps(answer.body, indent=2)}
