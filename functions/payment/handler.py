"""Payment: placed → paid | declined. One payment intent per order, fixed on the row before it may be confirmed.

A confirmed intent can not be charged again, so that whatever is redelivered, replayed, killed or wiped, the order is
charged at most once. An intent that was made and not fixed stays unconfirmed: it never charges anybody.
"""

import os

import msgspec

from functions.payment.intent import Intent
from functions.payment.provider import provider
from shared.idempotency import (
    Attempt,
    Effect,
    KeyReused,
    NotDone,
    Outcome,
    Unknown,
    step,
)
from shared.idempotency.batch import sqs_handler
from shared.idempotency.harmless import harmless
from shared.orders import writes
from shared.orders.events import OrderDeclined, OrderPaid, OrderPlaced
from shared.orders.repository import orders
from shared.orders.row import DECLINED, PAID, REQUESTED, Order


class Payment(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The step's stored result; `total` in minor units, `state` paid or declined, ids are the provider's."""

    order_id: str
    total: int
    currency: str
    state: str
    payment_intent: str
    charge: str | None = None
    reason: str | None = None  # of a decline


@step("payment.charge", event=OrderPlaced, key=lambda order: order.order_id, effect=Effect.EXTERNAL)
def charge(order: OrderPlaced, attempt: Attempt) -> Outcome:
    """Charge the card, once for ever; a decline is a result, final for the order.

    What the provider says of the card is a decline. What it says of the request (no such payment method, an amount it
    does not take) is parked: it may be our mistake, such as a key for another account, and a redrive mends that, while
    a customer who was told "declined" is gone.
    """
    row = _row_of(order)
    if row.state in (PAID, DECLINED):
        return _settled_before(row)
    intent = _intent_on_the_row(order, row, attempt)
    if intent.status == "requires_confirmation":
        intent = provider().confirm(order, intent, attempt)
    if intent.status in ("requires_payment_method", "requires_action"):
        # The card was declined, or asks for a customer who is not here. Cancelled, no late worker can charge it.
        intent = provider().cancel(order, intent, attempt)
    return _outcome(order, intent, attempt)


def _row_of(order: OrderPlaced) -> Order:
    """The order's row, which holds the same facts. Raises KeyReused for others, NotDone where it is not placed."""
    with harmless("read the order"):
        row = orders().get(order.order_id)
    if row is None:
        raise NotDone(f"order {order.order_id} is missing")  # a table being restored has it again soon
    if (row.total, row.currency, row.payment_method) != (order.total, order.currency, order.payment_method):
        raise KeyReused(f"order {order.order_id} is another request")
    if row.state == REQUESTED:
        raise NotDone(f"order {order.order_id} is {row.state}")
    return row


def _settled_before(row: Order) -> Outcome:
    """The records have forgotten, the row has not."""
    result = Payment(
        order_id=row.order_id,
        total=row.total,
        currency=row.currency,
        state=row.state,
        payment_intent=row.intent_id or "",
        charge=row.charge_id,
        reason=row.decline_reason,
    )
    return Outcome(result=result, publish=[row.next_event] if row.next_event else [], duplicate=True)


def _intent_on_the_row(order: OrderPlaced, row: Order, attempt: Attempt) -> Intent:
    """The one intent that may be confirmed, as it stands now. No code removes an intent from a row."""
    standing = row.intent_id
    if standing is None:
        created = provider().create(order, attempt)
        if created.status != "requires_confirmation":
            # Create confirms nothing. The intent itself decides, before its id is fixed on the row.
            created = provider().retrieve(order, created.id, attempt)
        with harmless("fix the intent"):
            standing = orders().fix_intent(order.order_id, created.id)
        if standing is None:
            raise NotDone(f"order {order.order_id} was settled or is gone")
        if standing == created.id and not attempt.uncertain:
            return created
    return provider().retrieve(order, standing, attempt)


def _outcome(order: OrderPlaced, intent: Intent, attempt: Attempt) -> Outcome:
    """Only a terminal intent settles the order. Raises Unknown where it is not: wait, and ask about it again."""
    if intent.status == "succeeded":
        return _paid(order, intent, attempt)
    if intent.status == "canceled":
        return _declined(order, intent, attempt)
    raise Unknown(f"intent {intent.id} is {intent.status}")


def _paid(order: OrderPlaced, intent: Intent, attempt: Attempt) -> Outcome:
    return Outcome(
        result=Payment(
            order_id=order.order_id,
            total=order.total,
            currency=order.currency,
            state=PAID,
            payment_intent=intent.id,
            charge=intent.charge_id,
        ),
        writes=[
            writes.mark_paid(
                os.environ["ORDERS_TABLE"],
                order.order_id,
                intent_id=intent.id,
                charge_id=intent.charge_id or "",
                now_ms=attempt.now_ms,
            )
        ],
        publish=[
            OrderPaid(order_id=order.order_id, currency=order.currency, total=order.total, payment_intent=intent.id)
        ],
    )


def _declined(order: OrderPlaced, intent: Intent, attempt: Attempt) -> Outcome:
    return Outcome(
        result=Payment(
            order_id=order.order_id,
            total=order.total,
            currency=order.currency,
            state=DECLINED,
            payment_intent=intent.id,
            reason=intent.reason,
        ),
        writes=[
            writes.mark_declined(
                os.environ["ORDERS_TABLE"],
                order.order_id,
                intent_id=intent.id,
                reason=intent.reason,
                now_ms=attempt.now_ms,
            )
        ],
        publish=[
            OrderDeclined(
                order_id=order.order_id,
                currency=order.currency,
                total=order.total,
                payment_intent=intent.id,
                reason=intent.reason,
            )
        ],
    )


handler = sqs_handler(charge)
