"""What is read of orders, and the two writes that no transaction carries: the intent's id, and the sweep's mark."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from shared import aws
from shared.orders.row import OPEN_SHARDS, PLACED, Order, read, values

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True, slots=True)
class Orders:
    """The orders table. Raises botocore's errors."""

    client: "DynamoDBClient"
    table: str

    def get(self, order_id: str) -> Order | None:
        """The row as it is now (strongly consistent)."""
        answer = self.client.get_item(TableName=self.table, Key=values({"order_id": order_id}), ConsistentRead=True)
        return read(answer["Item"]) if "Item" in answer else None

    def fix_intent(self, order_id: str, intent_id: str) -> str | None:
        """Fix the payment intent of a placed order that has none, before it may be confirmed.

        Answers the id that stands on the row, which is the only one to confirm: another worker's if it was
        first; None where the order is not there or was settled without one.
        """
        try:
            self.client.update_item(
                TableName=self.table,
                Key=values({"order_id": order_id}),
                UpdateExpression="SET intent_id = :intent",
                ConditionExpression="#state = :placed AND attribute_not_exists(intent_id)",
                ExpressionAttributeNames={"#state": "state"},
                ExpressionAttributeValues=values({":intent": intent_id, ":placed": PLACED}),
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            item: Any = error.response.get("Item")
            return read(item).intent_id if item else None
        return intent_id

    def open_before(self, index: str, epoch_s: int) -> Iterator[str]:
        """Ids of orders that are not final and have not moved since before this time (epoch seconds)."""
        for shard in range(OPEN_SHARDS):
            pages = self.client.get_paginator("query").paginate(
                TableName=self.table,
                IndexName=index,
                KeyConditionExpression="open_shard = :shard AND open_since <= :before",
                ExpressionAttributeValues=values({":shard": f"open-{shard}", ":before": epoch_s}),
                ProjectionExpression="order_id",
            )
            for page in pages:
                for item in page["Items"]:
                    yield item["order_id"]["S"]

    def swept(self, order: Order, until_s: int) -> None:
        """Note that the order's event was sent again, and count its age from `until_s` (epoch seconds) on.

        An order that has moved meanwhile keeps its own mark.
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
    """The table that the function's environment names. Raises KeyError naming the variable that is not set."""
    return Orders(aws.client("dynamodb"), os.environ["ORDERS_TABLE"])
