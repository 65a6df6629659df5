"""The order row: what is read of it, and the event that moves it on."""

from typing import Any

import msgspec
import pytest
from boto3.dynamodb.types import TypeSerializer

from shared.idempotency import Event
from shared.orders import parse_row
from shared.orders.events import OrderDeclined, OrderPaid, OrderPlaced
from shared.orders.repository import orders
from shared.orders.row import OPEN_SHARDS, Order, open_marks, values
from tests.harness.moto_world import World
from tests.unit.orders.samples import order, put_row

FACTS: dict[str, Any] = {"order_id": "ord_1", "currency": "EUR", "total": 2500}


def got() -> Order:
    found = orders().get("ord_1")
    assert found is not None
    return found


def test_a_row_reads_back_typed_and_strongly_consistent(world: World) -> None:
    put_row(world, "paid", intent_id="pi_1", newer_attribute="x", paid_at="2026-01-01T00:00:02.000Z")

    found = got()

    assert (found.state, found.total, found.items, found.customer) == ("paid", 2500, order().items, order().customer)
    assert (found.intent_id, found.open_since, found.mailed_at, found.sweeps) == ("pi_1", 1000, None, 0)
    assert b'"ConsistentRead": true' in world.wire.bodies("GetItem")[-1]


def test_an_order_that_is_not_there_is_none(world: World) -> None:
    assert orders().get("ord_9") is None
    assert world.row("ord_9") is None


def test_a_row_that_is_not_one_of_ours_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        parse_row(values({"order_id": "ord_1", "state": "paid"}))


@pytest.mark.parametrize(
    ("state", "more", "event"),
    [
        ("requested", {}, order()),
        ("placed", {}, OrderPlaced(**FACTS, payment_method="pm_card_visa")),
        ("paid", {"intent_id": "pi_1"}, OrderPaid(**FACTS, payment_intent="pi_1")),
        (
            "declined",
            {"intent_id": "pi_1", "decline_reason": "no"},
            OrderDeclined(**FACTS, payment_intent="pi_1", reason="no"),
        ),
        (
            "declined",
            {"intent_id": "pi_1", "decline_reason": "stolen_card"},
            OrderDeclined(**FACTS, payment_intent="pi_1", reason="card_declined"),
        ),
        ("declined", {}, OrderDeclined(**FACTS, payment_intent="", reason="")),
        ("paid", {"intent_id": "pi_1", "mailed_at": "2026-01-01T00:00:00Z"}, None),
        ("declined", {"mailed_at": "2026-01-01T00:00:00Z"}, None),
        ("of a later version", {}, None),
    ],
)
def test_the_next_event_is_the_one_that_its_step_emitted(
    world: World, state: str, more: dict[str, Any], event: Event | None
) -> None:
    put_row(world, state, **more)

    assert got().next_event == event


def test_the_timeline_tells_what_happened_in_order(world: World) -> None:
    put_row(world, "declined", placed_at="t2", declined_at="t3", mailed_at="t4")

    assert got().timeline == [
        {"state": "requested", "at": "2026-01-01T00:00:00.000Z"},
        {"state": "placed", "at": "t2"},
        {"state": "declined", "at": "t3"},
        {"state": "mailed", "at": "t4"},
    ]


def test_open_orders_spread_over_all_shards_and_an_order_stays_in_its_own() -> None:
    shards = {open_marks(f"ord_{n}", 1)["open_shard"] for n in range(1000)}

    assert shards == {f"open-{n}" for n in range(OPEN_SHARDS)}
    assert open_marks("ord_1", 5_999) == open_marks("ord_1", 5_000)  # the same shard; whole seconds
    assert open_marks("ord_1", 5_999)["open_since"] == 5


def test_a_row_is_spelled_as_boto3_spells_it() -> None:
    row = {
        "order_id": "ord_1",
        "total": 2500,
        "sweeps": 0,
        "customer": {"name": "Zoë", "email": ""},
        "items": [{"sku": "A-1", "quantity": 2}, {"sku": "B", "quantity": 1}],
        "nothing": None,
    }

    serialize = TypeSerializer().serialize
    assert values(row) == {name: serialize(value) for name, value in row.items() if value is not None}


@pytest.mark.parametrize("value", [True, 1.5, b"x", {"inner": None}, [False]])
def test_what_a_row_does_not_hold_is_not_spelled(value: Any) -> None:
    with pytest.raises(TypeError, match="a row holds no"):
        values({"attribute": value})
