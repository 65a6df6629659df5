"""HTTP as a function URL speaks it (payload format 2.0), and Stripe's form bodies in it.

https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html
"""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

# Stripe's largest form here is 50 metadata entries of 540 characters. The limit bounds the work on one request.
LIMIT_BYTES = 64 * 1024
MAX_FIELDS = 100


@dataclass(frozen=True)
class Request:
    """A request. Parameters keep their bracketed names (`metadata[order_id]`) and are text, as they travelled."""

    method: str
    path: str
    params: Mapping[str, str]
    idempotency_key: str | None
    deadline: float  # epoch seconds at which the platform ends the worker


@dataclass(frozen=True)
class Answer:
    """A status and a JSON body. `replayed`: an earlier request earned it."""

    status: int
    body: dict[str, Any]
    replayed: bool = False


def authorization(event: Mapping[str, Any]) -> str:
    """The Authorization header of a function URL's event, empty if there is none. The body is not read."""
    return _headers(event).get("authorization", "")


def read(event: Mapping[str, Any], deadline: float) -> Request:
    """Read the request in a function URL's event.

    Raises ValueError for a body that is not a form, has more than LIMIT_BYTES bytes or more than MAX_FIELDS fields.
    """
    method = event["requestContext"]["http"]["method"]
    form = event.get("rawQueryString", "") if method in ("GET", "DELETE") else _body(event)
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


def _body(event: Mapping[str, Any]) -> str:
    body: str = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return body
    if len(body) > 2 * LIMIT_BYTES:  # Base64 makes four characters of three bytes
        raise ValueError(f"more than {LIMIT_BYTES} bytes of parameters")
    try:
        return base64.b64decode(body, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError("the body is neither text nor base64 of it") from error


def response(answer: Answer, request_id: str) -> dict[str, Any]:
    """What the function URL turns into HTTP."""
    headers = {"Content-Type": "application/json", "Request-Id": request_id}
    if answer.replayed:
        headers["Idempotent-Replayed"] = "true"
    return {"statusCode": answer.status, "headers": headers, "body": json.dumps(answer.body, indent=2)}
