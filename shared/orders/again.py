"""The event that an unfinished order waits for, once more: same id, same data, always safe to send.

The sweep sends it by itself, an operator's audit on demand.
"""

from collections.abc import Mapping

from shared.idempotency.clock import iso
from shared.idempotency.events import cloudevent
from shared.idempotency.sending import Post
from shared.orders.row import Order


def next_post(order: Order, routes: Mapping[str, str], now_ms: int) -> Post | None:
    """That event, addressed to its queue; None for a final order. `routes`: queue URLs by event type."""
    event = order.next_event
    if event is None:
        return None
    return Post(routes[event.type], cloudevent(event, correlation_id=order.correlation_id, time=iso(now_ms)))
