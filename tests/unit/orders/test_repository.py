"""The two writes that no transaction carries, and what the sweep reads."""

import pytest
from botocore.exceptions import ClientError

from shared.orders import OPEN_SHARDS, orders
from tests.harness.interceptor import Fault, meanwhile, refused
from tests.harness.moto_world import World
from tests.unit.orders.samples import put_row


def due(before: int) -> list[str]:
    pages = (page for n in range(OPEN_SHARDS) for page in orders().open_before("open-orders", n, before))
    return sorted(order_id for page in pages for order_id in page)


def test_an_intent_is_fixed_on_a_placed_order_that_has_none(world: World) -> None:
    put_row(world, "placed")

    assert orders().save_intent_id("ord_1", "pi_1") == "pi_1"

    assert world.row("ord_1")["intent_id"] == {"S": "pi_1"}  # type: ignore[index]


def test_the_first_intent_stands_and_the_second_worker_is_told_of_it(world: World) -> None:
    put_row(world, "placed")
    race = meanwhile(lambda: put_row(world, "placed", intent_id="pi_first"))
    world.wire.plan("UpdateItem", race)

    assert orders().save_intent_id("ord_1", "pi_second") == "pi_first"

    assert world.row("ord_1")["intent_id"] == {"S": "pi_first"}  # type: ignore[index]


@pytest.mark.parametrize("state", ["requested", "paid", "declined"])
def test_no_intent_is_fixed_on_an_order_that_is_not_placed(world: World, state: str) -> None:
    before = put_row(world, state)

    assert orders().save_intent_id("ord_1", "pi_1") is None

    assert world.row("ord_1") == before


def test_no_intent_is_fixed_on_an_order_that_is_not_there(world: World) -> None:
    assert orders().save_intent_id("ord_1", "pi_1") is None

    assert world.row("ord_1") is None


@pytest.mark.parametrize("fault", [refused("AccessDeniedException"), refused("TransactionConflictException")])
def test_any_other_trouble_is_told(world: World, fault: Fault) -> None:
    put_row(world, "placed", open_since=5)
    row = orders().get("ord_1")
    assert row is not None
    world.wire.plan("UpdateItem", fault, fault)

    with pytest.raises(ClientError):
        orders().save_intent_id("ord_1", "pi_1")
    with pytest.raises(ClientError):
        orders().record_sweep(row, 9)


def test_the_sweep_finds_open_orders_of_all_shards_by_age(world: World) -> None:
    for n in range(8):
        put_row(world, "placed", f"old_{n}", open_shard=f"open-{n}", open_since=100)
        put_row(world, "placed", f"new_{n}", open_shard=f"open-{n}", open_since=101)
    put_row(world, "paid", "final", open_shard=None, open_since=None)

    assert due(100) == [f"old_{n}" for n in range(8)]
    assert due(99) == []


def test_the_sweep_reads_page_by_page(world: World) -> None:
    for n in range(3):
        put_row(world, "placed", f"ord_{n}", open_shard="open-0", open_since=1)
    found = orders().open_before("open-orders", 0, 100)

    assert next(found)
    assert world.wire.count("Query") == 1


def test_a_swept_order_counts_its_age_anew(world: World) -> None:
    put_row(world, "placed", open_since=100)
    row = orders().get("ord_1")
    assert row is not None

    orders().record_sweep(row, 500)

    after = orders().get("ord_1")
    assert after is not None
    assert (after.open_since, after.sweeps, after.state) == (500, 1, "placed")
    assert due(499) == []


def test_an_order_that_moved_or_closed_meanwhile_keeps_its_own_mark(world: World) -> None:
    put_row(world, "placed", open_since=100)
    row = orders().get("ord_1")
    assert row is not None
    for moved in (put_row(world, "paid", open_since=200), put_row(world, "paid", open_since=None, open_shard=None)):
        world.dynamodb.put_item(TableName="orders", Item=moved)

        orders().record_sweep(row, 500)

        assert world.row("ord_1") == moved
