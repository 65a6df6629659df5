"""The witnesses: what the ledger, the mailbox, the tables, the bucket and the queues say, each read from its source."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any

from boto3.dynamodb.types import TypeDeserializer

from tools.local.running import Running

Plain = dict[str, Any]

QUEUES = ("Orders", "Payments", "Emails")

# A busy laptop's sandbox fails a question now and then, and to ask, or to prune, once more changes nothing.
TRIES, AGAIN_AFTER_S = 5, 1.0


@dataclass(frozen=True)
class Mail:
    """A mail that was handed to SES. `at_ms`: when, in epoch milliseconds."""

    to: tuple[str, ...]
    subject: str
    text: str
    message_id: str
    at_ms: int = 0


@dataclass(frozen=True)
class Depth:
    """How many messages a queue holds: to be taken now, taken and not yet deleted, and not yet to be taken."""

    visible: int
    in_flight: int
    delayed: int

    @property
    def total(self) -> int:
        return self.visible + self.in_flight + self.delayed


def _asked(address: str, method: str = "GET", headers: Plain | None = None) -> Any:
    """What an address of our own stack answers, as JSON: each is an output of it, or below the local AWS's endpoint.

    Raises urllib's errors: a witness that can not be heard is never one that saw nothing.
    """
    request = urllib.request.Request(address, method=method, headers=headers or {})  # noqa: S310 - of our own stack
    with urllib.request.urlopen(request, timeout=20) as response:  # noqa: S310 - the request above
        return json.load(response)


class Ledger:
    """The payment sandbox over HTTP, as an accountant with an API key sees it."""

    def __init__(self, running: Running) -> None:
        self._url = running.outputs["PaymentSandboxUrl"]

    def charges(self) -> list[Plain]:
        """Every charge that was ever executed, succeeded or failed, newest first."""
        return list(self._pages("/v1/charges"))

    def intents(self) -> list[Plain]:
        return list(self._pages("/v1/payment_intents"))

    def charges_of(self, order_id: str) -> list[Plain]:
        return [charge for charge in self.charges() if charge["metadata"].get("order_id") == order_id]

    def prune_keys(self) -> None:
        """Let the provider forget all idempotency keys, as it does after a day."""
        self._call("DELETE", "/v1/sandbox/idempotency_keys")

    def _pages(self, path: str) -> Iterator[Plain]:
        query = {"limit": "100"}
        while True:
            page = self._call("GET", f"{path}?{urllib.parse.urlencode(query)}")
            yield from page["data"]
            if not page["has_more"]:
                return
            query["starting_after"] = page["data"][-1]["id"]

    def _call(self, method: str, path: str, tries: int = TRIES) -> Plain:
        try:
            answer: Plain = _asked(self._url + path, method, {"Authorization": "Bearer sk_test_auditor"})
            return answer
        except urllib.error.HTTPError as error:
            if error.code < HTTPStatus.INTERNAL_SERVER_ERROR or tries == 1:
                raise
        time.sleep(AGAIN_AFTER_S)
        return self._call(method, path, tries - 1)


class Mailbox:
    """All mails that were sent, by anyone to anyone."""

    def __init__(self, running: Running) -> None:
        self._url = f"{running.endpoint}/_ministack/ses/messages"
        self._key = running.local_key

    def mails(self) -> list[Mail]:
        by_account = _asked(self._url, headers=self._key)["messages"]
        return [
            Mail(
                tuple(sent["To"]),
                sent["Subject"],
                sent["BodyText"] or "",
                sent["MessageId"],
                int(sent["Timestamp"] * 1000),
            )
            for account in by_account.values()
            for sent in account
        ]

    def mails_to(self, address: str) -> list[Mail]:
        return [mail for mail in self.mails() if address in mail.to]


class Tables:
    """The order rows and the idempotency records, strongly consistent, in plain Python values."""

    def __init__(self, running: Running) -> None:
        self._dynamodb = running.client("dynamodb")
        self._orders = running.outputs["OrdersTableName"]
        self._records = running.outputs["IdempotencyTableName"]

    def order(self, order_id: str) -> Plain | None:
        return self._get(self._orders, {"order_id": order_id})

    def record(self, key: str) -> Plain | None:
        """An idempotency record, by `<operation>#<business key>`."""
        return self._get(self._records, {"id": key})

    def orders(self) -> list[Plain]:
        return list(self._scan(self._orders))

    def mailed_at(self, order_ids: Sequence[str]) -> list[datetime]:
        """When those of these orders, at most a hundred, were told that are final."""
        keys = [{"order_id": {"S": order_id}} for order_id in order_ids]
        answer = self._dynamodb.batch_get_item(RequestItems={self._orders: {"Keys": keys, "ConsistentRead": True}})
        rows = answer["Responses"][self._orders]
        return [datetime.fromisoformat(row["mailed_at"]["S"]) for row in rows if "mailed_at" in row]

    def mailed(self) -> int:
        """How many orders are final. The table is read for it, whole: not to be asked often."""
        pages = self._dynamodb.get_paginator("scan").paginate(
            TableName=self._orders,
            Select="COUNT",
            FilterExpression="attribute_exists(mailed_at)",
            ConsistentRead=True,
        )
        return sum(page["Count"] for page in pages)

    def records(self, operation: str | None = None) -> list[Plain]:
        """All records, or those of one operation."""
        if operation is None:
            return list(self._scan(self._records))
        return list(
            self._scan(
                self._records,
                FilterExpression="begins_with(id, :operation)",
                ExpressionAttributeValues={":operation": {"S": f"{operation}#"}},
            )
        )

    def forget(self, *keys: str) -> None:
        """Delete these idempotency records as TTL would; none named: all of them."""
        for key in keys or [record["id"] for record in self.records()]:
            self._dynamodb.delete_item(TableName=self._records, Key={"id": {"S": key}})

    def _get(self, table: str, key: Mapping[str, str]) -> Plain | None:
        (name, value), *_ = key.items()
        found = self._dynamodb.get_item(TableName=table, Key={name: {"S": value}}, ConsistentRead=True)
        return plain(found["Item"]) if "Item" in found else None

    def _scan(self, table: str, **how: Any) -> Iterator[Plain]:
        for page in self._dynamodb.get_paginator("scan").paginate(TableName=table, ConsistentRead=True, **how):
            yield from map(plain, page["Items"])


class Receipts:
    """The bucket of receipts."""

    def __init__(self, running: Running) -> None:
        self._s3 = running.client("s3")
        self._bucket = running.outputs["ReceiptsBucketName"]

    def all(self) -> set[str]:
        """The keys of all receipts."""
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket)
        return {entry["Key"] for page in pages for entry in page.get("Contents", [])}


class Queues:
    """The three queues and their DLQs, looked at without receiving anything."""

    def __init__(self, running: Running) -> None:
        self._sqs = running.client("sqs")
        self._outputs = running.outputs
        self._peek = f"{running.endpoint}/_ministack/sqs/messages"
        self._key = running.local_key

    def depth(self, name: str) -> Depth:
        """`name` is Orders, Payments or Emails, or one of these with Dlq at the end."""
        names = ("", "NotVisible", "Delayed")
        found = self._sqs.get_queue_attributes(
            QueueUrl=self._url(name), AttributeNames=[f"ApproximateNumberOfMessages{kind}" for kind in names]
        )["Attributes"]
        return Depth(*(int(found[f"ApproximateNumberOfMessages{kind}"]) for kind in names))

    def messages(self, name: str) -> list[Plain]:
        """What lies in a queue, receive counts and attributes included."""
        query = urllib.parse.urlencode({"QueueUrl": self._url(name)})
        by_account = _asked(f"{self._peek}?{query}", headers=self._key)["messages"]
        return [
            message
            for regions in by_account.values()
            for queues in regions.values()
            for queue in queues.values()
            for message in queue
        ]

    def send(self, name: str, body: str) -> None:
        """Put a message on any of the queues, as the relay or a redrive would."""
        self._sqs.send_message(QueueUrl=self._url(name), MessageBody=body)

    def _url(self, name: str) -> str:
        if name.endswith("Dlq"):
            return self._outputs[f"{name}Url"]
        return self._outputs[f"{name}QueueUrl"]


def plain(item: Mapping[str, Any]) -> Plain:
    """An item in plain Python values; whole numbers as int."""
    return {name: _plain(TypeDeserializer().deserialize(value)) for name, value in item.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if hasattr(value, "as_integer_ratio") and not isinstance(value, bool | int | float):
        return int(value)
    return value
