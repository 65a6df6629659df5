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


@dataclass(frozen=True)
class Request:
    """A request. Parameters keep their bracketed names (`metadata[order_id]`) and are text, as they travelled."""

    method: str
    path: str
    params: Mapping[str, str]
    authorization: str
    idempotency_key: str | None
    deadline: float  # epoch seconds at which the platform ends the worker


@dataclass(frozen=True)
class Answer:
    """A status and a JSON body. `replayed`: an earlier request earned it."""

    status: int
    body: dict[str, Any]
    replayed: bool = False


def read(event: Mapping[str, Any], deadline: float) -> Request:
    """The request in a function URL's event. Raises ValueError for a body that is no form."""
    method = event["requestContext"]["http"]["method"]
    headers = {name.lower(): value for name, value in event.get("headers", {}).items()}
    form = event.get("rawQueryString", "") if method in ("GET", "DELETE") else _body(event)
    return Request(
        method=method,
        path=event["rawPath"],
        params=dict(parse_qsl(form, keep_blank_values=True, errors="strict")),
        authorization=headers.get("authorization", ""),
        idempotency_key=headers.get("idempotency-key") if method == "POST" else None,
        deadline=deadline,
    )


def _body(event: Mapping[str, Any]) -> str:
    body: str = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return body
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
