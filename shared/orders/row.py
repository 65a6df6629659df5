"""The order row: what an order is and how far it has come. It never expires, so it has the last word.

States, forward only: requested → placed → paid | declined, and `mailed_at` once the customer was told. Final is paid
or declined, and mailed.
"""

import zlib
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from shared.orders.events import Customer, Item, OrderDeclined, OrderPaid, OrderPlaced, OrderRequested

REQUESTED = "requested"
PLACED = "placed"
PAID = "paid"
DECLINED = "declined"

# Ids made by the API start so; the direct path may not use them (order ids are unique across producers).
API_ID_PREFIX = "api_"

# All that an order may wait for, and so all that the sweep may have to send again: its rights follow.
NextEvent = OrderRequested | OrderPlaced | OrderPaid | OrderDeclined

# Open orders are spread over this many index partitions, 1,000 writes a second each, and an order takes six of them on
# its way (docs/scale.md). More may be added at any time: a row keeps its own.
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
        """The event that moves the order on, the same as its step emitted; None for a final order."""
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
                    reason=self.decline_reason or "",
                )
        return None

    @property
    def timeline(self) -> list[dict[str, str]]:
        """What happened, in order: `[{"state": …, "at": …}]`."""
        moves = (
            (REQUESTED, self.requested_at),
            (PLACED, self.placed_at),
            (PAID, self.paid_at),
            (DECLINED, self.declined_at),
            ("mailed", self.mailed_at),
        )
        return [{"state": state, "at": at} for state, at in moves if at]


def read(item: Mapping[str, Any]) -> Order:
    """A row from DynamoDB's spelling. Raises msgspec.ValidationError where it is not one of ours."""
    return msgspec.convert({name: _plain(value) for name, value in item.items()}, Order)


def _plain(value: Mapping[str, Any]) -> Any:
    """boto3's own reader makes every number a Decimal; ours are whole."""
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
    """DynamoDB's spelling of plain values; None is left out. Raises TypeError for what a row does not hold.

    boto3's own writer takes six times as long: it asks each value for every type there is.
    """
    return {name: _spelled(value) for name, value in plain.items() if value is not None}


def _spelled(value: Any) -> dict[str, Any]:
    match value:
        case str():
            return {"S": value}
        case int() if type(value) is int:
            return {"N": str(value)}
        case dict():
            return {"M": {name: _spelled(inner) for name, inner in value.items()}}
        case list():
            return {"L": [_spelled(inner) for inner in value]}
        case _:
            raise TypeError(f"a row holds no {type(value).__name__}")


def facts_of(order: OrderRequested) -> dict[str, Any]:
    """The attributes that hold what was ordered."""
    return {
        "customer": cast(dict[str, Any], msgspec.to_builtins(order.customer)),
        "items": cast(list[Any], msgspec.to_builtins(list(order.items))),
        "currency": order.currency,
        "total": order.total,
        "payment_method": order.payment_method,
    }


def open_marks(order_id: str, now_ms: int) -> dict[str, Any]:
    """The attributes by which the sweep finds an order that is not final. Every move starts them anew."""
    return {
        "open_shard": f"open-{zlib.crc32(order_id.encode()) % OPEN_SHARDS}",
        "open_since": now_ms // 1000,
        "sweeps": 0,
    }
