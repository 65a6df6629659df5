"""Order: requested → placed. DynamoDB only, so one transaction and no claim."""

import os

import msgspec

from shared.idempotency import Attempt, Effect, Outcome, step
from shared.idempotency.sqs import sqs_handler
from shared.orders import writes
from shared.orders.events import OrderPlaced, OrderRequested


class Placed(msgspec.Struct, frozen=True):
    """The step's stored result; `total` in minor units."""

    order_id: str
    total: int
    currency: str


@step("order.place", event=OrderRequested, key=lambda order: order.order_id, effect=Effect.NONE)
def place(order: OrderRequested, attempt: Attempt) -> Outcome:
    """Take the order; its total is ours to compute."""
    table = os.environ["ORDERS_TABLE"]
    return Outcome(
        result=Placed(order.order_id, order.total, order.currency),
        writes=[
            writes.place(table, order, correlation_id=attempt.correlation_id, now_ms=attempt.now_ms),
        ],
        publish=[
            OrderPlaced(
                order_id=order.order_id,
                currency=order.currency,
                total=order.total,
                payment_method=order.payment_method,
            )
        ],
    )


handler = sqs_handler(place)
