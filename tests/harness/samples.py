"""Orders, events and messages as tests need them."""

import json
from pathlib import Path
from typing import Any

from shared.idempotency import Event, Write, cloudevent
from shared.orders import writes
from shared.orders.events import Customer, Item, OrderDeclined, OrderPaid, OrderPlaced, OrderRequested
from shared.orders.repository import orders
from tests.harness.decoding import decode
from tests.harness.moto_world import World
from tests.harness.sqs_records import sqs_record

NAME = "Åsa <b>Buyer</b> & Söner"
ADDRESS = "asa.buyer@example.com"
TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"

EVENTS = Path(__file__).parents[2] / "events"


def sample_event(function: str) -> Any:
    """What `make invoke` sends to a function."""
    return json.loads((EVENTS / f"{function}.json").read_text())


def requested(order_id: str = "ord_1", *, payment_method: str = "pm_card_visa", quantity: int = 2) -> OrderRequested:
    return OrderRequested(
        order_id=order_id,
        customer=Customer(name=NAME, email=ADDRESS),
        currency="EUR",
        items=(Item(sku="A-1", quantity=quantity, unit_price=1250), Item(sku="B.2", quantity=1, unit_price=99)),
        payment_method=payment_method,
    )


def sampled_order() -> OrderRequested:
    """The order in the sample events."""
    _, order = decode(sample_event("order")["Records"][0]["body"], {OrderRequested.type: OrderRequested})
    assert isinstance(order, OrderRequested)
    return order


def body_of(event: Event, *, correlation_id: str = "c-1") -> str:
    """The message that carries an event."""
    envelope = cloudevent(event, correlation_id=correlation_id, time="2026-01-01T00:00:00.000Z")
    plain = {name: getattr(envelope, name) for name in envelope.__struct_fields__ if name != "data"}
    return json.dumps({**plain, "data": json.loads(bytes(envelope.data))})


def sqs_event(*bodies: str, receive_count: int = 1, trace: str | None = None) -> dict[str, Any]:
    """Return Lambda's event for a batch of messages."""
    attributes = {"AWSTraceHeader": trace} if trace else {}
    return {
        "Records": [
            sqs_record(f"message-{n}", body, receipt=f"handle-{n}", receive_count=receive_count, attributes=attributes)
            for n, body in enumerate(bodies)
        ]
    }


def routes(world: World) -> dict[str, str]:
    """Event types and their queues, as the stacks wire them."""
    kinds: dict[str, list[type[Event]]] = {
        "orders": [OrderRequested],
        "payments": [OrderPlaced],
        "emails": [OrderPaid, OrderDeclined],
    }
    return {kind.type: world.queues[queue] for queue, of_queue in kinds.items() for kind in of_queue}


def perform(world: World, write: Write) -> None:
    """One move of an order, without its step."""
    world.dynamodb.transact_write_items(TransactItems=[write.request])


def accept(world: World, order: OrderRequested, *, caller: str = "aws:1:role") -> None:
    """The row as the API writes it."""
    perform(
        world, writes.record_request("orders", order, caller=caller, correlation_id="c-1", now_ms=world.clock.now_ms())
    )


def place(world: World, order: OrderRequested) -> OrderPlaced:
    """The row as the order step leaves it, by either path; answers the event that the step emits."""
    perform(world, writes.record_placed("orders", order, correlation_id="c-1", now_ms=world.clock.now_ms()))
    return OrderPlaced(
        order_id=order.order_id, currency=order.currency, total=order.total, payment_method=order.payment_method
    )


def settle(world: World, order: OrderRequested, state: str, *, intent_id: str | None = None) -> Event:
    """A placed row as the payment step leaves it, `paid` or `declined`; answers the event that the step emits."""
    order_id, now_ms = order.order_id, world.clock.now_ms()
    intent_id = intent_id or f"pi_{order_id}"
    orders().save_intent_id(order_id, intent_id)
    facts: dict[str, Any] = {"order_id": order_id, "currency": order.currency, "total": order.total}
    if state == "paid":
        perform(world, writes.record_paid("orders", order_id, intent_id=intent_id, charge_id="ch_1", now_ms=now_ms))
        return OrderPaid(**facts, payment_intent=intent_id)
    reason = "card_declined"
    perform(world, writes.record_declined("orders", order_id, intent_id=intent_id, reason=reason, now_ms=now_ms))
    return OrderDeclined(**facts, payment_intent=intent_id, reason=reason)


def pay(world: World, order: OrderRequested, intent_id: str | None = None) -> Event:
    """A paid row from nothing."""
    place(world, order)
    return settle(world, order, "paid", intent_id=intent_id)


def decline(world: World, order: OrderRequested) -> Event:
    """A declined row from nothing."""
    place(world, order)
    return settle(world, order, "declined")
