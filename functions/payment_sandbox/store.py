"""The ledger table: one table, keys `pk` and `sk` (both S), no index; every read is strongly consistent.

    pk                         sk          attributes
    payment_intent#<period>    pi_...      body (S, JSON), revision (N)
    charge#<period>            ch_...      body (S, JSON): the ledger, never changed
    charge_of#<intent id>      ch_...      the same entry again, so that one intent's charges are one small query
    payment_intent_period      <period>    no more: one was made in it
    charge_period              <period>    the same of charges
    idempotency_key            <key>       see keys.py; `expiration` (N, epoch s) is the table's TTL attribute
    misbehaved#<order id>      -           which fault the order has met (S)

Ids sort by time, and objects are partitioned by kind and by the period they were made in. So a list, newest first, is
queries of the table itself, one for each period that it touches: a witness is never behind, and a page costs the same
however long the ledger is. The price is one partition per kind at a time and its 1,000 write units a second: enough to
try things.
"""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from functions.payment_sandbox.errors import ApiError, Contended
from functions.payment_sandbox.objects import JsonObject
from shared.idempotency import client

INTENTS = "payment_intent"
CHARGES = "charge"
PERIOD_DIGITS = 8  # of the 14 hexadecimal digits of an id's time, in microseconds: a period is 16**6 of them, 17 s


def charges_of(intent_id: str) -> str:
    """The partition of one intent's charges."""
    return f"charge_of#{intent_id}"


@dataclass(frozen=True)
class Write:
    """One write of a transaction, and the answer if its condition does not hold."""

    request: dict[str, Any]
    refusal: Callable[[], ApiError] = Contended


@dataclass(frozen=True)
class Stored:
    """An intent as it was read."""

    intent: JsonObject
    revision: int


def dynamodb() -> Any:
    """The DynamoDB client."""
    return client("dynamodb")


def table() -> str:
    """The ledger's name."""
    return os.environ["LEDGER_TABLE"]


def key(pk: str, sk: str) -> dict[str, Any]:
    """A primary key."""
    return {"pk": {"S": pk}, "sk": {"S": sk}}


def get(pk: str, sk: str) -> dict[str, Any] | None:
    """An item, or None."""
    if not 1 <= len(sk.encode()) <= 1024:
        return None  # no key can be so; DynamoDB would refuse the question
    found = dynamodb().get_item(TableName=table(), Key=key(pk, sk), ConsistentRead=True)
    item: dict[str, Any] | None = found.get("Item")
    return item


def find(kind: str, id_: str) -> dict[str, Any] | None:
    """The item of an object, or None."""
    return get(_partition(kind, _period(id_)), id_)


def intent(id_: str) -> Stored | None:
    """An intent, or None."""
    item = find(INTENTS, id_)
    return Stored(json.loads(item["body"]["S"]), int(item["revision"]["N"])) if item else None


def add_intent(new: JsonObject) -> Write:
    """Store a new intent."""
    open_period(table(), INTENTS, _period(new["id"]))
    return put(_partition(INTENTS, _period(new["id"])), new["id"], body={"S": json.dumps(new)}, revision={"N": "1"})


def change_intent(seen: Stored, new: JsonObject) -> Write:
    """Store a changed intent, if it is still as it was seen: what makes two confirmations one charge."""
    attributes = {"body": {"S": json.dumps(new)}, "revision": {"N": str(seen.revision + 1)}}
    condition = {
        "ConditionExpression": "revision = :seen",
        "ExpressionAttributeValues": {":seen": {"N": str(seen.revision)}},
    }
    item = key(_partition(INTENTS, _period(new["id"])), new["id"]) | attributes
    return Write({"Put": {"TableName": table(), "Item": item, **condition}})


def add_charge(charge: JsonObject) -> list[Write]:
    """Enter a charge into the ledger."""
    open_period(table(), CHARGES, _period(charge["id"]))
    partitions = (_partition(CHARGES, _period(charge["id"])), charges_of(charge["payment_intent"]))
    return [put(pk, charge["id"], body={"S": json.dumps(charge)}) for pk in partitions]


def put(pk: str, sk: str, **attributes: Any) -> Write:
    """Write an item that must not be there yet."""
    item = key(pk, sk) | attributes
    return Write({"Put": {"TableName": table(), "Item": item, "ConditionExpression": "attribute_not_exists(pk)"}})


def transact(writes: list[Write]) -> None:
    """Do all of it or nothing. Raises the first refused write's own error, or Contended if it is worth another try."""
    try:
        dynamodb().transact_write_items(TransactItems=[write.request for write in writes])
    except dynamodb().exceptions.TransactionCanceledException as cancelled:
        # The reasons stand in the order of the writes; without a refusal among them it is conflict or throttling.
        for write, reason in zip(writes, cancelled.response["CancellationReasons"], strict=True):
            if reason["Code"] == "ConditionalCheckFailed":
                raise write.refusal() from cancelled
        raise Contended from cancelled


def newest_first(kind: str, before: str | None) -> Iterator[JsonObject]:
    """All objects of a kind, from the newest, or from the one before a given id."""
    for opened in _descending(_periods(kind), "<=", _period(before) if before else None):
        yield from objects(_partition(kind, opened["sk"]["S"]), before)


def objects(pk: str, before: str | None) -> Iterator[JsonObject]:
    """The objects of one partition, in the same order."""
    return (json.loads(item["body"]["S"]) for item in _descending(pk, "<", before))


def _descending(pk: str, comparison: str, end: str | None) -> Iterator[dict[str, Any]]:
    query: dict[str, Any] = {
        "TableName": table(),
        "KeyConditionExpression": "pk = :pk" + (f" AND sk {comparison} :end" if end else ""),
        "ExpressionAttributeValues": {":pk": {"S": pk}} | ({":end": {"S": end}} if end else {}),
        "ScanIndexForward": False,
        "ConsistentRead": True,
        "Limit": 101,  # the largest page and the one that tells whether there is more
    }
    for page in dynamodb().get_paginator("query").paginate(**query):
        yield from page["Items"]


def _partition(kind: str, period: str) -> str:
    return f"{kind}#{period}"


def _period(id_: str) -> str:
    return id_.partition("_")[2][:PERIOD_DIGITS]


def _periods(kind: str) -> str:
    return f"{kind}_period"


@lru_cache(maxsize=2)  # one a kind
def open_period(table_name: str, kind: str, period: str) -> None:
    """Before anything is made in it, so that a list that begins later finds it; once by each worker."""
    dynamodb().put_item(TableName=table_name, Item=key(_periods(kind), period))
