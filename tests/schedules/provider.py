"""The payment provider: the repository's own sandbox, its ledger in the model, reached without a socket.

To the explorer a request to it is one step; that its inside withstands concurrency is for the sandbox's own tests.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
import requests
from requests.structures import CaseInsensitiveDict

from functions.payment_sandbox import handler as sandbox
from functions.payment_sandbox import host, keys, store
from functions.payment_sandbox.errors import InternalError
from tests.harness.http_lambda import function_url_event
from tests.harness.interceptor import Context, FakeClock
from tests.harness.provider_connection import CALLS
from tests.schedules.green_threads import current
from tests.schedules.model import Model

SANDBOX_TIMEOUT_S = 5.0
_open_period = store.open_period.__wrapped__


class _Slow(BaseException):
    """The answer comes after the caller has given up."""


class _Gone(BaseException):
    """The provider's worker is gone, and the answer with it."""


def put_in_place(patch: pytest.MonkeyPatch, clock: FakeClock) -> None:
    """The sandbox on the explorer's time."""

    def wait(_: float) -> None:
        raise _Slow

    def die() -> None:
        raise _Gone

    patch.setattr(store, "open_period", _open_period)
    patch.setattr(host, "now", lambda: clock.now_ms() / 1000)
    patch.setattr(host, "wait", wait)
    patch.setattr(host, "die", die)


def ask(request: requests.PreparedRequest, clock: FakeClock) -> requests.Response:
    """Let the sandbox answer. Raises requests' ReadTimeout where the answer comes too late."""
    headers = {name: str(value) for name, value in request.headers.items()}
    event = function_url_event(str(request.method), str(request.url), headers, str(request.body or "").encode())
    thread = current()
    thread.inside = True
    try:
        answer = sandbox.handler(event, Context(clock, SANDBOX_TIMEOUT_S))
    except _Slow as slow:
        raise requests.exceptions.ReadTimeout("the provider is slow") from slow
    except _Gone:
        answer = {"statusCode": 502, "headers": {}, "body": '{"message": "Internal Server Error"}'}
    finally:
        thread.inside = False
    return response(request, answer["statusCode"], answer["body"], answer["headers"])


def with_other_fields(answer: requests.Response, fields: Mapping[str, Any]) -> requests.Response:
    """The answer with these fields instead, if the request succeeded."""
    if answer.status_code == 200:
        answer._content = json.dumps(json.loads(answer.content) | fields).encode()
    return answer


def call_of(operation: str) -> str:
    """The name of a call: create, retrieve, confirm or cancel."""
    return next(name for route, name in CALLS.items() if re.fullmatch(route, operation))


def plant(model: Model, intent: Mapping[str, Any]) -> None:
    """Put an intent into the ledger that no worker of this run has made."""
    partition = store.partition_of(store.INTENTS, intent["id"])
    item = {**store.primary_key(partition, intent["id"]), "body": {"S": json.dumps(intent)}, "revision": {"N": "1"}}
    model.tables.call("PutItem", {"TableName": "ledger", "Item": item})


def plant_failure(model: Model, path: str, params: Mapping[str, str], key: str, expires_s: int) -> None:
    """Put a stored 500 under an idempotency key: the request began, and had no effect.

    https://docs.stripe.com/api/idempotent_requests
    """
    item = {
        **store.primary_key(keys.KEYS, key),
        "claimed_by": {"S": "an earlier attempt"},
        "endpoint": {"S": path},
        "fingerprint": {"S": hashlib.sha256(json.dumps(sorted(params.items())).encode()).hexdigest()},
        "in_flight_until": {"N": "0"},
        "expiration": {"N": str(expires_s)},
        "answer": {"S": json.dumps({"status": 500, "body": InternalError().answer.body})},
    }
    model.tables.call("PutItem", {"TableName": "ledger", "Item": item})


def half(request: requests.PreparedRequest, clock: FakeClock, model: Model) -> requests.Response:
    """The provider's worker dies after its first write, which takes the key: nothing done, and the key in flight."""
    whole = model.tables.call

    def once(operation: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = whole(operation, body)

        def gone(*_: object) -> dict[str, Any]:
            raise _Gone

        model.tables.call = gone  # type: ignore[assignment, method-assign]
        return answer

    model.tables.call = once  # type: ignore[assignment, method-assign]
    try:
        return ask(request, clock)
    finally:
        model.tables.call = whole  # type: ignore[method-assign]


def forget_keys(model: Model) -> None:
    """As Stripe does after a day: those that have an answer."""
    ledger = model.tables.items["ledger"]
    for kind, key in [key for key, item in ledger.items() if key[0] == "idempotency_key" and "answer" in item]:
        model.tables.call("DeleteItem", {"TableName": "ledger", "Key": {"pk": {"S": kind}, "sk": {"S": key}}})


def throttled(request: requests.PreparedRequest) -> requests.Response:
    """429, nothing done: https://docs.stripe.com/rate-limits"""
    error = {"type": "invalid_request_error", "code": "rate_limit", "message": "Too many requests."}
    return response(request, 429, json.dumps({"error": error}), {})


def response(request: requests.PreparedRequest, status: int, body: str, headers: dict[str, str]) -> requests.Response:
    """As requests would have read it off the socket."""
    answer = requests.Response()
    answer.status_code = status
    answer.headers = CaseInsensitiveDict(headers)
    answer._content = body.encode()
    answer.request, answer.url = request, str(request.url)
    return answer
