"""Idempotency keys, by Stripe's rules: https://docs.stripe.com/api/idempotent_requests

The first answer that came of executing a request is kept under its key for a day and replayed, a decline or a 500
included; what was refused before (parameters, 409, 429) is not. Keys are one space for the account and all POSTs.

The answer is stored in the same transaction as the effect, so a claim without an answer has done nothing, whatever
became of its worker. Stripe does not say how long a key stays in flight after a worker's death; here until the platform
would have ended the worker anyway, plus a margin for clocks. Then the same request may claim it again.
"""

import hashlib
import json
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from functions.payment_sandbox import host
from functions.payment_sandbox.errors import ApiError, Invalid, KeyInUse, KeyReused
from functions.payment_sandbox.store import Write, dynamodb, key, table, transact
from functions.payment_sandbox.wire import Answer, Request

KEYS = "idempotency_key"
LIFE_S = 24 * 3600
SKEW_S = 1.0


@dataclass(frozen=True)
class Claim:
    """A key in flight. `owner` tells this try from every other."""

    key: str
    owner: str


def _ms(epoch_s: float) -> str:
    """Epoch milliseconds, as DynamoDB takes numbers."""
    return str(int(epoch_s * 1000))


def once(request: Request, execute: Callable[[Claim | None], Answer]) -> Answer:
    """Execute a request, or replay its answer. What executes stores its answer by means of `answered`."""
    if request.idempotency_key is None:
        return execute(None)
    if not 1 <= len(request.idempotency_key) <= 255:
        raise Invalid("Idempotency keys have 1 to 255 characters.")
    claim = Claim(request.idempotency_key, secrets.token_hex(16))
    found = _claim(claim, request)
    if found:
        return found
    try:
        return execute(claim)
    except Exception as error:
        if isinstance(error, ApiError) and error.stored:
            transact(answered(claim, error.answer))
        else:
            _release(claim)
        raise


def _claim(claim: Claim, request: Request) -> Answer | None:
    """None if the key is now ours, else the answer to replay."""
    now = host.now()
    fingerprint = hashlib.sha256(json.dumps(sorted(request.params.items())).encode()).hexdigest()
    item = key(KEYS, claim.key) | {
        "claimed_by": {"S": claim.owner},
        "endpoint": {"S": request.path},
        "fingerprint": {"S": fingerprint},
        "in_flight_until": {"N": _ms(request.deadline + SKEW_S)},
        "expiration": {"N": str(int(now) + LIFE_S)},
    }
    try:
        dynamodb().put_item(
            TableName=table(),
            Item=item,
            # TTL deletes late, so age is judged here. A claim that lapsed goes to the same request only.
            ConditionExpression="attribute_not_exists(pk) OR expiration <= :now OR (attribute_not_exists(answer)"
            " AND in_flight_until <= :now_ms AND endpoint = :endpoint AND fingerprint = :fingerprint)",
            ExpressionAttributeValues={
                ":now": {"N": str(int(now))},
                ":now_ms": {"N": _ms(now)},
                ":endpoint": item["endpoint"],
                ":fingerprint": item["fingerprint"],
            },
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    except dynamodb().exceptions.TransactionConflictException as busy:
        raise KeyInUse from busy
    except dynamodb().exceptions.ConditionalCheckFailedException as refused:
        return _judge(refused.response["Item"], item, now)
    return None


def _judge(found: dict[str, Any], mine: dict[str, Any], now: float) -> Answer:
    """The answer to replay; or why there is none."""
    if found["endpoint"] != mine["endpoint"]:
        raise KeyReused("endpoint")
    if found["fingerprint"] != mine["fingerprint"]:
        raise KeyReused("parameters")
    if "answer" not in found or int(found["in_flight_until"]["N"]) > int(_ms(now)):
        raise KeyInUse
    stored = json.loads(found["answer"]["S"])
    return Answer(stored["status"], stored["body"], replayed=True)


def answered(claim: Claim | None, answer: Answer, in_flight_until: float = 0) -> list[Write]:
    """Writes that store the answer under the key; refused if another try has taken over. Nothing without a key.

    `in_flight_until`: epoch seconds before which the caller does not have the answer, and a repeat meets a 409.
    """
    if claim is None:
        return []
    update = {
        "TableName": table(),
        "Key": key(KEYS, claim.key),
        "UpdateExpression": "SET answer = :answer, in_flight_until = :until",
        "ConditionExpression": "claimed_by = :me AND attribute_not_exists(answer)",
        "ExpressionAttributeValues": {
            ":answer": {"S": json.dumps({"status": answer.status, "body": answer.body})},
            ":until": {"N": _ms(in_flight_until)},
            ":me": {"S": claim.owner},
        },
    }
    return [Write({"Update": update}, refusal=KeyInUse)]


def _release(claim: Claim) -> None:
    """Give the key back. Harmless if the outcome is unknown: the condition fails if the answer was stored after all."""
    refused = dynamodb().exceptions
    # Refused: it is not ours to give back, or it is busy and lapses by itself.
    with suppress(refused.ConditionalCheckFailedException, refused.TransactionConflictException):
        dynamodb().delete_item(
            TableName=table(),
            Key=key(KEYS, claim.key),
            ConditionExpression="claimed_by = :me AND attribute_not_exists(answer)",
            ExpressionAttributeValues={":me": {"S": claim.owner}},
        )


def prune(deadline: float) -> tuple[int, bool]:
    """Forget every answer, as Stripe does after a day. A key that has none yet stays in flight.

    Returns how many there were, and whether some are left: it stops a second before the deadline (epoch seconds).
    """
    query = {
        "TableName": table(),
        "KeyConditionExpression": "pk = :pk",
        "FilterExpression": "attribute_exists(answer)",
        "ExpressionAttributeValues": {":pk": {"S": KEYS}},
        "ProjectionExpression": "pk, sk",
        "ConsistentRead": True,
    }
    pruned = 0
    for page in dynamodb().get_paginator("query").paginate(**query):
        for item in page["Items"]:
            if host.now() > deadline - 1:
                return pruned, True
            dynamodb().delete_item(TableName=table(), Key=item)
            pruned += 1
    return pruned, False
