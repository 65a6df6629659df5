"""Reads of the orders table, and the writes outside transactions: the intent's id, the marks of a person and the sweep.

The writes of steps are in writes.py.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from shared.idempotency import OutgoingMessage, client, cloudevent, epoch_ms, iso

from .row import PLACED, Order, parse_row, values

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True, slots=True)
class Orders:
    """The orders table. Raises botocore's errors."""

    client: "DynamoDBClient"
    table: str

    def get(self, order_id: str) -> Order | None:
        """Return the row as it is now (strongly consistent read)."""
        answer = self.client.get_item(TableName=self.table, Key=values({"order_id": order_id}), ConsistentRead=True)
        return parse_row(answer["Item"]) if "Item" in answer else None

    def save_intent_id(self, order_id: str, intent_id: str) -> str | None:
        """Write the id of the payment intent on a placed order that has none. Only then may it be confirmed.

        Returns the id on the row, which is the only intent to confirm. It is another worker's intent if that worker
        was first. Returns None if there is no such order, if it was settled without an intent, or if a person settles
        it now.
        """
        try:
            self.client.update_item(
                TableName=self.table,
                Key=values({"order_id": order_id}),
                UpdateExpression="SET intent_id = :intent, intent_at = :now",
                ConditionExpression="#state = :placed AND attribute_not_exists(intent_id) "
                "AND attribute_not_exists(settling)",
                ExpressionAttributeNames={"#state": "state"},
                ExpressionAttributeValues=values({":intent": intent_id, ":placed": PLACED, ":now": iso(epoch_ms())}),
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            item: Any = error.response.get("Item")
            found = parse_row(item) if item else None
            return found.intent_id if found and not found.settling else None
        return intent_id

    def mark_settling(self, order_id: str, reason: str) -> Order | None:
        """Mark a placed order as declined by a person for a reason. From then on no intent is saved or confirmed.

        Returns the row with its mark. A mark that is there already keeps its reason. Returns None if there is no such
        order or it is not placed.
        """
        try:
            answer: Any = self.client.update_item(
                TableName=self.table,
                Key=values({"order_id": order_id}),
                UpdateExpression="SET settling = if_not_exists(settling, :reason)",
                ConditionExpression="#state = :placed",
                ExpressionAttributeNames={"#state": "state"},
                ExpressionAttributeValues=values({":reason": reason, ":placed": PLACED}),
                ReturnValues="ALL_NEW",
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            return None
        return parse_row(answer["Attributes"])

    def open_before(self, index: str, shard: int, epoch_s: int) -> Iterator[list[str]]:
        """Return the ids of one shard's orders that are not final and have not moved since this time (epoch seconds).

        The ids come in pages, each of which is read when it is asked for.
        """
        pages = self.client.get_paginator("query").paginate(
            TableName=self.table,
            IndexName=index,
            KeyConditionExpression="open_shard = :shard AND open_since <= :before",
            ExpressionAttributeValues=values({":shard": f"open-{shard}", ":before": epoch_s}),
            ProjectionExpression="order_id",
        )
        for page in pages:
            yield [item["order_id"]["S"] for item in page["Items"]]

    def record_sweep(self, order: Order, until_s: int) -> None:
        """Record that the order's event was sent again. The order's age counts from `until_s` (epoch seconds) on.

        An order that has moved in the meantime keeps its own mark.
        """
        try:
            self.client.update_item(
                TableName=self.table,
                Key=values({"order_id": order.order_id}),
                UpdateExpression="SET open_since = :until, sweeps = :sweeps",
                ConditionExpression="open_since = :seen",
                ExpressionAttributeValues=values(
                    {":until": until_s, ":sweeps": order.sweeps + 1, ":seen": order.open_since}
                ),
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise


def orders() -> Orders:
    """Return the table of the function's environment. Raises KeyError naming a variable that is not set."""
    return Orders(client("dynamodb"), os.environ["ORDERS_TABLE"])


def pending_messages(order: Order, routes: Mapping[str, str], now_ms: int) -> list[OutgoingMessage]:
    """Return the event that an unfinished order waits for, addressed to each queue that consumes it.

    Id and data are those of the first emission, so that sending it again is always safe. `routes`: queue URLs by event
    type, separated by spaces. A final order has no messages.
    """
    event = order.next_event
    if event is None:
        return []
    cloud_event = cloudevent(event, correlation_id=order.correlation_id, time=iso(now_ms))
    return [OutgoingMessage(url, cloud_event) for url in routes[event.type].split()]
