"""Completed idempotency records as the layer writes them.

The layer itself writes them, to a client that keeps the request instead of sending it.
"""

import random
import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

from shared.idempotency.records import Claim
from shared.idempotency.store import Store

NOW_S, TTL_S = 1_700_000_000, 1234

Image = dict[str, dict[str, Any]]


@dataclass
class _Client:
    """A client that accepts every request and keeps the last one."""

    request: dict[str, Any] = field(default_factory=dict)

    def update_item(self, **request: Any) -> dict[str, Any]:
        self.request = request
        return {}

    def transact_write_items(self, **request: Any) -> dict[str, Any]:
        self.request = request
        return {}


class _Clock:
    def now_ms(self) -> int:
        return NOW_S * 1000

    def sleep(self, seconds: float) -> None:
        raise AssertionError(f"slept {seconds} s although the client accepts every request")


@cache
def completed_records() -> tuple[Image, ...]:
    """Return two records as the stream shows them: of a step without a claim, and of a step with one."""
    client = _Client()
    store = Store(cast(Any, client), "records", _Clock(), random.Random(0), TTL_S, 1)  # noqa: S311 - never used
    far_ms = NOW_S * 2000
    store.once("key", "f", owner="o", data="{}", outbox="[]", writes=(), correlation_id="c", deadline_ms=far_ms)
    once = client.request["TransactItems"][0]["Put"]["Item"]
    store.claim("key", "f", owner="o", lease_until_ms=far_ms, correlation_id="c", deadline_ms=far_ms)
    claimed = _updated({"id": {"S": "key"}}, client.request)
    store.commit(Claim("key", "o", 1, False), "{}", "[]", (), far_ms)
    return once, _updated(claimed, client.request)


def ttl_attribute() -> str:
    """Return the name of the attribute that contains now + TTL."""
    [name] = {n for image in completed_records() for n, value in image.items() if value == {"N": str(NOW_S + TTL_S)}}
    return name


def _updated(image: Image, request: dict[str, Any]) -> Image:
    """Return the item after an update `SET a = :a, #b = :b REMOVE c, #d`. Computed values are left out."""
    names, values = request["ExpressionAttributeNames"], request["ExpressionAttributeValues"]
    setting, _, removing = request["UpdateExpression"].partition("REMOVE ")
    found = {names.get(n, n): values[v] for n, v in re.findall(r"([#\w]+) = (:\w+)\b", setting)}
    gone = {names.get(n, n) for n in removing.replace(",", " ").split()}
    return {name: value for name, value in (image | found).items() if name not in gone}
