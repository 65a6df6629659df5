"""The order rows and the idempotency records, read page by page, at a bounded rate, in DynamoDB's JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.idempotency import Image, epoch_ms, runtime
from shared.orders.audit import OPERATIONS, Records
from tools.domain import record_key

# Read units a second: a twelfth of what a new on-demand table can serve.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html
UNITS_PER_S = 1000.0
ORDERS_A_PAGE = 25  # a batch get accepts 100 keys: so many orders with their records
SCAN_PAGE = 500


@dataclass
class Pace:
    """Waits after each request, so that all requests together use at most `units_per_s` read units a second."""

    units_per_s: float
    units: float = 0
    began_ms: int = field(default_factory=lambda: epoch_ms())

    def used(self, units: float) -> None:
        """Add the read units of a request, and wait as long as they should have taken."""
        self.units += units
        ahead_s = self.units / self.units_per_s - (epoch_ms() - self.began_ms) / 1000
        if ahead_s > 0:
            runtime.current().clock.sleep(ahead_s)


class Tables:
    """The orders table and the idempotency table."""

    def __init__(self, client: Any, orders: str, records: str, units_per_s: float | None = None) -> None:
        self.client = client
        self.orders = orders
        self.records = records
        self._pace = Pace(UNITS_PER_S if units_per_s is None else units_per_s)

    def count(self) -> int:
        """Return the number of orders. DynamoDB updates it every six hours."""
        return int(self.client.describe_table(TableName=self.orders)["Table"].get("ItemCount", 0))

    def get(self, table: str, key: str, value: str) -> Image | None:
        """Return one item by its key (strongly consistent read)."""
        answer = self.client.get_item(TableName=table, Key={key: {"S": value}}, ConsistentRead=True)
        found: Image | None = answer.get("Item")
        return found

    def order(self, order_id: str) -> Image | None:
        """Return an order row."""
        return self.get(self.orders, "order_id", order_id)

    def record(self, key: str) -> Image | None:
        """Return an idempotency record by its key, `<operation>#<order id>`."""
        return self.get(self.records, "id", key)

    def scan(self, table: str, **options: Any) -> Iterator[list[Image]]:
        """Return all items of a table, page by page. `options` are parameters of the Scan request."""
        pages = self.client.get_paginator("scan").paginate(
            TableName=table, ReturnConsumedCapacity="TOTAL", PaginationConfig={"PageSize": SCAN_PAGE}, **options
        )
        for page in pages:
            self._pace.used(page.get("ConsumedCapacity", {}).get("CapacityUnits", 0))
            yield page["Items"]

    def pages(self) -> Iterator[list[tuple[Image, Records]]]:
        """Return all rows, each with its records as of about the same time (eventually consistent reads)."""
        for rows in self.scan(self.orders):
            for start in range(0, len(rows), ORDERS_A_PAGE):
                some = rows[start : start + ORDERS_A_PAGE]
                found = self._batch_get(
                    [record_key(operation, row["order_id"]["S"]) for row in some for operation in OPERATIONS]
                )
                yield [(row, _by_operation(row["order_id"]["S"], found)) for row in some]

    def look(self, order_id: str) -> tuple[Image | None, Records]:
        """Return a row and its records as of one moment."""
        gets = [{"TableName": self.orders, "Key": {"order_id": {"S": order_id}}}]
        gets += [{"TableName": self.records, "Key": {"id": {"S": record_key(name, order_id)}}} for name in OPERATIONS]
        answer = self.client.transact_get_items(
            TransactItems=[{"Get": get} for get in gets], ReturnConsumedCapacity="TOTAL"
        )
        self._pace.used(_units(answer))
        row, *records = (response.get("Item") for response in answer["Responses"])
        return row, {name: image for name, image in zip(OPERATIONS, records, strict=True) if image}

    def _batch_get(self, keys: list[str]) -> dict[str, Image]:
        found: dict[str, Image] = {}
        request: Any = {self.records: {"Keys": [{"id": {"S": key}} for key in keys]}}
        while request:
            answer = self.client.batch_get_item(RequestItems=request, ReturnConsumedCapacity="TOTAL")
            self._pace.used(_units(answer))
            found |= {item["id"]["S"]: item for item in answer["Responses"].get(self.records, [])}
            request = answer.get("UnprocessedKeys")
            if request:
                runtime.current().clock.sleep(1)  # throttled
        return found


def _units(answer: Mapping[str, Any]) -> float:
    return float(sum(used["CapacityUnits"] for used in answer.get("ConsumedCapacity", [])))


def _by_operation(order_id: str, found: Mapping[str, Image]) -> Records:
    return {name: found[key] for name in OPERATIONS if (key := record_key(name, order_id)) in found}
