"""The state of the application on the local AWS, read from its sources: ledger, mailbox, tables, bucket and queues."""

import json
import math
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from boto3.dynamodb.types import TypeDeserializer

from tools import ledger, tables
from tools.domain import PROVIDER_URL, QUEUES
from tools.local.local_deployment import LocalDeployment
from tools.queues import Depth, depth

__all__ = ["QUEUES", "Depth", "Ledger", "Mail", "Mailbox", "Queues", "Receipts", "Tables"]

Plain = dict[str, Any]


@dataclass(frozen=True)
class Mail:
    """An email that was handed to SES. `at_ms`: when, in epoch milliseconds."""

    to: tuple[str, ...]
    subject: str
    text: str
    message_id: str
    at_ms: int = 0


class Ledger(ledger.Ledger):
    """The ledger of the payment sandbox."""

    def __init__(self, running: LocalDeployment) -> None:
        super().__init__(running.outputs[PROVIDER_URL], "sk_test_auditor", every_s=0)


class Mailbox:
    """All emails that were sent on this local AWS."""

    def __init__(self, running: LocalDeployment) -> None:
        self._running = running

    def mails(self) -> list[Mail]:
        """Return all emails."""
        return [
            Mail(
                tuple(sent["To"]),
                sent["Subject"],
                sent["BodyText"] or "",
                sent["MessageId"],
                int(sent["Timestamp"] * 1000),
            )
            for account in _ministack(self._running, "ses/messages")["messages"].values()
            for sent in account
        ]

    def mails_to(self, address: str) -> list[Mail]:
        """Return the emails to one address."""
        return [mail for mail in self.mails() if address in mail.to]


class Tables:
    """The order rows and the idempotency records as plain Python values (strongly consistent reads)."""

    def __init__(self, running: LocalDeployment) -> None:
        orders, records = running.outputs["OrdersTableName"], running.outputs["IdempotencyTableName"]
        self._tables = tables.Tables(running.client("dynamodb"), orders, records, units_per_s=math.inf)

    def order(self, order_id: str) -> Plain | None:
        """Return an order row."""
        return _plain_or_none(self._tables.order(order_id))

    def record(self, key: str) -> Plain | None:
        """Return an idempotency record by its key, `<operation>#<order id>`."""
        return _plain_or_none(self._tables.record(key))

    def orders(self) -> list[Plain]:
        """Return all order rows."""
        return list(self._scan(self._tables.orders))

    def mailed_at(self, order_ids: Sequence[str]) -> list[datetime]:
        """Return when these orders became final, without those that are not. At most 100 ids."""
        keys = [{"order_id": {"S": order_id}} for order_id in order_ids]
        request: Any = {self._tables.orders: {"Keys": keys, "ConsistentRead": True}}
        rows = self._tables.client.batch_get_item(RequestItems=request)["Responses"][self._tables.orders]
        return [datetime.fromisoformat(row["mailed_at"]["S"]) for row in rows if "mailed_at" in row]

    def mailed(self) -> int:
        """Return how many orders are final. Each call reads the whole table."""
        pages = self._tables.client.get_paginator("scan").paginate(
            TableName=self._tables.orders,
            Select="COUNT",
            FilterExpression="attribute_exists(mailed_at)",
            ConsistentRead=True,
        )
        return sum(page["Count"] for page in pages)

    def records(self, operation: str | None = None) -> list[Plain]:
        """Return all records, or those of one operation."""
        if operation is None:
            return list(self._scan(self._tables.records))
        return list(
            self._scan(
                self._tables.records,
                FilterExpression="begins_with(id, :operation)",
                ExpressionAttributeValues={":operation": {"S": f"{operation}#"}},
            )
        )

    def forget(self, *keys: str) -> None:
        """Delete these idempotency records, as TTL would. Without keys: all of them."""
        for key in keys or [record["id"] for record in self.records()]:
            self._tables.client.delete_item(TableName=self._tables.records, Key={"id": {"S": key}})

    def _scan(self, table: str, **options: Any) -> Iterator[Plain]:
        for page in self._tables.scan(table, ConsistentRead=True, **options):
            yield from map(plain, page)


class Receipts:
    """The bucket of receipts."""

    def __init__(self, running: LocalDeployment) -> None:
        self._s3 = running.client("s3")
        self._bucket = running.outputs["ReceiptsBucketName"]

    def all(self) -> set[str]:
        """Return the keys of all receipts."""
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket)
        return {entry["Key"] for page in pages for entry in page.get("Contents", [])}


class Queues:
    """The queues and their DLQs, read without receiving a message."""

    def __init__(self, running: LocalDeployment) -> None:
        self._running = running
        self._sqs = running.client("sqs")

    def depth(self, name: str) -> Depth:
        """Return how many messages a queue holds. `name` is Orders, Payments or Emails, or one of them with Dlq."""
        return depth(self._sqs, self._url(name))

    def messages(self, name: str) -> list[Plain]:
        """Return the messages of a queue, with receive counts and attributes."""
        query = urllib.parse.urlencode({"QueueUrl": self._url(name)})
        return [
            message
            for regions in _ministack(self._running, f"sqs/messages?{query}")["messages"].values()
            for queues in regions.values()
            for queue in queues.values()
            for message in queue
        ]

    def send(self, name: str, body: str) -> None:
        """Send a message to any of the queues."""
        self._sqs.send_message(QueueUrl=self._url(name), MessageBody=body)

    def _url(self, name: str) -> str:
        if name.endswith("Dlq"):
            return self._running.outputs[f"{name}Url"]
        return self._running.outputs[f"{name}QueueUrl"]


def _ministack(running: LocalDeployment, path: str) -> Any:
    """Return the answer of one of MiniStack's own paths. Raises urllib's errors."""
    request = urllib.request.Request(f"{running.endpoint}/_ministack/{path}", headers=running.local_key)  # noqa: S310
    with urllib.request.urlopen(request, timeout=20) as response:  # noqa: S310 - loopback
        return json.load(response)


def plain(item: Mapping[str, Any]) -> Plain:
    """Convert an item in DynamoDB's JSON into plain Python values. Whole numbers become int."""
    return {name: _plain(TypeDeserializer().deserialize(value)) for name, value in item.items()}


def _plain_or_none(item: Mapping[str, Any] | None) -> Plain | None:
    return None if item is None else plain(item)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if hasattr(value, "as_integer_ratio") and not isinstance(value, bool | int | float):
        return int(value)
    return value
