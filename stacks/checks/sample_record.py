"""The completed record as the core writes it, found by letting the core write it to a client that keeps the request."""

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
    """A DynamoDB that answers yes."""

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
        raise AssertionError(f"waited {seconds} s for a client that never refuses")


@cache
def completed_records() -> tuple[Image, ...]:
    """What the stream shows of a step with no outside effect, and of one that was claimed and committed."""
    client = _Client()
    store = Store(cast(Any, client), "records", _Clock(), random.Random(0), TTL_S, 1)  # noqa: S311 - never drawn
    far_ms = NOW_S * 2000
    store.once("key", "f", owner="o", data="{}", outbox="[]", writes=(), correlation_id="c", deadline_ms=far_ms)
    once = client.request["TransactItems"][0]["Put"]["Item"]
    store.claim("key", "f", owner="o", lease_until_ms=far_ms, correlation_id="c", deadline_ms=far_ms)
    claimed = _updated({"id": {"S": "key"}}, client.request)
    store.commit(Claim("key", "o", 1, False), "{}", "[]", (), far_ms)
    return once, _updated(claimed, client.request)


def ttl_attribute() -> str:
    """The attribute that holds now + TTL, whatever it is called."""
    [name] = {n for image in completed_records() for n, value in image.items() if value == {"N": str(NOW_S + TTL_S)}}
    return name


def _updated(image: Image, request: dict[str, Any]) -> Image:
    """The item after an update of the form `SET a = :a, #b = :b, … REMOVE c, #d`; what is computed is left out."""
    names, values = request["ExpressionAttributeNames"], request["ExpressionAttributeValues"]
    setting, _, removing = request["UpdateExpression"].partition("REMOVE ")
    found = {names.get(n, n): values[v] for n, v in re.findall(r"([#\w]+) = (:\w+)\b", setting)}
    gone = {names.get(n, n) for n in removing.replace(",", " ").split()}
    return {name: value for name, value in (image | found).items() if name not in gone}
