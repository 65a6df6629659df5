"""The ledger table. Its keys are `pk` and `sk` (both S). It has no index, and every read is strongly consistent.

    pk                         sk          attributes
    payment_intent#<period>    pi_...      body (S, JSON), revision (N)
    charge#<period>            ch_...      body (S, JSON): the ledger entry, which never changes
    charge_of#<intent id>      ch_...      a copy of the entry, so that the charges of one intent are one small query
    payment_intent_period      <period>    none: at least one intent was created in this period
    charge_period              <period>    none: at least one charge was created in this period
    idempotency_key            <key>       see keys.py; `expiration` (N, epoch seconds) is the table's TTL attribute
    misbehaved#<order id>      -           fault (S): the fault that the order has had

Ids sort by creation time. Objects are partitioned by kind and by the period of their creation. So a list, newest first,
is one query of the table for each period that the list touches. Lists are never behind, and the cost of a page does not
grow with the ledger. One partition of each kind takes all writes of a period, at most 1,000 write units a second.
"""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from functions.payment_sandbox import host
from functions.payment_sandbox.errors import ApiError, LockTimeout
from functions.payment_sandbox.objects import JsonObject

INTENTS = "payment_intent"
CHARGES = "charge"
# An id's time has 14 hexadecimal digits, in microseconds. The first 8 name the period: 16**6 microseconds, 17 s.
PERIOD_DIGITS = 8


@dataclass(frozen=True)
class LedgerWrite:
    """One write of a transaction. `error`: what `transact` raises if the write's condition is false."""

    request: dict[str, Any]
    error: Callable[[], ApiError] = LockTimeout


@dataclass(frozen=True)
class StoredIntent:
    """An intent as it was read."""

    intent: JsonObject
    revision: int


def ledger_table() -> str:
    """Return the name of the ledger table."""
    return os.environ["LEDGER_TABLE"]


def primary_key(pk: str, sk: str) -> dict[str, Any]:
    """Return a primary key in DynamoDB's form."""
    return {"pk": {"S": pk}, "sk": {"S": sk}}


def partition_of(kind: str, id_: str) -> str:
    """Return the partition of an object."""
    return f"{kind}#{_period_of(id_)}"


def charges_partition(intent_id: str) -> str:
    """Return the partition with the charges of one intent."""
    return f"charge_of#{intent_id}"


def get_item(pk: str, sk: str) -> dict[str, Any] | None:
    """Read an item. Returns None if there is none."""
    if not 1 <= len(sk.encode()) <= 1024:
        return None  # DynamoDB allows no such key and would refuse the request
    response = host.dynamodb().get_item(TableName=ledger_table(), Key=primary_key(pk, sk), ConsistentRead=True)
    item: dict[str, Any] | None = response.get("Item")
    return item


def get_object(kind: str, id_: str) -> dict[str, Any] | None:
    """Read the item of an object. Returns None if there is none."""
    return get_item(partition_of(kind, id_), id_)


def get_intent(id_: str) -> StoredIntent | None:
    """Read an intent. Returns None if there is none."""
    item = get_object(INTENTS, id_)
    return StoredIntent(json.loads(item["body"]["S"]), int(item["revision"]["N"])) if item else None


def new_intent_write(intent: JsonObject) -> LedgerWrite:
    """Return the write that stores a new intent."""
    open_period(ledger_table(), INTENTS, _period_of(intent["id"]))
    pk = partition_of(INTENTS, intent["id"])
    return new_item_write(pk, intent["id"], body={"S": json.dumps(intent)}, revision={"N": "1"})


def changed_intent_write(before: StoredIntent, intent: JsonObject) -> LedgerWrite:
    """Return the write that stores a changed intent.

    The write fails if the intent has changed since it was read. So two confirmations make one charge.
    """
    attributes = {"body": {"S": json.dumps(intent)}, "revision": {"N": str(before.revision + 1)}}
    condition = {
        "ConditionExpression": "revision = :before",
        "ExpressionAttributeValues": {":before": {"N": str(before.revision)}},
    }
    item = primary_key(partition_of(INTENTS, intent["id"]), intent["id"]) | attributes
    return LedgerWrite({"Put": {"TableName": ledger_table(), "Item": item, **condition}})


def new_charge_writes(charge: JsonObject) -> list[LedgerWrite]:
    """Return the writes that enter a charge into the ledger."""
    open_period(ledger_table(), CHARGES, _period_of(charge["id"]))
    partitions = (partition_of(CHARGES, charge["id"]), charges_partition(charge["payment_intent"]))
    return [new_item_write(pk, charge["id"], body={"S": json.dumps(charge)}) for pk in partitions]


def new_item_write(pk: str, sk: str, **attributes: Any) -> LedgerWrite:
    """Return a write that fails if the item exists."""
    item = primary_key(pk, sk) | attributes
    condition = "attribute_not_exists(pk)"
    return LedgerWrite({"Put": {"TableName": ledger_table(), "Item": item, "ConditionExpression": condition}})


def transact(writes: list[LedgerWrite]) -> None:
    """Do all writes or none.

    Raises the `error` of the first write whose condition is false, or LockTimeout if another attempt can succeed.
    """
    try:
        host.dynamodb().transact_write_items(TransactItems=[write.request for write in writes])
    except host.dynamodb().exceptions.TransactionCanceledException as cancelled:
        # DynamoDB lists one reason for each write, in the same order. If no condition was false, the transaction met a
        # conflict or was throttled.
        for write, reason in zip(writes, cancelled.response["CancellationReasons"], strict=True):
            if reason["Code"] == "ConditionalCheckFailed":
                raise write.error() from cancelled
        raise LockTimeout from cancelled


def newest_first(kind: str, after: str | None) -> Iterator[JsonObject]:
    """Yield all objects of a kind, the newest first. `after`: the id of the object that precedes the first one."""
    for opened in _query_descending(_periods_partition(kind), "<=", _period_of(after) if after else None):
        yield from newest_in_partition(f"{kind}#{opened['sk']['S']}", after)


def newest_in_partition(pk: str, after: str | None) -> Iterator[JsonObject]:
    """Yield the objects of one partition in the same order."""
    return (json.loads(item["body"]["S"]) for item in _query_descending(pk, "<", after))


def _query_descending(pk: str, comparison: str, end: str | None) -> Iterator[dict[str, Any]]:
    query: dict[str, Any] = {
        "TableName": ledger_table(),
        "KeyConditionExpression": "pk = :pk" + (f" AND sk {comparison} :end" if end else ""),
        "ExpressionAttributeValues": {":pk": {"S": pk}} | ({":end": {"S": end}} if end else {}),
        "ScanIndexForward": False,
        "ConsistentRead": True,
        "Limit": 101,  # the largest page, and one item more to learn whether another page follows
    }
    for page in host.dynamodb().get_paginator("query").paginate(**query):
        yield from page["Items"]


def _period_of(id_: str) -> str:
    return id_.partition("_")[2][:PERIOD_DIGITS]


def _periods_partition(kind: str) -> str:
    return f"{kind}_period"


@lru_cache(maxsize=2)  # one entry for each kind
def open_period(table_name: str, kind: str, period: str) -> None:
    """Record that a period contains objects, before the first object is stored. Each worker does this once a period.

    A list that begins after an object is stored therefore finds the object's period.
    """
    host.dynamodb().put_item(TableName=table_name, Item=primary_key(_periods_partition(kind), period))
