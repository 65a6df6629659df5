"""Payment: placed → paid | declined. One payment intent per order, whose id is on the row before it may be confirmed.

A confirmed intent cannot be charged again. So the order is charged at most once, even if messages are redelivered,
workers are killed or records are deleted. An intent that was created and is not on the row stays unconfirmed and
charges no card.
"""

import os

import msgspec

from functions.payment.intent import Intent
from functions.payment.provider import provider
from shared.idempotency import (
    Attempt,
    Done,
    Effect,
    KeyReused,
    NotDone,
    Outcome,
    Unknown,
    as_not_done,
    sqs_handler,
    step,
)
from shared.orders import (
    DECLINED,
    PAID,
    REQUESTED,
    Order,
    OrderDeclined,
    OrderPaid,
    OrderPlaced,
    orders,
    record_declined,
    record_paid,
)


class Payment(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The step's stored result. `total` is in minor units, `state` is paid or declined, ids are the provider's."""

    order_id: str
    total: int
    currency: str
    state: str
    payment_intent: str
    charge: str | None = None
    reason: str | None = None  # of a decline


def row_of(order: OrderPlaced, _: Attempt) -> Done | Order:
    """Return the order's row; Done if the order is settled. The row outlives the idempotency record.

    Raises KeyReused if the row holds other facts, NotDone if the order is not placed yet.
    """
    row = orders().get(order.order_id)
    if row is None:
        raise NotDone(f"order {order.order_id} is missing")  # the row may return, because the table may be in a restore
    if (row.total, row.currency, row.payment_method) != (order.total, order.currency, order.payment_method):
        raise KeyReused(f"order {order.order_id} is another request")
    if row.state == REQUESTED:
        raise NotDone(f"order {order.order_id} is {row.state}")
    return Done(_settled(row)) if row.state in (PAID, DECLINED) else row


@step("payment.charge", event=OrderPlaced, key=lambda order: order.order_id, effect=Effect.EXTERNAL, guard=row_of)
def charge(order: OrderPlaced, attempt: Attempt, row: Order) -> Outcome:
    """Charge the card at most once. A decline is a result and final for the order.

    If the provider refuses the card, the order is declined. If the provider refuses the request (no such payment
    method, an amount outside its limits), the message is parked: the cause may be the operator's, such as the key of
    another account, and a redrive repeats the request after the repair.
    """
    intent = _intent_on_row(order, row, attempt)
    if intent.status == "requires_confirmation":
        intent = provider().confirm(order, intent, attempt)
    if intent.status in ("requires_payment_method", "requires_action"):
        # The card was declined, or needs an action of an absent customer. After the cancel no late worker can charge.
        intent = provider().cancel(order, intent, attempt)
    return _outcome(order, intent, attempt)


def _settled(row: Order) -> Outcome:
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


def _intent_on_row(order: OrderPlaced, row: Order, attempt: Attempt) -> Intent:
    """Return the only intent that may be confirmed, as it is now. No code removes an intent from a row."""
    intent_id = row.intent_id
    if intent_id is None:
        created = provider().create(order, attempt)
        if created.status != "requires_confirmation":
            # Creating confirms nothing, so the answer is old. The intent is read before its id is fixed on the row.
            created = provider().retrieve(order, created.id, attempt)
        with as_not_done("fix the intent"):
            intent_id = orders().fix_intent(order.order_id, created.id)
        if intent_id is None:
            raise NotDone(f"order {order.order_id} was settled or is missing")
        if intent_id == created.id and not attempt.uncertain:
            return created
    return provider().retrieve(order, intent_id, attempt)


def _outcome(order: OrderPlaced, intent: Intent, attempt: Attempt) -> Outcome:
    """Settle the order if the intent has a final status. Otherwise raise Unknown: the next attempt asks again."""
    if intent.status == "succeeded":
        return _paid(order, intent, attempt)
    if intent.status == "canceled":
        return _declined(order, intent, attempt)
    raise Unknown(f"intent {intent.id} is {intent.status}")


def _paid(order: OrderPlaced, intent: Intent, attempt: Attempt) -> Outcome:
    result = Payment(
        order_id=order.order_id,
        total=order.total,
        currency=order.currency,
        state=PAID,
        payment_intent=intent.id,
        charge=intent.charge_id,
    )
    write = record_paid(
        os.environ["ORDERS_TABLE"],
        order.order_id,
        intent_id=intent.id,
        charge_id=intent.charge_id or "",
        now_ms=attempt.now_ms,
    )
    event = OrderPaid(order_id=order.order_id, currency=order.currency, total=order.total, payment_intent=intent.id)
    return Outcome(result, [write], [event])


def _declined(order: OrderPlaced, intent: Intent, attempt: Attempt) -> Outcome:
    result = Payment(
        order_id=order.order_id,
        total=order.total,
        currency=order.currency,
        state=DECLINED,
        payment_intent=intent.id,
        reason=intent.reason,
    )
    write = record_declined(
        os.environ["ORDERS_TABLE"],
        order.order_id,
        intent_id=intent.id,
        reason=intent.reason,
        now_ms=attempt.now_ms,
    )
    event = OrderDeclined(
        order_id=order.order_id,
        currency=order.currency,
        total=order.total,
        payment_intent=intent.id,
        reason=intent.reason,
    )
    return Outcome(result, [write], [event])


handler = sqs_handler(charge)
