"""Idempotency keys by Stripe's rules: https://docs.stripe.com/api/idempotent_requests

The sandbox stores the first answer of an endpoint that began to execute, a decline or a 500 included. The answer is
replayed for a day. Requests that are refused earlier (wrong parameters, 409, 429) leave no answer. All POST requests
share one set of keys.

One transaction stores the answer together with the effect. So a claim without an answer has had no effect. Stripe does
not document how long a key stays in flight after its worker has died. Here the claim ends when Lambda would have ended
the worker, plus a margin for clock skew. After that, the same request may claim the key again.
"""

import hashlib
import json
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from functions.payment_sandbox import host
from functions.payment_sandbox.errors import ApiError, InvalidRequest, KeyInUse, KeyOfOtherRequest
from functions.payment_sandbox.store import LedgerWrite, ledger_table, primary_key, transact
from functions.payment_sandbox.wire import Answer, Request

KEYS = "idempotency_key"
LIFE_S = 24 * 3600
SKEW_S = 1.0

_CLAIM_IS_OPEN = "claimed_by = :owner AND attribute_not_exists(answer)"


@dataclass(frozen=True)
class KeyClaim:
    """A key in flight. `owner` differs for every attempt."""

    key: str
    owner: str


def answer_once(request: Request, execute: Callable[[KeyClaim | None], Answer]) -> Answer:
    """Execute a request, or replay the stored answer. `execute` must store its answer with `answer_writes`."""
    if request.idempotency_key is None:
        return execute(None)
    if not 1 <= len(request.idempotency_key) <= 255:
        raise InvalidRequest("Idempotency keys have 1 to 255 characters.")
    claim = KeyClaim(request.idempotency_key, secrets.token_hex(16))
    stored = _claim_key(claim, request)
    if stored:
        return stored
    try:
        return execute(claim)
    except Exception as error:
        if isinstance(error, ApiError) and error.stored:
            transact(answer_writes(claim, error.answer))
        else:
            _free_key(claim)
        raise


def answer_writes(claim: KeyClaim | None, answer: Answer, in_flight_until: float = 0) -> list[LedgerWrite]:
    """Return the writes that store an answer under the claimed key: none if the request has no key.

    The writes fail if another attempt has taken over the key. `in_flight_until`: epoch seconds until which the answer
    has not reached the caller, so that a repeated request gets a 409.
    """
    if claim is None:
        return []
    update = {
        "TableName": ledger_table(),
        "Key": primary_key(KEYS, claim.key),
        "UpdateExpression": "SET answer = :answer, in_flight_until = :until",
        "ConditionExpression": _CLAIM_IS_OPEN,
        "ExpressionAttributeValues": {
            ":answer": {"S": json.dumps({"status": answer.status, "body": answer.body})},
            ":until": {"N": _to_ms(in_flight_until)},
            ":owner": {"S": claim.owner},
        },
    }
    return [LedgerWrite({"Update": update}, error=KeyInUse)]


def prune(deadline: float) -> tuple[int, bool]:
    """Delete all keys that have an answer, as Stripe does after a day. Keys in flight stay.

    Stops one second before the deadline (epoch seconds). Returns the number of deleted keys, and whether keys are left.
    """
    query = {
        "TableName": ledger_table(),
        "KeyConditionExpression": "pk = :pk",
        "FilterExpression": "attribute_exists(answer)",
        "ExpressionAttributeValues": {":pk": {"S": KEYS}},
        "ProjectionExpression": "pk, sk",
        "ConsistentRead": True,
    }
    pruned = 0
    for page in host.dynamodb().get_paginator("query").paginate(**query):
        for item in page["Items"]:
            if host.now() > deadline - 1:
                return pruned, True
            host.dynamodb().delete_item(TableName=ledger_table(), Key=item)
            pruned += 1
    return pruned, False


def _claim_key(claim: KeyClaim, request: Request) -> Answer | None:
    """Claim a key. Returns None if the claim was made, or the stored answer."""
    now = host.now()
    fingerprint = hashlib.sha256(json.dumps(sorted(request.params.items())).encode()).hexdigest()
    item = primary_key(KEYS, claim.key) | {
        "claimed_by": {"S": claim.owner},
        "endpoint": {"S": request.path},
        "fingerprint": {"S": fingerprint},
        "in_flight_until": {"N": _to_ms(request.deadline + SKEW_S)},
        "expiration": {"N": str(int(now) + LIFE_S)},
    }
    try:
        host.dynamodb().put_item(
            TableName=ledger_table(),
            Item=item,
            # TTL deletes items late, so the condition compares their age. Only the same request may take over a claim.
            ConditionExpression="attribute_not_exists(pk) OR expiration <= :now OR (attribute_not_exists(answer)"
            " AND in_flight_until <= :now_ms AND endpoint = :endpoint AND fingerprint = :fingerprint)",
            ExpressionAttributeValues={
                ":now": {"N": str(int(now))},
                ":now_ms": {"N": _to_ms(now)},
                ":endpoint": item["endpoint"],
                ":fingerprint": item["fingerprint"],
            },
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    except host.dynamodb().exceptions.TransactionConflictException as conflict:
        raise KeyInUse from conflict
    except host.dynamodb().exceptions.ConditionalCheckFailedException as refused:
        return _stored_answer(refused.response["Item"], item, now)
    return None


def _stored_answer(existing: dict[str, Any], item: dict[str, Any], now: float) -> Answer:
    """Return the answer to replay. Raises if the key is in flight or belongs to another request."""
    if existing["endpoint"] != item["endpoint"]:
        raise KeyOfOtherRequest("endpoint")
    if existing["fingerprint"] != item["fingerprint"]:
        raise KeyOfOtherRequest("parameters")
    if "answer" not in existing or int(existing["in_flight_until"]["N"]) > int(_to_ms(now)):
        raise KeyInUse
    stored = json.loads(existing["answer"]["S"])
    return Answer(stored["status"], stored["body"], replayed=True)


def _free_key(claim: KeyClaim) -> None:
    """Delete a claim after an attempt without effect. The condition fails if the attempt stored an answer."""
    exceptions = host.dynamodb().exceptions
    # If DynamoDB refuses, another attempt owns the key, or the key is part of a transaction and its claim will lapse.
    with suppress(exceptions.ConditionalCheckFailedException, exceptions.TransactionConflictException):
        host.dynamodb().delete_item(
            TableName=ledger_table(),
            Key=primary_key(KEYS, claim.key),
            ConditionExpression=_CLAIM_IS_OPEN,
            ExpressionAttributeValues={":owner": {"S": claim.owner}},
        )


def _to_ms(epoch_s: float) -> str:
    """Convert epoch seconds to epoch milliseconds in DynamoDB's form of a number."""
    return str(int(epoch_s * 1000))
