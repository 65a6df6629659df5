"""The ends of a placed order, for the payment step and for `make settle`: two writers with one key and one guard."""

import msgspec

from shared.idempotency import Done, KeyReused, NotDone, Outcome

from .events import OrderDeclined, OrderPlaced, disclosed
from .row import DECLINED, PAID, REQUESTED, Order
from .writes import record_declined

CHARGE = "payment.charge"  # the operation of both writers


class Payment(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The result of the payment step. `total` is in minor units, `state` paid or declined, ids are the provider's."""

    order_id: str
    total: int
    currency: str
    state: str
    payment_intent: str
    charge: str | None = None
    reason: str | None = None  # of a decline, as the row has it


def unsettled(row: Order | None, order: OrderPlaced) -> Done | Order:
    """Return the row of a placed order; Done if the order is settled. The row outlives the idempotency record.

    Raises KeyReused if the row holds other facts, NotDone if the order is not placed yet.
    """
    if row is None:
        raise NotDone(f"order {order.order_id} is missing")  # the row may return, because the table may be in a restore
    if (row.total, row.currency, row.payment_method) != (order.total, order.currency, order.payment_method):
        raise KeyReused(f"order {order.order_id} is another request")
    if row.state == REQUESTED:
        raise NotDone(f"order {order.order_id} is {row.state}")
    return Done(_outcome_of(row)) if row.state in (PAID, DECLINED) else row


def _outcome_of(row: Order) -> Outcome:
    """Return the outcome that the row holds: the idempotency record was deleted, the row was not."""
    result = Payment(
        order_id=row.order_id,
        total=row.total,
        currency=row.currency,
        state=row.state,
        payment_intent=row.intent_id or "",
        charge=row.charge_id,
        reason=row.decline_reason,
    )
    return Outcome(result, publish=[row.next_event] if row.next_event else [])


def declined(table: str, row: Order, intent_id: str | None, reason: str, *, now_ms: int) -> Outcome:
    """Return the outcome that declines a placed order, with its event.

    `intent_id`: the canceled intent on the row, or None if the row has none: then the commit fails if one was saved in
    the meantime. `reason`: the true one. The event has the one that may be disclosed.
    """
    result = Payment(
        order_id=row.order_id,
        total=row.total,
        currency=row.currency,
        state=DECLINED,
        payment_intent=intent_id or "",
        reason=reason,
    )
    event = OrderDeclined(
        order_id=row.order_id,
        currency=row.currency,
        total=row.total,
        payment_intent=intent_id or "",
        reason=disclosed(reason),
    )
    write = record_declined(table, row.order_id, intent_id=intent_id, reason=reason, now_ms=now_ms)
    return Outcome(result, [write], [event])
