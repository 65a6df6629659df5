"""Payment: placed → paid | declined. One payment intent per order, whose id is on the row before it may be confirmed.

A confirmed intent cannot be charged again. So the order is charged at most once, even if messages are redelivered,
workers are killed or records are deleted. An intent that was created and is not on the row stays unconfirmed and
charges no card.
"""

import os
from dataclasses import replace

from functions.payment.errors import Declined
from functions.payment.intent import Intent
from functions.payment.provider import provider
from shared.idempotency import Attempt, Done, Effect, NotDone, Outcome, Unknown, as_not_done, sqs_handler, step
from shared.orders import (
    CHARGE,
    PAID,
    Order,
    OrderPaid,
    OrderPlaced,
    Payment,
    declined,
    orders,
    record_paid,
    unsettled,
)


def row_of(order: OrderPlaced, _: Attempt) -> Done | Order:
    """Return the order's row; Done if the order is settled. Raises KeyReused, or NotDone."""
    return unsettled(orders().get(order.order_id), order)


@step(CHARGE, event=OrderPlaced, key=lambda order: order.order_id, effect=Effect.EXTERNAL, guard=row_of)
def charge(_: OrderPlaced, attempt: Attempt, row: Order) -> Outcome:
    """Charge the card at most once. A decline is a result and final for the order.

    The order is declined if the provider refuses the card, or refuses the request for a reason that is provably the
    customer's fault. If the cause may be the operator's, such as the key of another account, the message is parked
    under a name (errors.py): a redrive repeats the request after the repair.
    """
    try:
        intent = _intent_on_row(row, attempt)
    except Declined as refused:
        return _declined(row, None, refused.reason, attempt)
    if intent is None:
        return _declined(row, None, row.settling or "", attempt)
    if intent.status == "requires_confirmation":
        intent = _confirm(row, intent, attempt)
    if intent.status in ("requires_payment_method", "requires_action"):
        # The card was declined, or needs an action of an absent customer. After the cancel no late worker can charge.
        intent = provider().cancel(row, intent, attempt)
    return _outcome(row, intent, attempt)


def _intent_on_row(row: Order, attempt: Attempt) -> Intent | None:
    """Return the only intent that may be confirmed, as it is now. No code removes an intent from a row.

    Returns None if a person settles an order that has no intent. Raises Declined if the provider refuses to create one.
    """
    intent_id = row.intent_id
    if intent_id is None:
        if row.settling:
            return None
        created = provider().create(row, attempt)
        if created.status != "requires_confirmation":
            # Creating confirms nothing, so the answer is old. The intent is read before its id is saved on the row.
            created = provider().retrieve(row, created.id, attempt)
        with as_not_done("save the intent"):
            intent_id = orders().save_intent_id(row.order_id, created.id)
        if intent_id is None:
            raise NotDone(f"order {row.order_id} was settled, is being settled, or is missing")
        if intent_id == created.id and not attempt.uncertain:
            return created
    return provider().retrieve(row, intent_id, attempt)


def _confirm(row: Order, intent: Intent, attempt: Attempt) -> Intent:
    """Confirm the intent. Cancel it instead if a person settles the order, or if the provider refuses to confirm it.

    The provider decides between a confirmation and the cancel of a person who marked the row after it was read.
    """
    if reason := row.settling or _mark_of(row):
        return provider().cancel(row, replace(intent, reason=reason), attempt)
    try:
        return provider().confirm(row, intent, attempt)
    except Declined as refused:
        return provider().cancel(row, replace(intent, reason=refused.reason), attempt)


def _mark_of(row: Order) -> str | None:
    """Return the mark that the row has now. It has none if this attempt saved the intent: the write's condition."""
    if row.intent_id is None:
        return None
    with as_not_done("read the order again"):
        found = orders().get(row.order_id)
    return found.settling if found else None


def _outcome(row: Order, intent: Intent, attempt: Attempt) -> Outcome:
    """Settle the order if the intent has a final status. Otherwise raise Unknown: the next attempt asks again."""
    if intent.status == "succeeded":
        return _paid(row, intent, attempt)
    if intent.status == "canceled":
        return _declined(row, intent.id, row.settling or intent.reason, attempt)
    raise Unknown(f"intent {intent.id} is {intent.status}")


def _paid(row: Order, intent: Intent, attempt: Attempt) -> Outcome:
    result = Payment(
        order_id=row.order_id,
        total=row.total,
        currency=row.currency,
        state=PAID,
        payment_intent=intent.id,
        charge=intent.charge_id,
    )
    write = record_paid(
        os.environ["ORDERS_TABLE"],
        row.order_id,
        intent_id=intent.id,
        charge_id=intent.charge_id or "",
        now_ms=attempt.now_ms,
    )
    event = OrderPaid(order_id=row.order_id, currency=row.currency, total=row.total, payment_intent=intent.id)
    return Outcome(result, [write], [event])


def _declined(row: Order, intent_id: str | None, reason: str, attempt: Attempt) -> Outcome:
    return declined(os.environ["ORDERS_TABLE"], row, intent_id, reason, now_ms=attempt.now_ms)


handler = sqs_handler(charge)
