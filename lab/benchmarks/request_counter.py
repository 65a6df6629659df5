"""Count DynamoDB requests and units by botocore's events, from the answers of the tables."""

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

# AWS charges a refused write by the size of the stored item, and its answer does not say how much.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
READS = ("GetItem", "Query")
TABLES = ("idempotency", "orders")


@dataclass
class RequestCounter:
    """Requests and units since the last `clear`. Refused requests are included in `requests`, without units."""

    requests: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    write_units: float = 0.0
    read_units: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def look_at(self, dynamodb: Any) -> None:
        """Count requests of a client to the tables of the app, without the ledger of the payment sandbox."""
        dynamodb.meta.events.register("before-parameter-build", self._ask)
        dynamodb.meta.events.register("after-call", self._note)

    def clear(self) -> None:
        self.requests.clear()
        self.refused = 0
        self.write_units = self.read_units = 0.0

    def row(self) -> dict[str, Any]:
        """The counts as a row of a table."""
        spelled = " + ".join(f"{count} {name}" for name, count in sorted(self.requests.items()))
        return {
            "requests": self.requests.total(),
            "write units": self.write_units,
            "read units": self.read_units,
            "refused": self.refused,
            "which": spelled,
        }

    def _ask(self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        named = [str(params.get("TableName", "")), *(_table(item) for item in params.get("TransactItems", ()))]
        if this_repo := any(name in TABLES for name in named):
            params["ReturnConsumedCapacity"] = "TOTAL"
        context["counted"] = model.name if this_repo else None

    def _note(self, parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        operation = context.get("counted")
        if operation is None:
            return
        consumed = parsed.get("ConsumedCapacity", [])
        units = sum(float(one["CapacityUnits"]) for one in (consumed if isinstance(consumed, list) else [consumed]))
        with self._lock:
            self.requests[operation] += 1
            if "Error" in parsed:
                self.refused += 1
            elif operation in READS:
                self.read_units += units
            else:
                self.write_units += units


def _table(item: dict[str, Any]) -> str:
    (write,) = item.values()
    return str(write["TableName"])
