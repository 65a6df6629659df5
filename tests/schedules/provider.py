"""The payment provider: the repository's own sandbox, its ledger in the model, reached without a socket.

To the explorer a request to it is one step; that its inside withstands concurrency is for the sandbox's own tests.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from requests.structures import CaseInsensitiveDict

from functions.payment_sandbox import handler as sandbox
from functions.payment_sandbox import host, keys, store
from functions.payment_sandbox.errors import InternalError
from tests.harness.http_lambda import function_url_event
from tests.harness.interceptor import Context, FakeClock
from tests.harness.provider_connection import CALLS
from tests.schedules.dynamodb import Key
from tests.schedules.expressions import Item
from tests.schedules.handler_runs import Thread
from tests.schedules.model import Answer, Call, Model

SANDBOX_TIMEOUT_S = 5.0
ANSWERS = 20_000  # recorded at a time: then the record begins anew, so that the memory suffices
_open_period = store.open_period.__wrapped__


class TooLate(BaseException):
    """The answer comes after the caller has given up."""


class _Gone(BaseException):
    """The provider's worker is gone, and the answer with it."""


def put_in_place(patch: pytest.MonkeyPatch, clock: FakeClock) -> None:
    """The sandbox on the explorer's time."""

    def wait(_: float) -> None:
        raise TooLate

    def die() -> None:
        raise _Gone

    patch.setattr(store, "open_period", _open_period)
    patch.setattr(host, "now", lambda: clock.now_ms() / 1000)
    patch.setattr(host, "wait", wait)
    patch.setattr(host, "die", die)


def ask(call: Call, clock: FakeClock) -> Answer:
    """Let the sandbox answer. Raises TooLate."""
    event = function_url_event(call.operation.partition(" ")[0], call.url, dict(call.headers), call.raw)
    try:
        answer = sandbox.handler(event, Context(clock, SANDBOX_TIMEOUT_S))
    except _Gone:
        answer = {"statusCode": 502, "headers": {}, "body": '{"message": "Internal Server Error"}'}
    return Answer(answer["statusCode"], answer["body"].encode(), tuple(answer["headers"].items()))


class Answers:
    """The sandbox's answers. Each request is answered once in each state of the ledger, and then from the record."""

    def __init__(self) -> None:
        self._recorded: dict[object, tuple[Answer | None, Mapping[Key, Item | None], Mapping[str, bytes], int]] = {}

    def ask(self, call: Call, clock: FakeClock, model: Model, thread: Thread) -> Answer | None:
        """Apply a request of a thread to the ledger. Returns None if the answer comes too late."""
        tables = model.tables
        request = (call.operation, call.url, call.raw, call.headers)
        asked = (request, clock.ms, tables.sums["ledger"], thread.name, thread.ids)
        if asked in self._recorded:
            answer, changes, tokens, ids = self._recorded[asked]
            for key, item in changes.items():
                tables.place("ledger", key, item)
            for token, wanted in tokens.items():
                tables.use_token(token, wanted)
            thread.ids = ids
            return answer
        before, tokens_before = dict(tables.items["ledger"]), set(tables.tokens)
        try:
            answer = ask(call, clock)
        except TooLate:
            answer = None
        ledger = tables.items["ledger"]
        changes = {key: ledger.get(key) for key in before | ledger if ledger.get(key) is not before.get(key)}
        tokens = {token: wanted for token, (_, wanted) in tables.tokens.items() if token not in tokens_before}
        if len(self._recorded) > ANSWERS:
            self._recorded.clear()
        self._recorded[asked] = answer, changes, tokens, thread.ids
        return answer


def with_other_fields(answer: Answer, fields: Mapping[str, Any]) -> Answer:
    """The answer with these fields instead, if the request succeeded."""
    if answer.status != HTTPStatus.OK:
        return answer
    return replace(answer, content=json.dumps(json.loads(answer.content) | fields).encode())


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


def half(call: Call, clock: FakeClock, model: Model) -> Answer:
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
        return ask(call, clock)
    finally:
        model.tables.call = whole  # type: ignore[method-assign]


def forget_keys(model: Model) -> None:
    """As Stripe does after a day: those that have an answer."""
    ledger = model.tables.items["ledger"]
    for kind, key in [key for key, item in ledger.items() if key[0] == "idempotency_key" and "answer" in item]:
        model.tables.call("DeleteItem", {"TableName": "ledger", "Key": {"pk": {"S": kind}, "sk": {"S": key}}})


def throttled() -> Answer:
    """429, nothing done: https://docs.stripe.com/rate-limits"""
    error = {"type": "invalid_request_error", "code": "rate_limit", "message": "Too many requests."}
    return Answer(429, json.dumps({"error": error}).encode())


def refused(error: Mapping[str, Any]) -> Answer:
    """400, nothing done."""
    body = {"error": {"type": "invalid_request_error", "message": "no", **error}}
    return Answer(400, json.dumps(body).encode())


def call_to(method: str, url: str, headers: Mapping[str, Any], body: Any) -> Call:
    """Return a request of the Stripe SDK as the explorer handles it."""
    raw = body if isinstance(body, bytes) else (body or "").encode()
    named = tuple((name, str(value)) for name, value in headers.items())
    return Call("provider", f"{method} {urlsplit(url).path}", {}, raw, url, named)


def response(request: requests.PreparedRequest, answer: Answer) -> requests.Response:
    """Return an answer as requests reads it off the socket."""
    it = requests.Response()
    it.status_code = answer.status
    it.headers = CaseInsensitiveDict(answer.headers)
    it._content = answer.content
    it.request, it.url = request, str(request.url)
    return it
