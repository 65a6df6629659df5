"""Order: requested → placed. The step writes to DynamoDB only, so it needs one transaction and no claim."""

import os

import msgspec

from shared.idempotency import Attempt, Effect, Outcome, sqs_handler, step
from shared.orders import OrderPlaced, OrderRequested, record_placed


class Placed(msgspec.Struct, frozen=True):
    """The step's stored result. `total` is in minor units."""

    order_id: str
    total: int
    currency: str


@step("order.place", event=OrderRequested, key=lambda order: order.order_id, effect=Effect.NONE)
def place(order: OrderRequested, attempt: Attempt) -> Outcome:
    """Place the order. The total is computed here, from the items."""
    write = record_placed(
        os.environ["ORDERS_TABLE"], order, correlation_id=attempt.correlation_id, now_ms=attempt.now_ms
    )
    event = OrderPlaced(
        order_id=order.order_id, currency=order.currency, total=order.total, payment_method=order.payment_method
    )
    return Outcome(Placed(order.order_id, order.total, order.currency), [write], [event])


handler = sqs_handler(place)
