"""`make settle`: a person ends a placed order as declined, and the customer gets the decline email.

The command runs the step `payment.charge` itself, under its key, with another function: cancel the intent, read it
back, decline. So a worker and the command never settle one order at the same time, and the relay sends the event.
The mark on the row comes first: no worker that reads the row after it saves or confirms an intent. If the command
dies then, the next delivery of the order's message ends the order for the same reason.
"""

from dataclasses import dataclass

import stripe

from shared.idempotency import (
    Attempt,
    Busy,
    Done,
    Effect,
    Engine,
    NotDone,
    Outcome,
    StepError,
    epoch_ms,
    iso,
    runtime,
    step,
)
from shared.idempotency.store import Store
from shared.orders import CHARGE, DECLINED, PLACED, Order, OrderPlaced, Orders, declined, parse_row, unsettled
from tools.account import Stop
from tools.ledger import Ledger, order_of
from tools.operate.deployment import Deployment
from tools.tables import Tables

LEASE_S = 120  # for the provider's answers, which the SDK asks for again


@dataclass(frozen=True)
class Settled:
    """An order that was ended. `intent_id`: its canceled intent, or None if it had none."""

    order_id: str
    state: str
    reason: str
    intent_id: str | None


def placed_order(deployment: Deployment, order_id: str) -> Order:
    """Return the order. Raises Stop if it is not placed: a person cannot end it, or need not."""
    image = deployment.tables().order(order_id)
    if image is None:
        raise Stop(f"There is no order {order_id}.")
    row = parse_row(image)
    if row.state != PLACED:
        raise Stop(f"Order {order_id} is {row.state}. Only a placed order can be settled: nothing was done.")
    return row


def settle(deployment: Deployment, order_id: str, reason: str) -> Settled:
    """Mark the order, cancel its intent, read the intent back, and decline the order.

    Raises Stop if the intent was paid, if it cannot be cancelled, or if a worker has the order. An order whose intent
    the provider does not know is not marked: after a repair of the key, the order can still be charged.
    """
    tables, ledger = deployment.tables(), deployment.ledger()
    variables = deployment.environment("payment")
    image = tables.order(order_id)
    intent_id = parse_row(image).intent_id if image else None
    if intent_id is not None:
        try:
            _check_intent(ledger, intent_id, order_id)
        except NotDone as error:
            raise Stop(f"{error} Nothing was done.") from error
    here = runtime.current()
    store = Store(
        client=tables.client,
        table=tables.records,
        clock=here.clock,
        rng=here.rng,
        ttl_s=int(float(deployment.environment("order")["RECORD_TTL_S"])),
        request_s=LEASE_S / 4,
    )
    engine = Engine(
        store=store,
        clock=here.clock,
        skew_s=float(variables["LEASE_SKEW_S"]),
        step_needs_s=LEASE_S / 2,
        reserve_s=0,
        new_owner=here.new_owner,
    )
    return settle_with(engine, tables, ledger, order_id, reason)


def settle_with(engine: Engine, tables: Tables, ledger: Ledger, order_id: str, reason: str) -> Settled:
    """Settle an order with these parts. `reason`: in snake case, for row, trace and event."""
    orders = Orders(tables.client, tables.orders)
    marked = orders.mark_settling(order_id, reason)
    if marked is None:
        raise Stop(f"Order {order_id} has just been settled, or there is no such order: nothing was done.")

    def unsettled_row(order: OrderPlaced, _: Attempt) -> Done | Order:
        return unsettled(orders.get(order.order_id), order)

    def decline(_: OrderPlaced, attempt: Attempt, row: Order) -> Outcome:
        if row.intent_id is not None:
            _cancel(ledger, row.intent_id, row.order_id)
        return declined(tables.orders, row, row.intent_id, row.settling or reason, now_ms=attempt.now_ms)

    run = step(
        CHARGE, event=OrderPlaced, key=lambda order: order.order_id, effect=Effect.EXTERNAL, guard=unsettled_row
    )(decline)
    try:
        engine.run(run, _placed(marked), epoch_ms() + LEASE_S * 1000, correlation_id=marked.correlation_id)
    except Busy as busy:
        raise Stop(
            f"A worker has order {order_id} until {iso(busy.until_ms)}, and may still charge it. The order is marked: "
            "if it is not charged, the next delivery declines it. Run this again after that time."
        ) from None
    except StepError as error:
        text = f"Order {order_id} is marked and not settled. {error} The next delivery of its message declines it."
        raise Stop(text) from error
    row = orders.get(order_id)
    if row is None or row.state != DECLINED:
        raise Stop(f"Order {order_id} is {row.state if row else 'missing'}. See `make trace` and `make audit`.")
    return Settled(order_id, row.state, row.decline_reason or "", row.intent_id)


def _placed(row: Order) -> OrderPlaced:
    """Return the event of a placed order: the command claims the key for the same event as a worker."""
    return OrderPlaced(order_id=row.order_id, currency=row.currency, total=row.total, payment_method=row.payment_method)


def _check_intent(ledger: Ledger, intent_id: str, order_id: str) -> None:
    """Raise NotDone unless the provider knows the intent, and as one of this order."""
    try:
        found = ledger.intent(intent_id)
    except stripe.StripeError as error:
        raise _failed(error) from error
    if found is None:
        raise NotDone(f"The provider does not know its intent {intent_id}. See the runbook: An intent is missing.")
    if order_of(found) != order_id:
        raise NotDone(f"Its intent {intent_id} belongs to {order_of(found) or 'no order'} and was not cancelled.")


def _cancel(ledger: Ledger, intent_id: str, order_id: str) -> None:
    """Cancel the intent and read it back. Raises NotDone unless it is canceled: nothing is settled then."""
    _check_intent(ledger, intent_id, order_id)
    try:
        status = ledger.cancel(intent_id)
    except stripe.StripeError as error:
        raise _failed(error) from error
    if status == "succeeded":
        raise NotDone(f"Its intent {intent_id} was paid. Redrive its message: the order becomes paid.")
    if status != "canceled":
        raise NotDone(f"Its intent {intent_id} is {status} and cannot be cancelled now. Run this again later.")


def _failed(error: stripe.StripeError) -> NotDone:
    return NotDone(f"The provider failed: {type(error).__name__}. Run this again.")
