"""The two tables, read slowly enough that nobody notices: rows page by page with their records, and single looks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.idempotency import Image, epoch_ms, runtime
from tools.operate.deployment import Deployment

# Read units a second: a twelfth of what a new on-demand table gives.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html
UNITS_PER_S = 1000
# A batch get takes 100 keys: this many orders with their records.
ORDERS_A_PAGE = 25
SCAN_PAGE = 500
# In the order in which they run; the keys of records for ever.
OPERATIONS = ("order.request", "order.place", "payment.charge", "email.send")

Records = Mapping[str, Image]  # by operation


def record_key(operation: str, order_id: str) -> str:
    """The id of an order's record."""
    return f"{operation}#{order_id}"


@dataclass
class Pace:
    """Waits after each request so that, over all, no more than UNITS_PER_S read units a second are used."""

    units: float = 0
    began_ms: int = field(default_factory=lambda: epoch_ms())

    def used(self, units: float) -> None:
        """Take note of a request's read units, and wait for as long as they should have taken."""
        self.units += units
        ahead_s = self.units / UNITS_PER_S - (epoch_ms() - self.began_ms) / 1000
        if ahead_s > 0:
            runtime.current().clock.sleep(ahead_s)


class Tables:
    """The order rows and the idempotency records, in DynamoDB's spelling."""

    def __init__(self, deployment: Deployment) -> None:
        self.client = deployment.client("dynamodb")
        self.orders = deployment.output("OrdersTableName")
        self.records = deployment.output("IdempotencyTableName")
        self._pace = Pace()

    def count(self) -> int:
        """Orders, as DynamoDB counts them every six hours."""
        return int(self.client.describe_table(TableName=self.orders)["Table"].get("ItemCount", 0))

    def pages(self) -> Iterator[list[tuple[Image, Records]]]:
        """All rows, each with its records as of about that time: cheap reads, a moment stale."""
        for rows in self._scan(self.orders):
            for start in range(0, len(rows), ORDERS_A_PAGE):
                some = rows[start : start + ORDERS_A_PAGE]
                found = self._get([record_key(name, row["order_id"]["S"]) for row in some for name in OPERATIONS])
                yield [(row, _by_operation(row["order_id"]["S"], found)) for row in some]

    def all_records(self) -> Iterator[list[Image]]:
        """All records, page by page."""
        return self._scan(self.records)

    def rows_of(self, table: str) -> Iterator[list[Image]]:
        """All rows of another table, such as a copy, page by page."""
        return self._scan(table)

    def look(self, order_id: str) -> tuple[Image | None, Records]:
        """A row and its records as of one moment."""
        gets = [{"TableName": self.orders, "Key": {"order_id": {"S": order_id}}}]
        gets += [{"TableName": self.records, "Key": {"id": {"S": record_key(name, order_id)}}} for name in OPERATIONS]
        answer = self.client.transact_get_items(
            TransactItems=[{"Get": get} for get in gets], ReturnConsumedCapacity="TOTAL"
        )
        self._pace.used(sum(used["CapacityUnits"] for used in answer.get("ConsumedCapacity", [])))
        row, *records = (response.get("Item") for response in answer["Responses"])
        return row, {name: image for name, image in zip(OPERATIONS, records, strict=True) if image}

    def _scan(self, table: str) -> Iterator[list[Image]]:
        pages = self.client.get_paginator("scan").paginate(
            TableName=table,
            ReturnConsumedCapacity="TOTAL",
            PaginationConfig={"PageSize": SCAN_PAGE},
        )
        for page in pages:
            self._pace.used(page.get("ConsumedCapacity", {}).get("CapacityUnits", 0))
            yield page["Items"]

    def _get(self, keys: list[str]) -> dict[str, Image]:
        found: dict[str, Image] = {}
        wanted: Any = {self.records: {"Keys": [{"id": {"S": key}} for key in keys]}}
        while wanted:
            answer = self.client.batch_get_item(RequestItems=wanted, ReturnConsumedCapacity="TOTAL")
            self._pace.used(sum(used["CapacityUnits"] for used in answer.get("ConsumedCapacity", [])))
            found |= {item["id"]["S"]: item for item in answer["Responses"].get(self.records, [])}
            wanted = answer.get("UnprocessedKeys")
            if wanted:
                runtime.current().clock.sleep(1)  # throttled
        return found


def _by_operation(order_id: str, found: Mapping[str, Image]) -> Records:
    return {name: found[key] for name in OPERATIONS if (key := record_key(name, order_id)) in found}
