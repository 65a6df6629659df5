"""One order, and its row in each state."""

from typing import Any

from shared.orders.events import Customer, Item, OrderRequested
from shared.orders.row import facts_of, values
from tests.harness.moto_world import World

CUSTOMER = Customer("A. Buyer", "buyer@example.com")
DATA: dict[str, Any] = {
    "order_id": "ord_1",
    "customer": {"name": "A. Buyer", "email": "buyer@example.com"},
    "currency": "EUR",
    "items": [{"sku": "A-1", "quantity": 2, "unit_price": 1250}],
    "payment_method": "pm_card_visa",
}


def order(order_id: str = "ord_1", unit_price: int = 1250) -> OrderRequested:
    """25.00 EUR, unless the price says otherwise."""
    return OrderRequested(
        order_id=order_id,
        customer=CUSTOMER,
        currency="EUR",
        items=(Item("A-1", 2, unit_price),),
        payment_method="pm_card_visa",
    )


def put_row(world: World, state: str, order_id: str = "ord_1", **attributes: Any) -> dict[str, Any]:
    """A row as it stands in a state; None leaves an attribute out."""
    row = {
        "order_id": order_id,
        "state": state,
        "fingerprint": "v1:f",
        "caller": "me",
        "correlation_id": "c-1",
        "requested_at": "2026-01-01T00:00:00.000Z",
        "open_shard": "open-0",
        "open_since": 1_000,
        **facts_of(order(order_id)),
        **attributes,
    }
    item = values(row)
    world.dynamodb.put_item(TableName="orders", Item=item)
    return item
