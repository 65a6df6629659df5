"""Counts what handlers ask AWS for: requests, and the units that they are billed as.

moto counts capacity wrongly, so the units are computed from the items before and after each write.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from botocore.client import BaseClient

from lab.cost.units import Image, index_units, read_units, sqs_requests, write_units

Params = Mapping[str, Any]
TRANSACTION = 2  # each item of a transaction is written twice: prepared, and committed
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html#transaction-capacity-handling

KEYS = {"idempotency": "id", "orders": "order_id"}


class Meter:
    """Hears every client of the process but those of `ignored`, while a handler runs."""

    def __init__(self, probe: Any, ignored: list[Any]) -> None:
        """`probe`: a DynamoDB client of the meter's own, to look at items with."""
        self.counts: Counter[str] = Counter()
        self._probe = probe
        self._ignored = [probe, *ignored]
        self._running = 0
        self._lock = threading.Lock()

    def take(self) -> Counter[str]:
        """What was counted since the last look."""
        taken, self.counts = self.counts, Counter()
        return taken

    def during(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        """The handler, metered as one invocation; what the test itself asks for in between is not."""

        def call(*arguments: Any) -> Any:
            self._running += 1
            self.counts["invocations"] += 1
            try:
                return handler(*arguments)
            finally:
                self._running -= 1

        return call

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen to all clients there are and will be."""
        clients: Any = BaseClient  # Any: the stubs leave out the one method through which all calls go
        whole = clients._make_api_call

        def heard(client: Any, operation: str, params: Params) -> Any:
            if not self._running or any(client is other for other in self._ignored):
                return whole(client, operation, params)
            service = client.meta.service_model.service_name
            before = self._images(operation, params) if service == "dynamodb" else []
            try:
                return whole(client, operation, params)
            finally:
                after = self._images(operation, params) if service == "dynamodb" else []
                with self._lock:
                    self.counts[f"{service}.{operation}"] += 1
                    self.counts += _units(service, operation, params, before, after)

        clients._make_api_call = heard
        try:
            yield
        finally:
            clients._make_api_call = whole

    def _images(self, operation: str, params: Params) -> list[tuple[str, Image | None]]:
        """The items that a request is about, with their tables, as they stand."""
        images = []
        for table, key in _items(operation, params):
            # Of a resource's table the parameters are plain values; its client turns them only later.
            plain = key if isinstance(key, dict) else {"S": str(key)}
            answer = self._probe.get_item(TableName=table, Key={KEYS[table]: plain}, ConsistentRead=True)
            images.append((table, answer.get("Item")))
        return images


def _items(operation: str, params: Params) -> list[tuple[str, Any]]:
    """Table and key value of each item in a request."""
    if operation == "TransactWriteItems":
        return [item for entry in params["TransactItems"] for item in _items("one", next(iter(entry.values())))]
    if "TableName" not in params or params["TableName"] not in KEYS:
        return []
    table = params["TableName"]
    item = params.get("Key") or params.get("Item")
    return [(table, item[KEYS[table]])] if item else []


def _units(
    service: str,
    operation: str,
    params: Params,
    before: list[tuple[str, Image | None]],
    after: list[tuple[str, Image | None]],
) -> Counter[str]:
    counts: Counter[str] = Counter()
    if service == "sqs":
        bodies = [entry.get("MessageBody", "") for entry in params.get("Entries", [params])]
        counts["sqs_requests"] += sqs_requests(sum(len(body.encode()) for body in bodies))
        if operation.startswith("SendMessage"):
            counts["sent"] += len(bodies)
            counts["sent_bytes"] += sum(len(body.encode()) for body in bodies)
    if service != "dynamodb":
        return counts
    if operation == "GetItem":
        counts["read_units"] += sum(read_units(item) for _, item in before)
    elif operation == "Query":
        counts["read_half_units"] += 1  # eventually consistent, as an index only is: half a unit for up to 4 KB
    else:
        times = TRANSACTION if operation == "TransactWriteItems" else 1
        for (table, old), (_, new) in zip(before, after, strict=True):
            counts["write_units"] += times * write_units(old, new)
            counts[f"write_units of {table}"] += times * write_units(old, new)
            if times == TRANSACTION:
                counts["write_units_for_atomicity"] += write_units(old, new)
            if table == "orders":
                counts["index_units"] += index_units(old, new)
    return counts
