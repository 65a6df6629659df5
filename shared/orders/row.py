"""The order row: an order's facts and its state. The row never expires, so it outlives every idempotency record.

States only move forward: requested → placed → paid | declined. `settling` marks a placed order that a person ends.
`mailed_at` is set when the email about the outcome was sent. An order is final when it is paid or declined, and mailed.
"""

import zlib
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from .events import Customer, Item, OrderDeclined, OrderPaid, OrderPlaced, OrderRequested, disclosed

REQUESTED = "requested"
PLACED = "placed"
PAID = "paid"
DECLINED = "declined"

# Ids made by the API start with this prefix. Partners may not use it: order ids are unique across producers.
API_ID_PREFIX = "api_"

# The events that an order may wait for. The sweep may send each of them, and its permissions follow from this list.
NextEvent = OrderRequested | OrderPlaced | OrderPaid | OrderDeclined

# Open orders are spread over this many index partitions. Each takes 1,000 writes a second, and an order makes six.
# The number may grow at any time: a row keeps its own shard.
OPEN_SHARDS = 64


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A row as read. Times are RFC 3339, `open_since` epoch seconds, amounts minor units."""

    order_id: str
    state: str
    fingerprint: str
    caller: str
    customer: Customer
    currency: str
    items: tuple[Item, ...]
    total: int
    payment_method: str
    correlation_id: str
    requested_at: str | None = None
    placed_at: str | None = None
    intent_id: str | None = None
    intent_at: str | None = None  # when the intent was saved on the row
    settling: str | None = None  # the reason for which a person declines the order: no intent is saved or confirmed
    charge_id: str | None = None
    paid_at: str | None = None
    declined_at: str | None = None
    decline_reason: str | None = None
    mailed_at: str | None = None
    mail: str | None = None
    mail_id: str | None = None
    open_since: int | None = None
    sweeps: int = 0

    @property
    def next_event(self) -> NextEvent | None:
        """The event that the order waits for, equal to the one that its step emitted. None for a final order."""
        facts = {"order_id": self.order_id, "currency": self.currency}
        match self.state:
            case "requested":
                return OrderRequested(
                    **facts, customer=self.customer, items=self.items, payment_method=self.payment_method
                )
            case "placed":
                return OrderPlaced(**facts, total=self.total, payment_method=self.payment_method)
            case "paid" if not self.mailed_at:
                return OrderPaid(**facts, total=self.total, payment_intent=self.intent_id or "")
            case "declined" if not self.mailed_at:
                return OrderDeclined(
                    **facts,
                    total=self.total,
                    payment_intent=self.intent_id or "",
                    reason=disclosed(self.decline_reason or ""),
                )
        return None

    @property
    def timeline(self) -> list[dict[str, str]]:
        """The states so far with their times, in the order of time: `[{"state": …, "at": …}]`."""
        moves = (
            (REQUESTED, self.requested_at),
            (PLACED, self.placed_at),
            (PAID, self.paid_at),
            (DECLINED, self.declined_at),
            ("mailed", self.mailed_at),
        )
        # Two workers' clocks may differ, and a person may correct a row.
        return sorted(({"state": state, "at": at} for state, at in moves if at), key=lambda move: move["at"])


def parse_row(item: Mapping[str, Any]) -> Order:
    """Parse an item in DynamoDB's JSON. Raises msgspec.ValidationError if it is not an order row."""
    return msgspec.convert({name: _plain(value) for name, value in item.items()}, Order)


def _plain(value: Mapping[str, Any]) -> Any:
    """Convert one value. boto3's deserializer makes every number a Decimal; the numbers of a row are whole."""
    ((kind, content),) = value.items()
    match kind:
        case "N":
            return int(content)
        case "M":
            return {name: _plain(inner) for name, inner in content.items()}
        case "L":
            return [_plain(inner) for inner in content]
        case _:
            return content


def values(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Convert plain values into DynamoDB's JSON, without those that are None. Raises TypeError for other types."""
    return {name: _typed(value) for name, value in plain.items() if value is not None}


def _typed(value: Any) -> dict[str, Any]:
    match value:
        case str():
            return {"S": value}
        case int() if type(value) is int:
            return {"N": str(value)}
        case dict():
            return {"M": {name: _typed(inner) for name, inner in value.items()}}
        case list():
            return {"L": [_typed(inner) for inner in value]}
        case _:
            raise TypeError(f"a row holds no {type(value).__name__}")


def facts_of(order: OrderRequested) -> dict[str, Any]:
    """Return the attributes that hold the order itself."""
    return {
        "customer": cast(dict[str, Any], msgspec.to_builtins(order.customer)),
        "items": cast(list[Any], msgspec.to_builtins(list(order.items))),
        "currency": order.currency,
        "total": order.total,
        "payment_method": order.payment_method,
    }


def open_marks(order_id: str, now_ms: int) -> dict[str, Any]:
    """Return the attributes by which the sweep finds an order that is not final. Every change of state resets them."""
    return {
        "open_shard": f"open-{zlib.crc32(order_id.encode()) % OPEN_SHARDS}",
        "open_since": now_ms // 1000,
        "sweeps": 0,
    }
